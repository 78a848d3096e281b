import APNs
import Testing
import Wire

@testable import Delivery

@Suite struct EnvironmentGuardTests {
  /// Notes so many answers and gives the changes, with the number of the answer that brought each.
  private func note(
    _ count: Int, bad: (Int) -> Bool, _ environment: inout EnvironmentGuard
  ) -> [Int: EnvironmentGuard.Change] {
    (1...count).reduce(into: [:]) { changes, number in changes[number] = environment.note(isBad: bad(number)) }
  }

  @Test func aHundredBadTokensAreSuspicious() {
    var environment = EnvironmentGuard()
    #expect(note(500, bad: { _ in true }, &environment) == [100: .suspected])
    #expect(environment.isSuspect)
  }

  @Test(arguments: [(79, false), (80, true)])
  func itTakesFourOutOfFive(percent: Int, isSuspect: Bool) {
    var environment = EnvironmentGuard()
    // The good ones come first, so that the share only grows.
    _ = note(100, bad: { $0 > 100 - percent }, &environment)
    #expect(environment.isSuspect == isSuspect)
  }

  @Test func aStateWithSomeDeadTokensIsNotSuspicious() {
    var environment = EnvironmentGuard()
    var random = SeededRandom(seed: 4)
    #expect(note(20_000, bad: { _ in random.chance(0.6) }, &environment).isEmpty)
  }

  @Test func onlyTheLastTwoHundredCount() {
    var environment = EnvironmentGuard()
    _ = note(10_000, bad: { _ in false }, &environment)
    #expect(note(300, bad: { _ in true }, &environment) == [160: .suspected])
  }

  @Test func itClearsBelowOneInFive() {
    var environment = EnvironmentGuard()
    _ = note(200, bad: { _ in true }, &environment)
    // 161 good ones leave 39 bad ones of 200.
    #expect(note(400, bad: { _ in false }, &environment) == [161: .cleared])
    #expect(!environment.isSuspect)
    #expect(note(400, bad: { _ in true }, &environment) == [160: .suspected])
  }

  @Test func onlyAnswersAboutTheTokenCount() {
    var environment = EnvironmentGuard()
    for reason in Reason.allCases where reason != .unknown {
      let response = Response(status: reason.status ?? 0, reason: reason)
      for _ in 0..<300 { _ = environment.note(response) }
      let isAboutTheToken = reason == .badDeviceToken || reason == .deviceTokenNotForTopic
      #expect(environment.isSuspect == isAboutTheToken, "\(reason)")
      if isAboutTheToken { environment = EnvironmentGuard() }
    }
  }

  @Test func eventsOfASuspectAppSaySo() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 150)
    bench.poll(app: 1, 10, from: 150)
    let bad = SendResult.answered(Response(status: 400, reason: .badDeviceToken))
    bench.answerAll(bad)
    bench.acknowledge()
    let events = bench.stored(.invalidTokens)
    #expect(events.count == 160)
    #expect(events.prefix(99).allSatisfy { $0.contains(#""suspect":false"#) })
    #expect(events[99..<150].allSatisfy { $0.contains(#""suspect":true"#) })
    #expect(events.suffix(10).allSatisfy { $0.contains(#""app":"app-1""#) && $0.contains(#""suspect":false"#) })
    let changes = bench.events.compactMap { event in
      if case .environment(let app, let change) = event { "\(app.value) \(change)" } else { nil }
    }
    #expect(changes == ["0 suspected"])
    #expect(bench.machine.isSuspect(AppIndex(0)) && !bench.machine.isSuspect(AppIndex(1)))
  }

  @Test func onlyFirstAttemptsCount() {
    var policy = RetryPolicy()
    policy.attempts = 1000
    var bench = MachineBench(policy: policy)
    bench.assign()
    bench.poll(app: 0, 150)
    bench.answerAll(.answered(Response(status: 500)))
    while bench.submitted.count < 150, bench.machine.nextDeadline != nil { bench.pass(.seconds(1)) }
    #expect(bench.submitted.count == 150)
    bench.answerAll(.answered(Response(status: 400, reason: .badDeviceToken)))
    #expect(!bench.machine.isSuspect(AppIndex(0)))
  }

  /// APNs has called every token of the first app bad.
  private func benchWithASuspect() -> MachineBench {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 150)
    bench.answerAll(.answered(Response(status: 400, reason: .badDeviceToken)))
    #expect(bench.machine.isSuspect(AppIndex(0)))
    return bench
  }

  @Test func anotherEnvironmentClearsTheSuspicion() {
    var bench = benchWithASuspect()
    var apps = bench.machine.apps
    bench.machine.update(apps: apps, at: bench.moment)
    #expect(bench.machine.isSuspect(AppIndex(0)))
    apps.update(AppRules(name: "app-0", bundleID: "com.example.app0", environment: .sandbox))
    bench.machine.update(apps: apps, at: bench.moment)
    bench.collect()
    #expect(!bench.machine.isSuspect(AppIndex(0)))
    guard case .environment(_, .cleared) = bench.events.last else {
      Issue.record("not told")
      return
    }
  }

  @Test func anAppThatIsRemovedIsSuspectNoMore() {
    var bench = benchWithASuspect()
    var apps = bench.machine.apps
    apps.remove(AppIndex(0))
    bench.machine.update(apps: apps, at: bench.moment)
    #expect(!bench.machine.isSuspect(AppIndex(0)))
    #expect(bench.machine.events.contains { if case .environment(AppIndex(0), .cleared) = $0 { true } else { false } })
  }

  @Test func anAnswerToABroadcastIsNeverAboutAToken() throws {
    var bench = MachineBench(apps: 1)
    bench.assign()
    bench.poll(
      (0..<150).map {
        MachineBench.record(
          #"{"id":"b\#($0)","app":"app-0","channel":"Y2hhbm5lbA==","expiration":1790009999,"payload":{"aps":{}}}"#,
          offset: $0)
      })
    #expect(bench.submitted.allSatisfy { $0.notification.isBroadcast })
    bench.answer(.answered(Response(status: 410, reason: .unregistered)))
    bench.answerAll(.answered(Response(status: 400, reason: .badDeviceToken)))
    bench.acknowledge()
    #expect(bench.count(.invalidTokens) == 0)
    #expect(!bench.machine.isSuspect(AppIndex(0)))
    let results = bench.stored(.results)
    #expect(results.count == 150)
    let result = try #require(results.first)
    #expect(result.contains(#""token":null,"channel":"Y2hhbm5lbA==","status":"rejected","http_status":410"#))
    #expect(result.contains(#""topic":"com.example.app0""#) && result.contains(#""push_type":"liveactivity""#))
  }
}
