import Testing
import Wire

@testable import Kafka

/// When the library writes to the descriptor; the event loop depends on each of these.
struct WakeTests {
  private func idleReader(_ cluster: MockCluster, _ writer: Writer) throws -> Reader {
    #expect(try writer.fill("t", count: 1))
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    try reader.assign([partition(0)])
    #expect(try reader.run { reader.records.count == 1 })
    reader.wakeup.reset()
    try reader.turn()
    return reader
  }

  @Test func aRecordOnAnEmptyQueueIsAnnouncedEachTime() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    let reader = try idleReader(cluster, writer)
    for number in 1...20 {
      #expect(try writer.fill("t", count: 1, from: number))
      while reader.records.count <= number {
        // The order that is safe: reset, then poll until the queue is empty, then wait.
        guard reader.wakeup.wait(milliseconds: 30_000) else {
          Issue.record("no wake-up for record \(number)")
          return
        }
        reader.wakeup.reset()
        try reader.turn()
      }
    }
    #expect(reader.records.count == 21)
  }

  /// One write for many records: the descriptor tells that there is something, not how much.
  @Test func recordsOnAQueueThatIsNotReadAreAnnouncedOnce() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    let reader = try idleReader(cluster, writer)
    for number in 1...5 {
      #expect(try writer.fill("t", count: 10, from: number * 10))
      #expect(reader.wakeup.wait(milliseconds: 30_000))
    }
    // The writer knows that all are stored; only the reader's own fetch has to follow.
    #expect(try reader.run { reader.records.count == 51 })
    #expect(reader.records.map(\.offset) == Array(0..<51))
  }

  /// Who stops before the queue is empty is owed nothing, and `hasRecords` says so.
  @Test func aPollThatStopsEarlySaysThatRecordsAreLeft() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    let reader = try idleReader(cluster, writer)
    #expect(try writer.fill("t", count: 10, from: 1))
    #expect(reader.wakeup.wait(milliseconds: 30_000))
    reader.wakeup.reset()
    var batch: [Record] = []
    _ = reader.consumer.poll(into: &batch, limit: 1)
    #expect(batch.count == 1)
    #expect(reader.consumer.hasRecords)
    _ = reader.consumer.poll(into: &batch, limit: 0)
    #expect(reader.consumer.hasRecords)
    #expect(try reader.run { reader.records.count + batch.count == 11 })
    #expect(!reader.consumer.hasRecords)
  }

  /// A wake-up that finds no room is used up; who has room later must know.
  @Test func aPollWithoutRoomSaysThatRecordsAreLeft() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    let reader = try idleReader(cluster, writer)
    #expect(!reader.consumer.hasRecords)
    #expect(try writer.fill("t", count: 1, from: 1))
    var batch: [Record] = []
    while !reader.consumer.hasRecords {
      guard reader.wakeup.wait(milliseconds: 30_000) else {
        Issue.record("no wake-up, and no word of the record")
        return
      }
      reader.wakeup.reset()
      _ = reader.consumer.poll(into: &batch, limit: 0)
    }
    #expect(batch.isEmpty)
  }

  @Test func theAnswerToACommitIsAnnounced() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    let reader = try idleReader(cluster, writer)
    try reader.consumer.commit([OffsetCommit(partition: partition(0), offset: 1)], ticket: 5)
    while reader.commits.isEmpty {
      guard reader.wakeup.wait(milliseconds: 30_000) else { break }
      reader.wakeup.reset()
      try reader.turn()
    }
    #expect(reader.commits.map(\.ticket) == [5])
  }

  @Test func logLinesArriveThroughThePoll() throws {
    let cluster = try MockCluster()
    let reader = try Reader(
      cluster, group: "g", topics: ["t"], membership: .manual, settings: [("debug", "generic,broker")])
    #expect(try reader.run { reader.log.lines.contains { $0.level == 7 && $0.text.contains("bootstrap") } })
    #expect(reader.log.lines.allSatisfy { !$0.facility.isEmpty && !$0.text.isEmpty && (0...7).contains($0.level) })
  }
}
