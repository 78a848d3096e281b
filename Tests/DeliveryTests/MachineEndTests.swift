import APNs
import Testing
import Wire

@testable import Delivery

/// Partitions whose last offsets are no records: markers of transactions.
@Suite struct MachineEndTests {
  private let id = PartitionID(topic: 0, partition: 0)

  @Test func theEndIsCommittedOnceAllBeforeItIsSettled() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 3)
    bench.machine.reachedEnd(of: id, at: 5)
    bench.answerAll()
    #expect(bench.machine.takeCommits().isEmpty)
    #expect(bench.machine.isAllCommitted)
    bench.acknowledge()
    #expect(!bench.machine.isAllCommitted)
    #expect(bench.machine.takeCommits().map(\.offset) == [5])
    #expect(bench.machine.isAllCommitted)
    bench.machine.commitFailed(id)
    #expect(!bench.machine.isAllCommitted)
    #expect(bench.machine.takeCommits().map(\.offset) == [5])
  }

  @Test func whatIsHeldBackIsNotPassed() {
    var bench = MachineBench(maxInFlight: 100, perApp: 2)
    bench.assign()
    bench.poll(app: 0, 4)
    #expect(bench.submitted.count == 2)
    bench.machine.reachedEnd(of: id, at: 6)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [2])
    bench.pass(.milliseconds(1))
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [6])
  }

  @Test(arguments: [false, true])
  func whatIsLetGoIsNotPassed(byRevocation: Bool) {
    var bench = MachineBench(maxInFlight: 100, perApp: 2)
    bench.assign()
    bench.poll(app: 0, 4)
    bench.machine.reachedEnd(of: id, at: 6)
    if byRevocation {
      bench.machine.revoke([id], isLost: false, at: bench.moment)
    } else {
      bench.machine.beginDrain(at: bench.moment)
    }
    bench.machine.reachedEnd(of: id, at: 6)
    bench.answerAll()
    bench.acknowledge()
    let commits = byRevocation ? bench.machine.takeRelease(at: bench.moment)?.commits : bench.machine.takeCommits()
    #expect(commits?.map(\.offset) == [2])
  }

  @Test func theEndOfAnEarlierAssignmentSaysNothing() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 2)
    bench.machine.reachedEnd(of: id, at: 9)
    bench.machine.revoke([id], isLost: true, at: bench.moment)
    _ = bench.machine.takeRelease(at: bench.moment)
    bench.machine.reachedEnd(of: id, at: 9)
    bench.assign()
    bench.poll(app: 0, 2)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [2])
  }

  @Test func anEndThatRecordsFollowIsNone() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 3)
    bench.machine.reachedEnd(of: id, at: 5)
    // The log was cut short meanwhile, and grows from there on.
    bench.poll(app: 0, 1, from: 3)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [4])
  }

  @Test func theEndBehindOffsetsThatBeganAgainIsCommitted() {
    var bench = MachineBench(maxInFlight: 100, perApp: 2)
    bench.assign()
    bench.poll(app: 0, 1)
    bench.answerAll()
    bench.acknowledge()
    bench.poll(app: 0, 2, from: 1)
    // It is held since its app is at its cap, so that nobody knows yet that it is another one.
    bench.poll([MachineBench.record(MachineBench.request(0, id: 9), offset: 0, time: UnixTime(seconds: 1_790_000_777))])
    bench.machine.reachedEnd(of: id, at: 3)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.submitted.count == 1)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [3])
  }

  /// What was held has been let go; were what follows taken up, the commit point would pass it.
  @Test func whatComesWhileItDrainsIsNotTakenUp() {
    var bench = MachineBench { $0.maxInFlight = 2 }
    bench.assign()
    bench.poll(app: 0, 4)
    bench.machine.beginDrain(at: bench.moment)
    bench.poll(app: 0, 2, from: 4)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.machine.isIdle)
    #expect(bench.machine.tally.stray == 2)
    #expect(bench.machine.takeCommits().map(\.offset) == [2])
  }
}
