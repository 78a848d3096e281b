import Testing
import Wire

@testable import Kafka

struct PauseTests {
  @Test func aPausedPartitionIsSilentAndTheOthersGoOn() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 2)
    let writer = try Writer(cluster.bootstrapServers)
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    try reader.assign([partition(0), partition(1)])
    #expect(try writer.fill("t", partition: 0, count: 1))
    #expect(try writer.fill("t", partition: 1, count: 1))
    #expect(try reader.run { reader.records.count == 2 })

    try reader.consumer.pause([partition(0)])
    #expect(try writer.fill("t", partition: 0, count: 50, from: 1))
    #expect(try writer.fill("t", partition: 1, count: 50, from: 1))
    #expect(try reader.run { reader.records.count >= 52 })
    #expect(reader.records.filter { $0.source == partition(0) }.count == 1)

    try reader.consumer.resume([partition(0)])
    #expect(try reader.run { reader.records.count >= 102 })
    for number in [Int32(0), 1] {
      #expect(reader.records.filter { $0.source == partition(number) }.map(\.offset) == Array(0..<51))
    }
  }

  /// While the library is still busy with the end of the last assignment.
  @Test func aPartitionIsReadHoweverSoonItIsAssignedAgain() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", count: 5))
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    try reader.assign([partition(0)])
    for round in 1...100 {
      try #require(try reader.run { reader.records.count == 5 }, "round \(round)")
      reader.records = []
      if round.isMultiple(of: 2) { try reader.consumer.pause([partition(0)]) }
      try reader.consumer.unassign([partition(0)])
      try reader.assign([partition(0)])
    }
  }

  @Test func aPauseEndsWithTheAssignment() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", count: 5))
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    try reader.assign([partition(0)])
    #expect(try reader.run { reader.records.count == 5 })
    try reader.consumer.pause([partition(0)])
    try reader.consumer.unassign([partition(0)])
    try reader.assign([partition(0)])
    #expect(try reader.run { reader.records.count == 10 })
    // And it can be paused again.
    try reader.consumer.pause([partition(0)])
    #expect(try writer.fill("t", count: 5, from: 5))
    try reader.turn()
    #expect(reader.records.count == 10)
    try reader.consumer.resume([partition(0)])
    #expect(try reader.run { reader.records.count == 15 })
  }

  /// What was fetched ahead is dropped by the pause; it must come again, and what was delivered must not.
  @Test func pausingInTheMiddleOfWhatWasFetchedLosesAndRepeatsNothing() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", count: 2_000))
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    try reader.assign([partition(0)])
    while reader.records.count < 2_000 {
      _ = reader.consumer.poll(into: &reader.records, limit: 97)
      if !reader.consumer.hasRecords, reader.records.count < 2_000 {
        guard reader.wakeup.wait(milliseconds: 30_000) else { break }
        reader.wakeup.reset()
        continue
      }
      try reader.consumer.pause([partition(0)])
      let count = reader.records.count
      try reader.turn()
      #expect(reader.records.count == count)
      try reader.consumer.resume([partition(0)])
    }
    #expect(reader.records.map(\.offset) == Array(0..<2_000))
  }

  @Test func aLimitOfNothingHoldsRecordsBackAndStillBringsNews() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", count: 100))
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    try reader.assign([partition(0)])
    try reader.consumer.commit([OffsetCommit(partition: partition(0), offset: 1)], ticket: 1)
    var batch: [Record] = []
    var ticket: UInt64?
    while ticket == nil, reader.wakeup.wait(milliseconds: 30_000) {
      reader.wakeup.reset()
      while let event = reader.consumer.poll(into: &batch, limit: 0) {
        if case .committed(let result) = event { ticket = result.ticket }
      }
    }
    #expect(ticket == 1)
    #expect(batch.isEmpty)
    #expect(try reader.run { reader.records.count == 100 })
    #expect(reader.records.map(\.offset) == Array(0..<100))
  }

  /// The library of some versions goes back to an older offset when a partition is resumed that is not paused.
  @Test func resumingWhatIsNotPausedChangesNothing() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", count: 500))
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    try reader.assign([partition(0)])
    #expect(try reader.run { reader.records.count >= 500 })
    try reader.consumer.pause([partition(0)])
    try reader.consumer.resume([partition(0)])
    for round in 0..<5 {
      #expect(try writer.fill("t", count: 100, from: 500 + round * 100))
      try reader.consumer.resume([partition(0)])
      #expect(try reader.run { reader.records.count >= 600 + round * 100 })
      try reader.consumer.resume([partition(0)])
    }
    #expect(reader.records.map(\.offset) == Array(0..<1_000))
  }
}
