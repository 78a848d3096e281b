import APNs
import Testing
import Wire

@testable import Delivery

/// Caps, isolation, revocation, drain.
@Suite struct MachineFlowTests {
  private let ok = SendResult.answered(Response(status: 200))

  /// A request that is held is counted when it is taken up.
  @Test func requestsAreCountedAsTheyAreTakenUp() {
    var bench = MachineBench(maxInFlight: 100, perApp: 1)
    bench.assign()
    bench.poll(app: 0, 3)
    #expect(bench.machine.tally.consumed == 3 && bench.machine.tally.requests == 1)
    bench.poll([
      MachineBench.record(nil, offset: 3), MachineBench.record("{", offset: 4),
      MachineBench.record(MachineBench.request(0, id: 5), offset: 5),
    ])
    #expect(bench.machine.tally.requests == 1)
    bench.machine.tally = Tally()
    for _ in 0..<4 {
      bench.answerAll()
      bench.acknowledge()
      bench.pass(.milliseconds(1))
    }
    #expect(bench.machine.tally.consumed == 0 && bench.machine.tally.tombstones == 1)
    #expect(bench.machine.tally.requests == 3)
  }

  @Test func theIntakeStopsAtTheCapAndStartsAgainAtThreeQuarters() {
    var bench = MachineBench(maxInFlight: 100, perApp: 100)
    bench.assign()
    #expect(bench.machine.recordRoom() == 100)
    // What waits for Kafka's word counts as well.
    for round in 0..<4 {
      bench.poll(app: 0, 25, from: Int64(round) * 25)
      while !bench.submitted.isEmpty { bench.answerAll() }
    }
    #expect(bench.machine.inFlight == 100)
    #expect(bench.machine.recordRoom() == 0)
    let published = bench.published
    bench.published = Array(published[..<24])
    bench.acknowledge()
    #expect(bench.machine.recordRoom() == 0)
    bench.published = [published[24]]
    bench.acknowledge()
    #expect(bench.machine.recordRoom() == 25)
  }

  @Test func theIntakeStopsAtTheByteCap() {
    var bench = MachineBench { $0.maxInFlightBytes = 1000 }
    bench.assign()
    bench.poll(app: 0, 20)
    #expect(bench.machine.inFlightBytes >= 1000)
    #expect(bench.machine.recordRoom() == 0)
    // What was polled beyond the cap is taken up as soon as there is room.
    while !bench.submitted.isEmpty {
      bench.answerAll()
      bench.acknowledge()
    }
    #expect(bench.count(.results) == 20)
    #expect(bench.machine.inFlightBytes == 0)
    #expect(bench.machine.recordRoom() > 0)
  }

  @Test func aHealthyAppAtItsCapIsWaitedForAndNeverExceedsIt() {
    var bench = MachineBench(maxInFlight: 1000, perApp: 10)
    bench.assign()
    bench.poll(app: 0, 40)
    #expect(bench.submitted.count == 10)
    #expect(bench.machine.recordRoom() == 0)
    var rounds = 0
    while !bench.submitted.isEmpty, rounds < 100 {
      rounds += 1
      bench.answer(ok)
      bench.acknowledge()
      #expect(bench.machine.inFlight(of: AppIndex(0)) <= 10)
    }
    #expect(bench.count(.results) == 40)
    #expect(bench.count(.deferred) == 0)
    #expect(bench.machine.takeCommits().map(\.offset) == [40])
  }

  @Test func anAppsOwnCapCountsBeforeThatOfAllApps() {
    var bench = MachineBench(maxInFlight: 1000, perApp: 100)
    var rules = bench.machine.apps[AppIndex(0)]
    rules.maxInFlight = 3
    var apps = bench.machine.apps
    apps.update(rules)
    bench.machine.update(apps: apps, at: bench.moment)
    bench.assign()
    bench.poll(app: 0, 5)
    #expect(bench.machine.inFlight(of: AppIndex(0)) == 3)
    bench.answerAll()
    #expect(bench.machine.inFlight(of: AppIndex(0)) == 2)
  }

  @Test func anAppThatDoesNotMoveIsParkedAndTheOthersGoOn() {
    var bench = MachineBench(maxInFlight: 1000, perApp: 10)
    bench.assign()
    bench.poll(app: 0, 30)
    bench.pass(.seconds(1))
    // The second app's requests stand behind the first one's, in the same partition.
    bench.poll(app: 1, 5, from: 30)
    #expect(bench.published.count { $0.item.topic == .deferred } == 20)
    #expect(bench.submitted.count { $0.app == AppIndex(1) } == 5)
    #expect(bench.machine.recordRoom() > 0)
  }

  @Test func aParkedRequestComesBackWithItsIdentityAndAttempts() throws {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 1)
    let first = try #require(bench.submitted.first)
    bench.answer(.answered(Response(status: 429, reason: .tooManyRequests, retryAfter: .seconds(900))))
    let parked = try #require(bench.published.first)
    #expect(parked.item.topic == .deferred)
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [1])

    let deferred = PartitionID(topic: MachineBench.deferred, partition: 0)
    bench.machine.assign([(deferred, nil)])
    let headers = parked.item.extraHeaders.map { ($0.name, Optional(Array($0.value.utf8))) }
    bench.poll([
      MachineBench.record(parked.value, offset: 0, topic: MachineBench.deferred, headers: headers)
    ])
    // Not before its time; the partition goes on.
    #expect(bench.submitted.isEmpty)
    #expect(bench.machine.pauses.isEmpty)
    #expect(bench.machine.takeCommits().isEmpty)
    for _ in 0..<16 { bench.pass(.seconds(60)) }
    let second = try #require(bench.submitted.first)
    #expect(second.notification.apnsID == first.notification.apnsID)
    bench.answer(ok)
    bench.acknowledge()
    let result = try #require(bench.stored(.results).first)
    #expect(result.contains(#""attempts":2"#))
    #expect(result.contains(#""topic":"push.requests","partition":0,"offset":0"#))
  }

  @Test func revokedPartitionsAreGivenBackWhenWhatIsOutHasSettled() throws {
    var bench = MachineBench()
    bench.assign(0..<2)
    bench.poll(app: 0, 3, partition: 0)
    bench.poll(app: 0, 3, partition: 1)
    let gone = PartitionID(topic: 0, partition: 1)
    bench.machine.revoke([gone], isLost: false, at: bench.moment)
    #expect(bench.machine.takeRelease(at: bench.moment) == nil)
    // Polled after the revocation: somebody else's business.
    bench.poll(app: 0, 1, from: 3, partition: 1)
    #expect(bench.machine.tally.stray == 1)
    bench.answerAll()
    bench.acknowledge()
    let releaseFound = bench.machine.takeRelease(at: bench.moment)
    let release = try #require(releaseFound)
    #expect(release.partitions == [gone])
    #expect(release.commits.map(\.offset) == [3])
    #expect(bench.machine.assignedPartitions == [PartitionID(topic: 0, partition: 0)])
  }

  @Test func revocationLetsGoOfWhatWaitsAndOfWhatTakesTooLong() throws {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 3)
    bench.answer(ok)
    bench.acknowledge()
    bench.answer(.answered(Response(status: 503)))
    let id = PartitionID(topic: 0, partition: 0)
    bench.machine.revoke([id], isLost: false, at: bench.moment)
    #expect(bench.machine.tally.abandoned == 1)
    #expect(bench.machine.takeRelease(at: bench.moment) == nil)
    bench.pass(.seconds(5))
    let releaseFound = bench.machine.takeRelease(at: bench.moment)
    let release = try #require(releaseFound)
    #expect(release.commits.map(\.offset) == [1])
    // The straggler's answer still becomes a result, and settles nothing.
    bench.answer(ok)
    bench.acknowledge()
    #expect(bench.count(.results) == 2)
    #expect(bench.machine.inFlight == 0)
    #expect(bench.machine.takeCommits().isEmpty)
  }

  @Test func lostPartitionsAreNotCommittedAnyMore() throws {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 2)
    bench.answerAll()
    bench.acknowledge()
    bench.machine.revoke([PartitionID(topic: 0, partition: 0)], isLost: true, at: bench.moment)
    let releaseFound = bench.machine.takeRelease(at: bench.moment)
    let release = try #require(releaseFound)
    #expect(release.commits.isEmpty)
    #expect(bench.machine.takeCommits().isEmpty)
  }

  @Test func aPartitionThatComesBackBeginsAnew() {
    var bench = MachineBench()
    let id = PartitionID(topic: 0, partition: 0)
    bench.assign()
    bench.poll(app: 0, 2)
    bench.machine.revoke([id], isLost: true, at: bench.moment)
    _ = bench.machine.takeRelease(at: bench.moment)
    bench.assign()
    bench.poll(app: 0, 2)
    #expect(bench.submitted.count == 4)
    // The answers of the first assignment settle nothing in the second one.
    bench.answer(ok)
    bench.answer(ok)
    bench.acknowledge()
    #expect(bench.machine.takeCommits().isEmpty)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [2])
  }

  @Test func draining() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 3)
    bench.answer(.answered(Response(status: 503)))
    bench.machine.beginDrain(at: bench.moment)
    #expect(bench.machine.recordRoom() == 0)
    #expect(bench.machine.inFlight == 2)
    bench.answer(ok)
    // What would be tried again is left to the next owner.
    bench.answer(.answered(Response(status: 503)))
    bench.acknowledge()
    #expect(bench.machine.isIdle)
    #expect(bench.count(.results) == 1)
  }

  @Test func aBreakerHoldsAnAppsRequestsAndLetsThemGoWhenItIsBack() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 20)
    bench.answerAll(.notSent(.unreachable))
    #expect(bench.machine.isBroken(AppIndex(0)))
    bench.poll(app: 1, 5, from: 20)
    #expect(bench.submitted.count == 5)
    bench.answerAll()
    var probes = 0
    for _ in 0..<600 where bench.machine.isBroken(AppIndex(0)) {
      bench.pass(.milliseconds(100))
      #expect(bench.submitted.count <= 1)
      probes += bench.submitted.count
      if probes < 4 { bench.answerAll(.notSent(.unreachable)) } else { bench.answerAll() }
    }
    #expect(probes == 4)
    for _ in 0..<1200 where bench.machine.inFlight > bench.published.count {
      bench.pass(.milliseconds(100))
      bench.answerAll()
    }
    bench.acknowledge()
    #expect(bench.count(.results) == 25)
    #expect(bench.machine.takeCommits().map(\.offset) == [25])
  }
}
