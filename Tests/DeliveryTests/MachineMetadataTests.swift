import APNs
import Testing
import Wire

@testable import Delivery

/// What a commit's metadata can say, and what is done when it is full.
@Suite struct MachineMetadataTests {
  private let partition = PartitionID(topic: 0, partition: 0)

  @Test func ofABatchOnlyWhatIsNotSettledIsSentAgainAfterACrash() throws {
    let batch = #"{"id":"b","app":"app-0","tokens":["a0","a1","a2","a3"],"payload":{"aps":{}}}"#
    var bench = MachineBench()
    bench.assign()
    bench.poll([MachineBench.record(batch, offset: 0)])
    bench.answer(.answered(Response(status: 200)), at: 2)
    bench.answer(.answered(Response(status: 200)))
    bench.acknowledge()
    let commits = bench.machine.takeCommits()
    let commit = try #require(commits.first)
    #expect(commit.offset == 0)

    var heir = MachineBench()
    heir.machine.assign([(partition, (commit.offset, commit.metadata))])
    heir.poll([MachineBench.record(batch, offset: 0)])
    let sent = heir.submitted.map { Bytes($0.notification.storage, $0.notification.token).text }
    #expect(sent == ["a1", "a3"])
    heir.answerAll()
    heir.acknowledge()
    #expect(heir.machine.takeCommits() == [OffsetCommit(partition: partition, offset: 1, metadata: "")])
  }

  /// One app cannot be reached, and its requests lie between those of another one. All that it has waits in memory,
  /// since it is far below its cap, until its gaps fill half of a commit's metadata.
  @Test func anAppThatCannotBeReachedDoesNotFillTheMetadata() {
    var limits = DeliveryMachine.Limits()
    limits.metadataBytes = 100
    var bench = MachineBench(limits: limits)
    bench.assign()
    var offset: Int64 = 0
    for _ in 0..<60 {
      for _ in 0..<10 {
        bench.poll(app: 0, 1, from: offset)
        bench.poll(app: 1, 9, from: offset + 1)
        offset += 10
      }
      let outcomes = bench.submitted.map { submission in
        LaneOutcome(
          slot: submission.slot,
          result: submission.app == AppIndex(0) ? .notSent(.unreachable) : .answered(Response(status: 200)),
          sentAt: nil, completedAt: bench.moment.instant)
      }
      bench.submitted = []
      bench.machine.take(outcomes: outcomes, at: bench.moment)
      bench.collect()
      bench.acknowledge()
      _ = bench.machine.takeCommits()
      #expect(!bench.machine.isPaused(partition))
      bench.pass(.seconds(1))
      bench.acknowledge()
    }
    #expect(bench.count(.results) >= 5400)
    #expect(bench.count(.deferred) > 400)
  }

  @Test func whereGapsAreManyWhatMustWaitForLongIsParked() throws {
    var limits = DeliveryMachine.Limits()
    limits.metadataBytes = 60
    var bench = MachineBench(limits: limits)
    bench.assign()
    bench.poll(app: 0, 400)
    for place in stride(from: 399, to: 0, by: -20) { bench.answer(.answered(Response(status: 200)), at: place) }
    bench.acknowledge()
    var busy = Response(status: 503, reason: .serviceUnavailable)
    busy.retryAfter = .seconds(10)
    bench.answer(.answered(busy))
    #expect(bench.published.isEmpty, "with few gaps it waits in memory")
    _ = bench.machine.takeCommits()
    bench.answer(.answered(busy))
    let parked = try #require(bench.published.first)
    #expect(parked.item.topic == .deferred)
  }

  @Test func whereGapsAreManyWhatGoesOutWithinASecondStays() throws {
    var limits = DeliveryMachine.Limits()
    limits.metadataBytes = 60
    var bench = MachineBench(limits: limits)
    bench.assign()
    bench.poll(app: 0, 400)
    bench.answer(.notSent(.streamRefused))
    var busy = Response(status: 503, reason: .serviceUnavailable)
    busy.retryAfter = .seconds(10)
    bench.answer(.answered(busy))
    for place in stride(from: 397, to: 0, by: -20) { bench.answer(.answered(Response(status: 200)), at: place) }
    bench.acknowledge()
    _ = bench.machine.takeCommits()
    let sent = bench.submitted.count
    bench.pass(.zero)
    #expect(bench.published.map(\.item.topic) == [.deferred])
    bench.pass(.milliseconds(50))
    #expect(bench.submitted.count == sent + 1)
  }

  @Test func aTopicThatWasMadeAnewIsTakenUpAlsoBeyondTheCommitPoint() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 10)
    // Nothing has settled: the commit point is the first offset.
    bench.poll([
      MachineBench.record(MachineBench.request(1, id: 50), offset: 0, time: UnixTime(seconds: 1_790_000_777)),
      MachineBench.record(MachineBench.request(1, id: 51), offset: 1, time: UnixTime(seconds: 1_790_000_777)),
    ])
    #expect(bench.submitted.count == 12)
    #expect(bench.machine.tally.known == 0)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.machine.takeCommits() == [OffsetCommit(partition: partition, offset: 2, metadata: "")])
  }

  @Test func whatIsPolledTwiceIsDoneOnce() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 3)
    bench.poll(app: 0, 3)
    #expect(bench.submitted.count == 3)
    #expect(bench.machine.tally.known == 3)
  }
}
