import Kafka
import Service
import TestSupport
import Testing
import Wire

@testable import martlet

struct TopicFollowerTests {
  private let cluster: MockCluster
  private let kafka: KafkaSettings

  init() throws {
    cluster = try MockCluster()
    try cluster.createTopic("push.results", partitions: 2)
    var kafka = Settings().kafka
    kafka.brokers = [cluster.bootstrapServers]
    self.kafka = kafka
  }

  private func publish(_ values: [String]) throws {
    let publisher = try RequestPublisher(kafka, topic: "push.results", timeout: .seconds(60))
    for (number, value) in values.enumerated() {
      let storage = Array(value.utf8)
      #expect(publisher.publish(storage, key: nil, value: ByteRange(0, storage.count), ticket: number) == nil)
    }
    while !publisher.wait() {}
    #expect(publisher.receipts().count == values.count)
  }

  private func follower(from start: FollowOptions.Start) throws -> TopicFollower {
    try TopicFollower("push.results", of: kafka, from: start, timeout: .seconds(60))
  }

  /// Reads until there are so many records; what could not be read meanwhile is told.
  private func read(_ follower: TopicFollower, _ count: Int) -> (values: [String], troubles: [KafkaError]) {
    var batch: [Record] = []
    var values: [String] = []
    var troubles: [KafkaError] = []
    _ = waitUntil {
      batch.removeAll()
      if let trouble = follower.poll(into: &batch, limit: 100) { troubles.append(trouble) }
      for record in batch { values.append(record.body.value.map { Bytes(record.body.storage, $0).text } ?? "") }
      return values.count >= count
    }
    return (values.sorted(), troubles)
  }

  @Test func rightsOnTheGroupAreNotNeeded() throws {
    try publish(["a", "b"])
    cluster.pushErrors(Array(repeating: .groupAuthorizationFailed, count: 50), for: .findCoordinator)
    let (values, troubles) = read(try follower(from: .beginning), 2)
    #expect(values == ["a", "b"])
    #expect(troubles.allSatisfy { $0.isRetriable }, "\(troubles)")
  }

  @Test func fromNowOnMeansWhatComesLater() throws {
    try publish(["a", "b"])
    let follower = try follower(from: .now)
    #expect(follower.partitionCount == 2 && follower.isAtEnd)
    try publish(["c"])
    #expect(read(follower, 1).values == ["c"])
  }

  @Test func theEndIsWhatWasThereAtTheStart() throws {
    try publish(["a", "b", "c"])
    let follower = try follower(from: .beginning)
    #expect(!follower.isAtEnd)
    try publish(["d"])
    #expect(read(follower, 4).values == ["a", "b", "c", "d"])
    #expect(follower.isAtEnd)
  }

  @Test func whatMayNotBeReadIsAnErrorThatLasts() throws {
    try publish(["a"])
    let follower = try follower(from: .beginning)
    cluster.pushErrors(Array(repeating: .topicAuthorizationFailed, count: 50), for: .fetch)
    var batch: [Record] = []
    var trouble: KafkaError?
    #expect(
      waitUntil {
        if let error = follower.poll(into: &batch, limit: 100) { trouble = error }
        return trouble != nil
      })
    #expect(trouble?.code == .topicAuthorizationFailed && trouble?.isRetriable == false)
  }

  @Test func aTopicThatIsNotThereIsNamed() throws {
    cluster.setError(.topicAuthorizationFailed, topic: "push.results")
    #expect { try follower(from: .now) } throws: { "\($0)".contains("push.results") }
  }
}
