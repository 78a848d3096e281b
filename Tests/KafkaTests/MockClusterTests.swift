import Testing
import Wire

@testable import Kafka

struct MockClusterTests {
  private func admin(_ cluster: MockCluster) throws -> Admin {
    try Admin(properties: KafkaProperties(brokers: cluster.bootstrapServers), log: { _ in })
  }

  @Test func listensOnAPortOfItsOwnForEachBroker() throws {
    let cluster = try MockCluster(brokers: 3)
    let ports = cluster.bootstrapServers.split(separator: ",")
    #expect(Set(ports).count == 3)
    let other = try MockCluster()
    #expect(!ports.contains(Substring(other.bootstrapServers)))
  }

  @Test func createdTopicsHaveTheirPartitions() throws {
    let cluster = try MockCluster(brokers: 3)
    try cluster.createTopic("t", partitions: 7)
    #expect(
      try admin(cluster).describe("t", timeout: .seconds(30))
        == TopicDescription(name: "t", partitionCount: 7, replicationFactor: 3))
  }

  @Test func aTopicThatIsThereAlreadyIsNotCreatedAgain() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 1)
    #expect { try cluster.createTopic("t", partitions: 1) } throws: { error in
      (error as? KafkaError)?.subject == .topic("t")
    }
  }

  @Test func anUnknownTopicIsAnAnswerAndNotAnError() throws {
    let cluster = try MockCluster()
    cluster.setError(.unknownTopicOrPartition, topic: "missing")
    let description = try admin(cluster).describe("missing", timeout: .seconds(30))
    #expect(description == TopicDescription(name: "missing", partitionCount: nil))
  }

  @Test func allTopicsAreDescribedAndNoneIsCreated() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("a", partitions: 2)
    try cluster.createTopic("b", partitions: 1)
    cluster.setError(.topicAuthorizationFailed, topic: "b")
    let admin = try admin(cluster)
    for _ in 1...2 {
      let topics = try admin.describeAll(timeout: .seconds(30))
      #expect(topics.keys.sorted() == ["a", "b"])
      #expect(topics["a"] == .success(TopicDescription(name: "a", partitionCount: 2, replicationFactor: 1)))
      guard case .failure(let error)? = topics["b"] else {
        Issue.record("\(topics)")
        return
      }
      #expect(error.code == .topicAuthorizationFailed && error.subject == .topic("b"))
    }
  }

  @Test func aTopicThatMayNotBeSeenIsATypedError() throws {
    let cluster = try MockCluster()
    cluster.setError(.topicAuthorizationFailed, topic: "secret")
    #expect {
      try admin(cluster).describe("secret", timeout: .seconds(30))
    } throws: { error in
      (error as? KafkaError)?.code == .topicAuthorizationFailed && (error as? KafkaError)?.subject == .topic("secret")
    }
  }

  @Test func withoutABrokerTheAnswerIsATimeOut() throws {
    let cluster = try MockCluster()
    try cluster.setBroker(1, isUp: false)
    #expect {
      try admin(cluster).describe("t", timeout: .milliseconds(50))
    } throws: { ($0 as? KafkaError)?.isRetriable == true }
  }

  /// The mock cluster has no controller to ask; that has to show, and not to hang.
  @Test func aClusterWithoutAControllerCreatesNoTopics() throws {
    let cluster = try MockCluster()
    let topic = NewTopic(name: "t", partitionCount: 1, replicationFactor: 1, settings: [("cleanup.policy", "compact")])
    #expect {
      try admin(cluster).create([topic], timeout: .milliseconds(200))
    } throws: { ($0 as? KafkaError)?.code == .timedOut }
  }

  @Test func anImpossibleTopicIsRefusedBeforeItIsSent() throws {
    let cluster = try MockCluster()
    #expect {
      try admin(cluster).create([NewTopic(name: "t", partitionCount: 1_000_000)], timeout: .seconds(30))
    } throws: { error in
      (error as? KafkaError)?.code == .invalidArgument && (error as? KafkaError)?.subject == .topic("t")
    }
  }

  @Test func aBrokerThatComesBackIsFoundAgain() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers, settings: [("reconnect.backoff.max.ms", "200")])
    #expect(try writer.fill("t", count: 1))
    let reader = try Reader(
      cluster, group: "g", topics: ["t"], membership: .manual, settings: [("reconnect.backoff.max.ms", "200")])
    try reader.assign([partition(0)])
    #expect(try reader.run { reader.records.count == 1 })
    try cluster.setBroker(1, isUp: false)
    #expect(try reader.run { reader.errors.contains { $0.code == .allBrokersDown } })
    #expect(reader.errors.allSatisfy { $0.isRetriable && !$0.isFatal })
    try cluster.setBroker(1, isUp: true)
    #expect(try writer.fill("t", count: 3, from: 1))
    #expect(try reader.run { reader.records.count == 4 })
    #expect(reader.records.map(\.offset) == [0, 1, 2, 3])
  }

  @Test func anUnknownTopicOfTheConsumerIsAnError() throws {
    let cluster = try MockCluster()
    cluster.setError(.unknownTopicOrPartition, topic: "missing")
    let reader = try Reader(cluster, group: "g", topics: ["missing"])
    #expect(try reader.run { reader.errors.contains { $0.code == .unknownTopicOrPartition } })
    #expect(reader.errors.allSatisfy { !$0.isFatal })
  }

  @Test func aRefusedFetchIsAnErrorOfThePartition() throws {
    let cluster = try MockCluster()
    cluster.pushErrors([.topicAuthorizationFailed], for: .fetch)
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", count: 1))
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    try reader.assign([partition(0)])
    #expect(try reader.run { reader.records.count == 1 && !reader.errors.isEmpty })
    let error = try #require(reader.errors.first)
    #expect(error.code == .topicAuthorizationFailed)
    #expect(error.subject == .partition(topic: "t", partition: 0))
  }
}
