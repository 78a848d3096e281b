import APNs
import Testing
import Wire

@testable import Delivery

/// Apps that do not move, beside others.
@Suite struct MachineIsolationTests {
  private let ok = SendResult.answered(Response(status: 200))

  @Test func appsThatDoNotMoveNeverTakeAllTheRoomTogether() {
    var bench = MachineBench(maxInFlight: 200, perApp: 50, apps: 11)
    bench.assign()
    bench.pass(.seconds(1))
    var offset: Int64 = 0
    // Ten apps whose answers never come, each with more than its cap, and time for the intake to find that out.
    for app in 0..<10 {
      for _ in 0..<3 {
        bench.poll(app: app, min(40, bench.machine.recordRoom()), from: offset)
        offset += 40
        bench.pass(.seconds(1))
        bench.acknowledge()
      }
    }
    #expect(bench.machine.inFlight <= 160)
    // The intake stops at its cap for once, and must start again.
    bench.poll(app: 10, bench.machine.recordRoom(), from: offset)
    bench.submitted.removeAll { $0.app != AppIndex(10) }
    for _ in 0..<100 where !bench.submitted.isEmpty {
      bench.answerAll()
      bench.acknowledge()
    }
    #expect(bench.machine.recordRoom() > 0)
  }

  @Test func largeRequestsOfAppsThatDoNotMoveNeverTakeAllTheBytes() {
    var bench = MachineBench(maxInFlight: 10_000, perApp: 320, apps: 3) { $0.maxInFlightBytes = 40_000 }
    bench.assign()
    bench.pass(.seconds(1))
    for step in 0..<20 {
      bench.poll(
        app: step % 2, min(10, bench.machine.recordRoom()), from: Int64(step) * 10,
        extra: #","unknown":"\#(String(repeating: "x", count: 400))""#)
      bench.pass(.seconds(1))
      bench.acknowledge()
    }
    #expect(bench.machine.inFlightBytes <= 31_000)
    #expect(bench.machine.recordRoom() > 0)
  }

  @Test func aBurstAfterARestIsNoSignOfSlowness() {
    var bench = MachineBench(maxInFlight: 1000, perApp: 10)
    bench.assign()
    bench.poll(app: 0, 1)
    bench.answer(ok)
    bench.acknowledge()
    bench.pass(.seconds(60))
    bench.poll(app: 0, 30, from: 1)
    #expect(bench.published.isEmpty)
    #expect(bench.submitted.count == 10)
    while !bench.submitted.isEmpty {
      bench.answer(ok)
      bench.acknowledge()
    }
    #expect(bench.count(.results) == 31)
    #expect(bench.count(.deferred) == 0)
  }

  @Test func batchesPassTheCapByOneBatchAtMost() {
    var bench = MachineBench(maxInFlight: 20, perApp: 20, apps: 4)
    bench.assign()
    bench.pass(.seconds(1))
    let tokens = (0..<10).map { "\"a\($0)\"" }.joined(separator: ",")
    bench.poll(
      (0..<16).map { index in
        MachineBench.record(
          #"{"id":"b\#(index)","app":"app-\#(index % 4)","tokens":[\#(tokens)],"payload":{"aps":{}}}"#,
          offset: Int64(index))
      })
    #expect(bench.machine.inFlight <= 29)
    var rounds = 0
    while !bench.submitted.isEmpty, rounds < 100 {
      rounds += 1
      bench.answerAll()
      #expect(bench.machine.inFlight <= 29)
      bench.acknowledge()
    }
    #expect(bench.count(.results) == 160)
    #expect(bench.machine.takeCommits().map(\.offset) == [16])
  }

  /// One app needs a second for what it may have in flight, so that it counts neither as slow nor as brisk, and gets
  /// twice as much as it can send; what another one has behind it must not wait for that.
  @Test func anAppThatHardlyMovesHoldsUpTheOthersForAFiftiethOfTheTime() {
    var bench = MachineBench(maxInFlight: 1000, perApp: 100)
    bench.assign()
    var (offset, held): (Int64, Duration) = (0, .zero)
    for step in 0..<2000 {
      if bench.machine.recordRoom() > 0 {
        if step % 10 == 0 { bench.poll(app: 0, 20, from: offset) }
        bench.poll(app: 1, 1, from: offset + 20)
        offset += 21
      }
      // A hundred a second.
      if let oldest = bench.submitted.firstIndex(where: { $0.app == AppIndex(0) }) { bench.answer(ok, at: oldest) }
      if bench.machine.isIntakeHeld { held = held + .milliseconds(10) }
      while let other = bench.submitted.firstIndex(where: { $0.app == AppIndex(1) }) { bench.answer(ok, at: other) }
      bench.acknowledge()
      bench.pass(.milliseconds(10))
    }
    #expect(held <= .milliseconds(50) + .seconds(20) / 50 + .milliseconds(50), "\(held)")
    #expect(bench.count(.deferred) > 500)
    #expect(bench.machine.inFlight(of: AppIndex(0)) >= 90)
  }

  @Test func aBriskAppAtItsCapIsWaitedForHoweverOften() {
    var bench = MachineBench(maxInFlight: 1000, perApp: 100)
    bench.assign()
    var offset: Int64 = 0
    for _ in 0..<400 {
      if bench.machine.recordRoom() > 0 {
        bench.poll(app: 0, 60, from: offset)
        bench.poll(app: 1, 1, from: offset + 60)
        offset += 61
      }
      for _ in 0..<10 where !bench.submitted.isEmpty { bench.answer(ok) }
      bench.acknowledge()
      bench.pass(.milliseconds(10))
    }
    #expect(bench.count(.deferred) == 0)
    #expect(bench.count(.results) > 3500)
  }

  /// All apps connect at once when the service starts with a backlog before it: the ones that come first have room, and
  /// those at their caps have not answered yet. Nothing is wrong with them.
  @Test func whatAppsHaveBeyondTheirCapsIsWaitedForWhileTheyConnectForTheFirstTime() {
    var bench = MachineBench(maxInFlight: 1000, perApp: 100, startup: .seconds(1))
    bench.assign(0..<2)
    bench.poll(app: 0, 120)
    bench.poll(app: 1, 1, partition: 1)
    for _ in 0..<9 { bench.pass(.milliseconds(100)) }
    #expect(bench.count(.deferred) == 0)
    #expect(bench.machine.isIntakeHeld)
    bench.answerAll()
    bench.acknowledge()
    bench.pass(.milliseconds(10))
    #expect(bench.submitted.count == 20)
    #expect(bench.count(.deferred) == 0)
  }

  /// And that ends: once, a second after the first record.
  @Test func anAppThatDoesNotConnectIsWaitedForOnceWhenTheServiceStarts() {
    var bench = MachineBench(maxInFlight: 1000, perApp: 100, startup: .seconds(1))
    bench.assign(0..<2)
    bench.poll(app: 0, 120)
    bench.poll(app: 1, 1, partition: 1)
    for _ in 0..<100 where bench.machine.isIntakeHeld { bench.pass(.milliseconds(10)) }
    #expect(bench.moment.instant <= MachineBench(apps: 1).moment.instant + .milliseconds(1060))
    #expect(bench.count(.deferred) + bench.published.count >= 20)
    bench.acknowledge()
    bench.poll(app: 0, 5, from: 120)
    bench.pass(.milliseconds(60))
    #expect(!bench.machine.isIntakeHeld)
  }

  /// All have much to do, and what is sent now ends a fifth of a second later. An app that begins is at its cap before
  /// the first of its own can have ended, which is no sign of slowness.
  @Test func anAppThatBeginsIsGivenTheTimeThatAllTakeAtPresent() {
    var bench = MachineBench(maxInFlight: 1000, perApp: 100, apps: 3)
    bench.assign(0..<2)
    var offset: Int64 = 0
    for step in 0..<200 {
      // A steady load, twenty turns behind; once there is room for others, and app 1 was at its cap, the purse is spent.
      bench.poll(app: 0, 5, from: offset)
      offset += 5
      if step >= 20 { for _ in 0..<5 { bench.answer(ok) } }
      bench.acknowledge()
      bench.pass(.milliseconds(10))
    }
    bench.poll(app: 2, 1, from: 0, partition: 1)
    bench.poll(app: 1, 130, from: 1, partition: 1)
    for _ in 0..<20 { bench.pass(.milliseconds(10)) }
    #expect(bench.count(.deferred) == 0)
    #expect(bench.machine.isIntakeHeld)
    for _ in 0..<60 { bench.pass(.milliseconds(10)) }
    bench.acknowledge()
    #expect(bench.count(.deferred) == 30, "it has not moved for longer than that")
  }

  @Test func aDozenAppsThatDoNotMoveLeaveRoomToOneThatDoes() {
    var bench = MachineBench(maxInFlight: 400, perApp: 100, apps: 13)
    bench.assign()
    bench.pass(.seconds(1))
    var offset: Int64 = 0
    for round in 0..<6 {
      for app in 0..<12 {
        bench.poll(app: app, round == 0 ? 1 : 10, from: offset)
        offset += 10
      }
      bench.acknowledge()
      bench.pass(.seconds(1))
    }
    #expect(bench.machine.recordRoom() > 0)
    bench.poll(app: 12, 30, from: offset)
    #expect(bench.submitted.count { $0.app == AppIndex(12) } == 30)
  }

  @Test func anAppAloneWaitsForItself() {
    var bench = MachineBench(maxInFlight: 1000, perApp: 100)
    bench.assign()
    bench.poll(app: 0, 400)
    for _ in 0..<300 where !bench.submitted.isEmpty {
      for _ in 0..<5 where !bench.submitted.isEmpty { bench.answer(ok) }
      bench.acknowledge()
      bench.pass(.milliseconds(10))
    }
    #expect(bench.count(.results) == 400)
    #expect(bench.count(.deferred) == 0)
  }
}
