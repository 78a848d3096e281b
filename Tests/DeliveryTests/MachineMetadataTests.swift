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
    var bench = MachineBench { $0.metadataBytes = 100 }
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
    var bench = MachineBench { $0.metadataBytes = 60 }
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

  /// One record whose end cannot be stored holds the commit point back, however few gaps there are.
  @Test func whatIsRememberedBeyondTheCommitPointIsBounded() {
    var bench = MachineBench { $0.maxTracked = 100 }
    bench.assign()
    bench.poll(app: 0, 1)
    bench.answer(.answered(Response(status: 200)))
    var first = bench.published
    bench.published = []
    bench.machine.take(
      receipts: first.map { Receipt(ticket: $0.item.ticket, outcome: .undelivered("no leader")) }, at: bench.moment)
    for (offset, isPaused) in [(1, false), (61, true)] {
      bench.poll(app: 0, 60, from: Int64(offset))
      bench.answerAll()
      bench.acknowledge()
      #expect(bench.machine.takeCommits().map(\.offset) == [0])
      #expect(bench.machine.isPaused(partition) == isPaused)
    }
    // It can be stored at last.
    bench.pass(.seconds(30))
    first = bench.published
    bench.acknowledge()
    #expect(first.count == 1)
    #expect(bench.machine.takeCommits().map(\.offset) == [121])
    #expect(!bench.machine.isPaused(partition))
  }

  /// What waits for its time from the deferred topic would hold the commit point back for as long.
  @Test func whatIsEarlyGoesBackWhereTooMuchIsRemembered() throws {
    var bench = MachineBench { $0.maxTracked = 100 }
    bench.assign()
    bench.assign(topic: MachineBench.deferred)
    bench.poll(app: 0, 1)
    bench.answer(.answered(Response(status: 429, reason: .tooManyRequests, retryAfter: .seconds(900))))
    bench.acknowledge()
    let parked = try #require(bench.stored.first)
    bench.poll([MachineBench.back(parked.value, parked.headers, at: 0)])
    #expect(bench.machine.inFlight == 1)
    bench.poll((1..<70).map { MachineBench.record(MachineBench.request(1, id: $0), offset: Int64($0), topic: 1) })
    bench.answerAll()
    bench.acknowledge()
    _ = bench.machine.takeCommits()
    bench.pass(.milliseconds(1))
    #expect(bench.published.map(\.item.topic) == [.deferred])
    let due = { (headers: [Publication.ExtraHeader]?) in
      headers?.first { $0.name == OwnHeader.notBefore }.flatMap { Int64($0.value) }
    }
    #expect(due(bench.published.first?.item.extraHeaders) == due(parked.headers).map { $0 + 1 })
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [70])
  }

  @Test func whereGapsAreManyWhatGoesOutWithinASecondStays() throws {
    var bench = MachineBench { $0.metadataBytes = 60 }
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
