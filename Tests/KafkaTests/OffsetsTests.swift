import Testing
import Wire

@testable import Kafka

struct OffsetsTests {
  /// All printable ASCII, quotes and backslashes included, to the limit that brokers set.
  private static let longMetadata = String(
    decoding: (0..<4096).map { UInt8(0x20 + $0 % 0x5F) }, as: UTF8.self)

  @Test(arguments: ["", "m", "a \"b\" \\ {c}", longMetadata])
  func metadataComesBackAfterARestart(metadata: String) throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 3)
    do {
      let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
      try reader.assign([partition(0), partition(2)])
      let offsets = [
        OffsetCommit(partition: partition(2), offset: 42, metadata: metadata),
        OffsetCommit(partition: partition(0), offset: 0),
      ]
      try reader.consumer.commit(offsets, ticket: 77)
      #expect(try reader.run { reader.commits.count == 1 })
      let result = try #require(reader.commits.first)
      #expect(result.ticket == 77)
      #expect(result.isComplete)
      #expect(Set(result.entries.map(\.partition)) == [partition(0), partition(2)])
      #expect(result.entries.first { $0.partition == partition(2) }?.offset == 42)
    }
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    let committed = try reader.consumer.committed(
      [partition(2), partition(1), partition(0)], timeout: .seconds(30))
    #expect(
      committed == [
        CommittedOffset(partition: partition(2), offset: 42, metadata: metadata),
        CommittedOffset(partition: partition(1), offset: nil, metadata: ""),
        CommittedOffset(partition: partition(0), offset: 0, metadata: ""),
      ])
  }

  /// The process can end while a commit is open and the brokers are away.
  @Test func anAbandonedConsumerHoldsNobodyUp() throws {
    let cluster = try MockCluster()
    let start = ContinuousClock.now
    do {
      let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
      try cluster.setBroker(1, isUp: false)
      try reader.consumer.commit([OffsetCommit(partition: partition(1), offset: 5)], ticket: 1)
      reader.consumer.abandon()
    }
    // Freed, it would take the 45 seconds of the session timeout.
    #expect(ContinuousClock.now - start < .seconds(30))
  }

  @Test func nothingToCommitIsNoRequest() throws {
    let cluster = try MockCluster()
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    try reader.consumer.commit([], ticket: 1)
    #expect(try reader.consumer.committed([], timeout: .seconds(1)) == [])
  }

  @Test(arguments: [KafkaError.Code.offsetMetadataTooLarge, .illegalGeneration, .groupAuthorizationFailed])
  func aRefusedCommitIsATypedResult(code: KafkaError.Code) throws {
    let cluster = try MockCluster()
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    _ = try reader.consumer.committed([partition(0)], timeout: .seconds(30))
    cluster.pushErrors([code], for: .offsetCommit)
    try reader.consumer.commit([OffsetCommit(partition: partition(0), offset: 1)], ticket: 3)
    #expect(try reader.run { !reader.commits.isEmpty })
    let result = try #require(reader.commits.first)
    #expect(result.ticket == 3)
    #expect(!result.isComplete)
    let error = try #require(result.error ?? result.entries.compactMap(\.error).first)
    #expect(error.code == code)
    #expect(error.origin == .broker)
    #expect(try reader.consumer.committed([partition(0)], timeout: .seconds(30)).first?.offset == nil)
  }

  @Test func readingStartsAtTheCommittedOffset() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", count: 10))
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    #expect(try reader.commit([OffsetCommit(partition: partition(0), offset: 6)]).isComplete)
    try reader.assign([partition(0)], offset: nil)
    #expect(try reader.run { reader.records.count == 4 })
    #expect(reader.records.map(\.offset) == [6, 7, 8, 9])
  }

  @Test func whereNothingIsCommittedReadingStartsAtTheBeginning() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", count: 3))
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    try reader.assign([partition(0)], offset: nil)
    #expect(try reader.run { reader.records.count == 3 })
  }

  @Test func anOffsetOutOfRangeIsAnErrorWhereTheSettingSaysSo() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", count: 3))
    let reader = try Reader(
      cluster, group: "g", topics: ["t"], membership: .manual, settings: [("auto.offset.reset", "error")])
    try reader.assign([partition(0)], offset: 5_000)
    #expect(try reader.run { !reader.errors.isEmpty })
    let error = try #require(reader.errors.first)
    #expect(error.subject == .partition(topic: "t", partition: 0))
    #expect(!error.isFatal)
  }

  @Test func endsAndLagFollowTheRecords() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", count: 10))
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    #expect(reader.consumer.watermarks(of: partition(0)) == nil)
    #expect(reader.consumer.lag(of: partition(0), from: 0) == nil)
    try reader.assign([partition(0)])
    #expect(try reader.run { reader.records.count == 10 })
    #expect(reader.consumer.watermarks(of: partition(0)) == Watermarks(low: 0, high: 10))
    #expect(reader.consumer.lag(of: partition(0), from: 4) == 6)
    #expect(reader.consumer.lag(of: partition(0), from: 10) == 0)
    #expect(reader.consumer.lag(of: partition(0), from: 99) == 0)
  }
}
