import APNs
import Testing
import Wire

@testable import Delivery

/// What batches keep in memory: each item refers to the buffer of the whole record.
@Suite struct MachineBatchMemoryTests {
  private let ok = SendResult.answered(Response(status: 200))

  private static func batch(_ count: Int, app: Int = 0, padding: Int = 0) -> String {
    let tokens = (0..<count).map { "\"a\(String($0 + 0x100, radix: 16))\"" }.joined(separator: ",")
    let padding = String(repeating: "x", count: padding)
    return #"{"id":"b","app":"app-\#(app)","tokens":[\#(tokens)],"payload":{"aps":{}},"unknown":"\#(padding)"}"#
  }

  @Test func aBatchCountsUntilItsLastItemHasGone() {
    var bench = MachineBench()
    bench.assign()
    let record = MachineBench.record(Self.batch(3), offset: 0)
    bench.poll([record])
    #expect(bench.machine.inFlightBytes == record.body.storage.count)
    for left in [2, 1] {
      bench.answer(ok)
      bench.acknowledge()
      #expect(bench.machine.inFlight == left)
      #expect(bench.machine.inFlightBytes == record.body.storage.count)
    }
    bench.answer(ok)
    bench.acknowledge()
    #expect(bench.machine.inFlight == 0)
    #expect(bench.machine.inFlightBytes == 0)
  }

  @Test func ofABatchThatIsPartlySettledTheRestCountsToo() {
    var bench = MachineBench()
    let settled = SettledOffsets(batches: [SettledBatch(offset: 0, items: ItemSet([0]))])
    let metadata = LedgerCodec.encode(commitPoint: 0, settled).text
    bench.machine.assign([(PartitionID(topic: MachineBench.requests, partition: 0), (offset: 0, metadata: metadata))])
    let record = MachineBench.record(Self.batch(3), offset: 0)
    bench.poll([record])
    #expect(bench.machine.inFlight == 2)
    #expect(bench.machine.inFlightBytes == record.body.storage.count)
  }

  @Test func aParkedItemOfABatchHasABufferOfItsOwn() {
    var bench = MachineBench()
    bench.assign(topic: MachineBench.deferred)
    let headers = [
      (OwnHeader.sourceTopic, "push.requests"), (OwnHeader.sourcePartition, "0"), (OwnHeader.sourceOffset, "7"),
      (OwnHeader.notBefore, "1"), (OwnHeader.attempts, "0"), (OwnHeader.item, "3"), (OwnHeader.requestedAt, "1"),
      (OwnHeader.takenUpAt, "1789999999000"),
    ].map { (name: $0.0, value: Optional(Array($0.1.utf8))) }
    let record = MachineBench.record(Self.batch(10), offset: 0, topic: MachineBench.deferred, headers: headers)
    bench.poll([record])
    #expect(bench.submitted.count == 1)
    #expect(bench.machine.inFlightBytes == record.body.storage.count)
  }

  @Test func whatIsParkedIsNotCopied() {
    var bench = MachineBench(maxInFlight: 10_000, perApp: 10, apps: 1)
    bench.assign()
    bench.poll(app: 0, 10)
    bench.answerAll(.notSent(.unreachable))
    let value = Self.batch(100, padding: 5_000)
    let records = (10..<30).map { MachineBench.record(value, offset: Int64($0)) }
    bench.machine.take(records, at: bench.moment)
    let outbox = bench.machine.outbox
    #expect(outbox.items.count > 1_000)
    #expect(outbox.arena.isEmpty)
    #expect(outbox.items.allSatisfy { outbox.value(of: $0)?.count == value.utf8.count })
    #expect(outbox.items.last.flatMap { outbox.key(of: $0)?.text }?.hasPrefix("k") == true)
  }

  @Test func theIntakeStopsAtItsBytesWithinAPollAndGoesOn() {
    let record = MachineBench.record(Self.batch(2, padding: 1_000), offset: 0)
    let limit = record.body.storage.count * 3
    var bench = MachineBench(maxInFlight: 1_000, perApp: 1_000) { $0.maxInFlightBytes = limit }
    bench.assign()
    bench.poll((0..<20).map { MachineBench.record(Self.batch(2, padding: 1_000), offset: $0) })
    #expect(bench.machine.inFlight == 6)
    for _ in 0..<40 {
      #expect(bench.machine.inFlightBytes < limit + record.body.storage.count)
      bench.answer(ok)
      bench.acknowledge()
    }
    #expect(bench.count(.results) == 40)
    #expect(bench.machine.inFlightBytes == 0)
  }
}
