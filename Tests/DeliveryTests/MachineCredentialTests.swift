import APNs
import Testing
import Wire

@testable import Delivery

/// What refused credentials mean for an app and for the others.
@Suite struct MachineCredentialTests {
  private func refusal(_ status: UInt16, _ reason: Reason) -> SendResult {
    .answered(Response(status: status, reason: reason))
  }

  private func changes(_ bench: MachineBench) -> [String] {
    bench.events.compactMap { event in
      guard case .breaker(let app, let change, _) = event else { return nil }
      return "\(app.value) \(change == .closed ? "closed" : "opened")"
    }
  }

  @Test(
    arguments: Reason.allCases.compactMap { reason in
      reason.verdict == .credentialFault ? (reason.status ?? 0, reason) : nil
    })
  func refusedCredentialsSetAnAppAside(status: UInt16, reason: Reason) throws {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 10)
    for _ in 0..<10 { bench.answer(refusal(status, reason)) }
    #expect(changes(bench) == ["0 opened"])
    bench.poll(app: 0, 20, from: 10)
    #expect(bench.submitted.isEmpty, "what comes now waits")
    bench.poll(app: 1, 20, from: 30)
    #expect(bench.submitted.count == 20, "other apps go on")
    bench.answerAll()

    // One at a time tries, as long as it is refused.
    bench.pass(.seconds(2))
    #expect(bench.submitted.count == 1)
    bench.answer(refusal(status, reason))
    #expect(bench.submitted.isEmpty)
    bench.pass(.seconds(4))
    #expect(bench.submitted.count == 1)
    bench.answer(.answered(Response(status: 200)))
    #expect(changes(bench) == ["0 opened", "0 opened", "0 closed"])
    bench.acknowledge()
    #expect(bench.stored(.results).filter { $0.contains(#""status":"rejected""#) }.count == 11)
    #expect(bench.count(.invalidTokens) == 0, "no token dies of it")
  }

  @Test func aProviderTokenThatStaysExpiredSetsTheAppAside() {
    var bench = MachineBench(apps: 1)
    bench.assign()
    bench.poll(app: 0, 10)
    for round in 1...3 {
      #expect(bench.submitted.count == 10, "round \(round)")
      for _ in 0..<10 { bench.answer(refusal(403, .expiredProviderToken)) }
      bench.pass(.seconds(1))
    }
    #expect(bench.submitted.isEmpty)
    #expect(changes(bench) == ["0 opened"])
    bench.acknowledge()
    let results = bench.stored(.results)
    #expect(results.count == 10)
    #expect(results.allSatisfy { $0.contains(#""status":"rejected""#) && $0.contains(#""attempts":3"#) })
  }

  @Test func aStormOfExpiredProviderTokensThatARefreshCuresHurtsNobody() {
    var bench = MachineBench(apps: 1)
    bench.assign()
    bench.poll(app: 0, 100)
    bench.answerAll(refusal(403, .expiredProviderToken))
    bench.pass(.seconds(1))
    #expect(bench.submitted.count == 100)
    bench.answerAll()
    bench.acknowledge()
    #expect(changes(bench).isEmpty)
    #expect(bench.stored(.results).filter { $0.contains(#""status":"delivered""#) }.count == 100)
  }

  @Test func troubleThatLastsIsParkedAndComesBackAsTheSameRequest() throws {
    var bench = MachineBench(apps: 1)
    bench.assign()
    bench.assign(0..<1, topic: MachineBench.deferred)
    bench.poll(app: 0, 1)
    for _ in 0..<3 {
      #expect(bench.submitted.count == 1)
      bench.answer(.answered(Response(status: 503, reason: .serviceUnavailable)))
      bench.pass(.seconds(3))
    }
    #expect(bench.submitted.isEmpty && bench.published.count == 1)
    bench.acknowledge()
    #expect(bench.machine.inFlight == 0, "nothing is held in memory meanwhile")
    let parked = try #require(bench.stored.first { $0.topic == .deferred })
    func header(_ name: String) -> Int64? { parked.headers.first { $0.name == name }.flatMap { Int64($0.value) } }
    let wait = try #require(header(OwnHeader.notBefore)) - bench.moment.time.milliseconds
    #expect(wait > 880_000 && wait <= 1_125_000)
    #expect(header(OwnHeader.attempts) == 3)
  }
}
