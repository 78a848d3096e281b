import APNs
import Testing
import Wire

@testable import Delivery

/// Topics that were made anew.
@Suite struct MachineRewindTests {
  private let ok = SendResult.answered(Response(status: 200))

  @Test func offsetsThatBeginAgainBesideAPartitionThatIsGoneAreTakenUp() {
    var bench = MachineBench()
    bench.assign(0..<2)
    bench.poll(app: 0, 5, partition: 1)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [5])
    bench.machine.revoke([PartitionID(topic: 0, partition: 0)], isLost: false, at: bench.moment)
    _ = bench.machine.takeRelease(at: bench.moment)
    bench.poll(app: 0, 2, from: 0, partition: 1)
    #expect(bench.submitted.count == 2)
    bench.answerAll()
    bench.acknowledge()
    let commit = OffsetCommit(partition: PartitionID(topic: 0, partition: 1), offset: 2, metadata: "")
    #expect(bench.machine.takeCommits() == [commit])
  }

  @Test func metadataOfATopicThatWasMadeAnewIsNotBelieved() {
    var bench = MachineBench()
    let id = PartitionID(topic: 0, partition: 0)
    let metadata = LedgerCodec.encode(commitPoint: 4, SettledOffsets(records: [5..<8])).text
    bench.machine.assign([(id, (4, metadata))])
    // The committed offset was out of range, and the consumer begins at the start.
    bench.poll(app: 0, 10)
    #expect(bench.submitted.count == 10)
    #expect(bench.machine.tally.alreadySettled == 0)
  }
}
