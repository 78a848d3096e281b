import APNs
import Testing
import Wire

@testable import Delivery

@Suite struct DeliveryMachineTests {
  private let partition = PartitionID(topic: MachineBench.requests, partition: 0)
  private let ok = SendResult.answered(Response(status: 200))

  @Test func anOffsetIsCommittedOnlyWhenKafkaHasTheResult() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 1)
    #expect(bench.submitted.count == 1)
    #expect(bench.machine.takeCommits().isEmpty)
    bench.answer(ok)
    #expect(bench.published.map(\.item.topic) == [.results])
    #expect(bench.machine.takeCommits().isEmpty)
    bench.acknowledge()
    #expect(bench.machine.takeCommits() == [OffsetCommit(partition: partition, offset: 1, metadata: "")])
    #expect(bench.machine.inFlight == 0)
  }

  @Test func aDeadTokenSettlesWhenBothItsRecordsAreStored() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 1)
    bench.answer(.answered(Response(status: 410, reason: .unregistered, timestamp: UnixTime(milliseconds: 5))))
    #expect(bench.published.map(\.item.topic) == [.results, .invalidTokens])
    let event = bench.published.remove(at: 1)
    bench.acknowledge()
    #expect(bench.machine.takeCommits().isEmpty)
    bench.published = [event]
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [1])
    #expect(bench.count(.invalidTokens) == 1)
    #expect(bench.machine.tally.stored.results == 1)
    #expect(bench.machine.tally.stored.invalidTokens == 1)
  }

  @Test func answersOutOfOrderHoldTheCommitBackAndAreNamedInItsMetadata() throws {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 10)
    for _ in 0..<6 { bench.answer(ok, at: 4) }
    bench.acknowledge()
    let commitFound = bench.machine.takeCommits().first
    let commit = try #require(commitFound)
    #expect(commit.offset == 0)
    #expect(LedgerCodec.decode(commit.metadata, commitPoint: 0).records == [4..<10])

    // A crash: somebody else takes over with what was committed, and sends only the rest.
    var heir = MachineBench()
    heir.machine.assign([(partition, (commit.offset, commit.metadata))])
    heir.poll(app: 0, 10)
    #expect(heir.submitted.count == 4)
    #expect(heir.machine.tally.alreadySettled == 6)
    heir.answerAll()
    heir.acknowledge()
    #expect(heir.machine.takeCommits().map(\.offset) == [10])
  }

  @Test(arguments: ["", "garbage", "m1.AAAA", "{}"])
  func foreignMetadataMeansSendingAgain(metadata: String) {
    var bench = MachineBench()
    bench.machine.assign([(partition, (3, metadata))])
    bench.poll(app: 0, 5, from: 3)
    #expect(bench.submitted.count == 5)
  }

  @Test func aRetryKeepsTheApnsIDAndCountsItsAttempts() throws {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 1)
    let first = try #require(bench.submitted.first).notification.apnsID
    bench.answer(.answered(Response(status: 503, reason: .serviceUnavailable)))
    #expect(bench.submitted.isEmpty)
    bench.pass(.seconds(1))
    #expect(bench.submitted.first?.notification.apnsID == first)
    bench.answer(ok)
    bench.acknowledge()
    #expect(bench.stored(.results).first?.contains(#""attempts":2"#) == true)
  }

  @Test func anOldRequestOutOfABacklogIsTriedAsLongAsANewOne() {
    var bench = MachineBench()
    bench.assign()
    bench.poll([
      MachineBench.record(MachineBench.request(0, id: 1), offset: 0, time: UnixTime(seconds: 1_789_000_000))
    ])
    bench.answer(.notSent(.streamRefused))
    #expect(bench.published.isEmpty)
    bench.pass(.seconds(1))
    bench.answer(ok)
    bench.acknowledge()
    #expect(bench.stored(.results).first?.contains(#""status":"delivered""#) == true)
  }

  @Test func attemptsRunOut() {
    var policy = RetryPolicy()
    policy.lastingBackoff = .zero
    var bench = MachineBench(policy: policy)
    bench.assign()
    bench.poll(app: 0, 1)
    for _ in 0..<5 {
      bench.answer(.answered(Response(status: 500, reason: .internalServerError)))
      bench.pass(.seconds(31))
    }
    #expect(bench.submitted.isEmpty)
    bench.acknowledge()
    #expect(bench.stored(.results).first?.contains(#""status":"failed""#) == true)
    #expect(bench.stored(.results).first?.contains(#""attempts":5"#) == true)
  }

  @Test func whatHasExpiredIsNotSent() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 1, extra: #","expiration":1789999999"#)
    #expect(bench.submitted.isEmpty)
    bench.acknowledge()
    #expect(bench.stored(.results).first?.contains(#""status":"expired""#) == true)
  }

  @Test func whatExpiresWhileItWaitsEndsAsExpired() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 1, extra: #","expiration":1790000002"#)
    bench.answer(.notSent(.unreachable))
    for _ in 0..<40 where bench.published.isEmpty {
      bench.pass(.milliseconds(100))
      if !bench.submitted.isEmpty { bench.answer(.notSent(.unreachable)) }
    }
    bench.acknowledge()
    #expect(bench.stored(.results).first?.contains(#""status":"expired""#) == true)
  }

  @Test func badRecordsNeverStopTheStream() {
    var bench = MachineBench()
    bench.assign()
    let bad: [String?] = [nil, "", "no JSON", "[]", "{", #"{"id":"x1","app":"nobody","token":"ab","payload":{}}"#]
    var records = bad.enumerated().map { MachineBench.record($0.element, offset: Int64($0.offset)) }
    records.append(MachineBench.record(MachineBench.request(0, id: 9), offset: Int64(bad.count)))
    bench.poll(records)
    #expect(bench.submitted.count == 1)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [Int64(records.count)])
    #expect(bench.count(.deadLetters) == 5)
    // Only the one with an id has a result, beside the good one.
    #expect(bench.count(.results) == 2)
    #expect(bench.machine.tally.tombstones == 1)
  }

  @Test func aBatchsItemsHaveResultsOfTheirOwnAndOneBadTokenSpoilsOnlyItself() {
    var bench = MachineBench()
    bench.assign()
    bench.poll([
      MachineBench.record(
        #"{"id":"b","app":"app-0","tokens":["aa","zz","bb"],"payload":{"aps":{}}}"#, offset: 0)
    ])
    #expect(bench.submitted.count == 2)
    #expect(Set(bench.submitted.map(\.notification.apnsID)).count == 2)
    bench.answer(ok)
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [0])
    bench.answer(ok)
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [1])
    #expect(bench.stored(.results).count { $0.contains(#""status":"invalid""#) } == 1)
    #expect(bench.count(.results) == 3)
  }

  @Test func aRecordThatWasNotStoredIsProducedAgainAndOnlyThatOne() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 1)
    bench.answer(.answered(Response(status: 410, reason: .unregistered)))
    let event = bench.published.remove(at: 1)
    bench.acknowledge(.undelivered("broker gone"))
    bench.published = [event]
    bench.acknowledge()
    #expect(bench.published.isEmpty)
    bench.pass(.seconds(1))
    #expect(bench.published.map(\.item.topic) == [.results])
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [1])
    #expect(bench.count(.results) == 1)
    #expect(bench.count(.invalidTokens) == 1)
  }

  @Test func aRecordThatKafkaRefusesIsShortenedAndThenGivenUp() {
    var bench = MachineBench()
    bench.assign()
    bench.poll([
      MachineBench.record(
        MachineBench.request(0, id: 1), offset: 0, headers: [("big", [UInt8](repeating: 65, count: 1000))])
    ])
    bench.answer(ok)
    #expect(bench.published.first?.item.headers.count == 1)
    bench.acknowledge(.refused("too large"))
    #expect(bench.published.first?.item.headers.isEmpty == true)
    bench.acknowledge(.refused("too large"))
    #expect(bench.machine.takeCommits().map(\.offset) == [1])
  }

  @Test func aLateOutcomeOfAnEarlierTenantIsIgnored() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 1)
    let old = bench.submitted[0]
    bench.answer(ok)
    bench.acknowledge()
    bench.poll(app: 0, 1, from: 1)
    #expect(bench.submitted[0].slot.index == old.slot.index)
    bench.machine.take(
      outcomes: [LaneOutcome(slot: old.slot, result: ok, sentAt: nil, completedAt: bench.moment.instant)],
      at: bench.moment)
    bench.collect()
    #expect(bench.published.isEmpty)
  }
}
