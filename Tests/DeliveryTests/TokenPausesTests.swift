import APNs
import Testing
import Wire

@testable import Delivery

/// Device tokens that APNs throttles: what else is for them waits, and nothing else does.
@Suite struct TokenPausesTests {
  private let ok = SendResult.answered(Response(status: 200))
  private let start = Instant(nanoseconds: 5_000_000_000)

  private func throttled(_ wait: Duration? = nil) -> SendResult {
    .answered(Response(status: 429, reason: .tooManyRequests, retryAfter: wait))
  }

  /// Requests for one device, or several, in order.
  private func poll(_ bench: inout MachineBench, _ tokens: [String], from offset: Int64 = 0, extra: String = "") {
    bench.poll(
      tokens.enumerated().map { index, token in
        MachineBench.record(
          #"{"id":"t\#(offset + Int64(index))","app":"app-0","token":"\#(token)"\#(extra),"payload":{"aps":{}}}"#,
          offset: offset + Int64(index))
      })
  }

  private func tokens(_ bench: MachineBench) -> [String] {
    bench.submitted.map { Bytes($0.notification.storage, $0.notification.token).text }
  }

  @Test func whatIsForAThrottledDeviceWaitsAndTheOthersGoOn() {
    var bench = MachineBench()
    bench.assign()
    poll(&bench, ["aa"])
    bench.answer(throttled(.seconds(10)))
    poll(&bench, ["aa", "bb", "AA", "cc"], from: 1)
    #expect(tokens(bench) == ["bb", "cc"])
    bench.answerAll()
    bench.pass(.seconds(9))
    #expect(bench.submitted.isEmpty)
    #expect(bench.machine.inFlight(of: AppIndex(0)) == 3)
    // The one that met the answer first, then the others one by one.
    bench.pass(.seconds(1))
    #expect(tokens(bench) == ["aa"])
    bench.pass(.seconds(1))
    #expect(tokens(bench) == ["aa", "aa"])
    bench.pass(.seconds(1))
    #expect(tokens(bench) == ["aa", "aa", "AA"])
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.count(.results) == 5)
    #expect(bench.machine.tokenPauses.isEmpty)
  }

  @Test func afterThePauseOneGoesAtOnceAndTheNextASecondLater() {
    var pauses = TokenPauses()
    pauses.pause(1, until: start + .seconds(10), now: start)
    let later = start + .seconds(30)
    #expect(pauses.wait(1, isDue: false, now: later) == nil)
    #expect(pauses.wait(1, isDue: false, now: later) == later + .seconds(1))
    #expect(pauses.wait(1, isDue: false, now: later) == later + .seconds(2))
  }

  @Test func anAnswerOfAnotherKindEndsThePause() {
    var bench = MachineBench()
    bench.assign()
    poll(&bench, ["aa", "aa"])
    bench.answer(throttled(.seconds(10)))
    bench.answer(ok)
    poll(&bench, ["aa", "aa"], from: 2)
    #expect(tokens(bench) == ["aa", "aa"])
    // Trouble of Apple's says nothing of the device.
    bench.answer(throttled(.seconds(10)))
    bench.answer(.answered(Response(status: 503, reason: .serviceUnavailable)))
    poll(&bench, ["aa"], from: 4)
    #expect(bench.submitted.isEmpty)
  }

  @Test func whoMeetsTheThrottleAgainMakesTheOthersWaitLonger() {
    var bench = MachineBench()
    bench.assign()
    poll(&bench, ["aa"])
    bench.answer(throttled(.seconds(5)))
    poll(&bench, ["aa"], from: 1)
    bench.pass(.seconds(5))
    #expect(tokens(bench) == ["aa"])
    bench.answer(throttled(.seconds(20)))
    bench.pass(.seconds(19))
    #expect(bench.submitted.isEmpty)
    bench.pass(.seconds(3))
    #expect(tokens(bench) == ["aa", "aa"])
  }

  @Test func longWaitsAreParked() {
    var bench = MachineBench()
    bench.assign()
    poll(&bench, ["aa"])
    bench.answer(throttled(.seconds(900)))
    poll(&bench, ["aa", "bb"], from: 1)
    #expect(bench.published.map(\.item.topic) == [.deferred, .deferred])
    #expect(tokens(bench) == ["bb"])
    let until = bench.published.map { $0.item.extraHeaders.first { $0.name == OwnHeader.notBefore }?.value }
    #expect(until == ["1790000900000", "1790000901000"])
  }

  @Test func aRequestOfOneAttemptIsTriedAtOnceAndOneThatExpiresEndsInTime() {
    var bench = MachineBench()
    bench.assign()
    poll(&bench, ["aa"])
    bench.answer(throttled(.seconds(20)))
    poll(&bench, ["aa"], from: 1, extra: #","expiration":0"#)
    #expect(tokens(bench) == ["aa"])
    bench.answer(throttled(.seconds(20)))
    bench.acknowledge()
    #expect(bench.stored(.results).first?.contains(#""status":"failed""#) == true)
    poll(&bench, ["aa"], from: 2, extra: #","expiration":1790000004"#)
    bench.pass(.seconds(4))
    bench.acknowledge()
    #expect(bench.submitted.isEmpty)
    #expect(bench.stored(.results).last?.contains(#""status":"expired""#) == true)
  }

  @Test func aFloodForOneDeviceFillsNoMemory() {
    var bench = MachineBench()
    bench.assign()
    poll(&bench, ["aa"])
    bench.answer(throttled(.seconds(2)))
    poll(&bench, Array(repeating: "aa", count: 500), from: 1)
    #expect(bench.machine.waiting <= 31)
    #expect(bench.published.count == 501 - bench.machine.waiting)
    let latest = bench.published.compactMap { item in
      item.item.extraHeaders.first { $0.name == OwnHeader.notBefore }.flatMap { Int64($0.value) }
    }.max()
    #expect(latest ?? .max <= 1_790_000_061_000)
  }

  @Test func appsDoNotShareAPauseAndDigitsCountAlikeInEitherCase() {
    let token = Array("ab12".utf8)
    let upper = Array("AB12".utf8)
    #expect(TokenPauses.key(AppIndex(0), token.span) == TokenPauses.key(AppIndex(0), upper.span))
    #expect(TokenPauses.key(AppIndex(0), token.span) != TokenPauses.key(AppIndex(1), token.span))
  }

  @Test func thereAreOnlySoManyAndWhatIsOverMakesRoom() {
    var pauses = TokenPauses()
    for key in 0..<UInt64(TokenPauses.limit) { pauses.pause(key, until: start + .seconds(10), now: start) }
    pauses.pause(1 << 40, until: start + .seconds(10), now: start)
    #expect(pauses.count == TokenPauses.limit)
    #expect(pauses.wait(1 << 40, isDue: false, now: start) == nil)
    let later = start + .seconds(60)
    pauses.pause(1 << 40, until: later + .seconds(10), now: later)
    #expect(pauses.count == 1)
    #expect(pauses.wait(1 << 40, isDue: false, now: later) == later + .seconds(11))
  }
}
