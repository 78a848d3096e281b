import Testing
import Wire

@testable import Kafka

struct FetchWakerTests {
  /// What `FetchLevel` says after each of these numbers of records that are left.
  private func wakeups(_ left: [Int]) -> [Bool] {
    var level = FetchLevel()
    return left.map { level.mustWake(left: $0) }
  }

  @Test func theFetchingIsWokenEachTimeThatHalfOfWhatWaitedIsGone() {
    #expect(
      wakeups([0, 5_000, 40_000, 30_000, 20_001, 20_000, 19_000, 9_000, 30_000, 15_000])
        == [false, false, false, false, false, true, false, true, false, true])
  }

  @Test func aTrickleWakesNobody() {
    #expect(!wakeups((0..<100).flatMap { _ in [1_000, 0] }).contains(true))
  }

  /// Without a wake-up, versions before 2.2 fetch 2,000 records a second here, and this takes ten times the limit.
  @Test func recordsFlowOnWhenTheBoundOfFetchingAheadIsSmall() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", count: 30_000))
    let reader = try Reader(
      cluster, group: "g", topics: ["t"], membership: .manual,
      settings: [("queued.min.messages", "2000"), ("fetch.message.max.bytes", "65536")])
    try reader.assign([partition(0)])
    #expect(try reader.run(seconds: 8) { reader.records.count == 30_000 })
  }
}
