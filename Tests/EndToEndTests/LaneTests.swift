import APNs
import Delivery
import MockAPNs
import TestSupport
import Testing
import Transport
import Wire

@testable import Service

@Suite struct LaneTests {
  @Test func aProxyThatComesBackIsUsedAgainByItself() throws {
    let proxy = try ConnectProxy([.text("HTTP/1.1 503 Busy\r\n\r\n"), .text("HTTP/1.1 503 Busy\r\n\r\n"), .tunnel])
    defer { proxy.stop() }
    var limits = PoolLimits()
    limits.backoffBase = .milliseconds(20)
    let fixture = try LaneFixture(proxy: Proxy(proxy.endpoint), limits: limits)
    defer { fixture.stop() }
    // What cannot be sent comes back, and is sent again as the delivery would do.
    var sent = 0
    #expect(
      waitUntil {
        fixture.submit(1, first: sent)
        sent += 1
        return fixture.results(sent)[200] == 1
      })
    #expect(proxy.state.value.requests.count == 3)
    #expect(fixture.log.value.lines.contains("proxy \(proxy.endpoint.description): refuses CONNECT: 503 Busy"))
  }

  @Test func aGoAwayIsCountedAndLoggedOnceWithItsReason() throws {
    var configuration = MockServer.Configuration()
    let reason = #"{"reason":"Shutdown"}"#
    // The same connection says it twice.
    configuration.script = Script([
      Script.Rule(
        Script.Condition(connection: 1, afterRequests: 1, times: 2),
        .goAway(code: 0, last: .newest, debugData: reason, closes: false))
    ])
    let fixture = try LaneFixture(configuration)
    defer { fixture.stop() }
    fixture.submit(1)
    #expect(fixture.results(1)[200] == 1)
    fixture.submit(50, first: 1)
    #expect(fixture.results(51)[200] == 51)
    #expect(fixture.server.journal.counts.goAwaysSent == 2)
    let goAways = fixture.log.value.lines.split(separator: "\n").filter { $0.contains("goaway") }
    #expect(goAways.count == 1)
    #expect(goAways.first?.contains("Shutdown") == true, "\(goAways)")
    // The first row is that of unknown apps.
    #expect(fixture.registry.snapshot().appNumbers[AppSeries.rowLength + AppSeries.goAways.index] == 1)
  }

  @Test(arguments: [2, 7])
  func aConnectionThatResetsItsStreamsIsReplaced(code: Int) throws {
    var configuration = MockServer.Configuration()
    configuration.script = Script([Script.Rule(Script.Condition(connection: 1), .reset(code: UInt32(code)))])
    var limits = PoolLimits()
    limits.probeAfter = .zero
    let fixture = try LaneFixture(configuration, limits: limits)
    defer { fixture.stop() }
    for number in 0..<3 {
      fixture.submit(1, first: number)
      #expect(fixture.results(number + 1)[0] == number + 1)
    }
    fixture.submit(1, first: 3)
    #expect(fixture.results(4)[200] == 1)
    #expect(fixture.closed(.replaced) == 1)
  }

  @Test func aConnectionThatAnswersNoPingIsToldByItsName() throws {
    var configuration = MockServer.Configuration()
    configuration.script = Script([Script.Rule(Script.Condition(connection: 1), .silentConnection)])
    var limits = PoolLimits()
    limits.idlePing = .milliseconds(20)
    let fixture = try LaneFixture(configuration, limits: limits, pingTimeout: .milliseconds(100))
    defer { fixture.stop() }
    fixture.submit(1)
    #expect(fixture.results(1)[0] == 1, "the path was cut under it")
    #expect(waitUntil { fixture.closed(.unresponsive) == 1 })
    #expect(fixture.closed(.idle) == 0)
    #expect(fixture.log.value.lines.contains("it answered no PING"))
  }

  @Test func whatWaitedForAStreamInVainSaysNothingAgainstTheApp() throws {
    var configuration = MockServer.Configuration()
    configuration.script = Script([Script.Rule(Script.Condition(afterRequests: 1), .silence)])
    configuration.streamsLater = 1
    var limits = PoolLimits()
    limits.maxConnections = 1
    limits.requestTimeout = .seconds(120)
    let fixture = try LaneFixture(configuration, limits: limits, requestTimeout: .milliseconds(300))
    defer { fixture.stop() }
    fixture.submit(1)
    #expect(fixture.results(1)[200] == 1)
    fixture.submit(20, first: 1)
    #expect(fixture.results(21)[0] == 20)
    let failures = fixture.outcomes.value.compactMap { outcome in
      if case .notSent(let failure) = outcome.result { failure } else { nil }
    }
    #expect(!failures.isEmpty && failures.allSatisfy { $0 == .noStream }, "\(failures)")
  }

  @Test func aBroadcastGoesToItsChannel() throws {
    var configuration = MockServer.Configuration()
    configuration.rules.channels = ["Y2hhbm5lbA=="]
    let fixture = try LaneFixture(configuration)
    defer { fixture.stop() }
    fixture.submit(1) { LaneFixture.broadcast($0, channel: "Y2hhbm5lbA==") }
    #expect(fixture.results(1) == [200: 1])
    fixture.submit(1, first: 1) { LaneFixture.broadcast($0, channel: "b3RoZXI=") }
    #expect(fixture.results(2) == [200: 1, 400: 1])
    guard case .answered(let first) = fixture.outcomes.value[0].result,
      case .answered(let second) = fixture.outcomes.value[1].result
    else { return }
    #expect(first.apnsID == UUID(high: 1, low: 0), "the request id comes back")
    #expect(second.reason == .channelNotRegistered)
    let seen = try #require(fixture.server.journal.seen.first)
    let names = Set(seen.fields.map(\.name))
    #expect(seen.fields.contains { $0.name == ":path" && $0.value == "/4/broadcasts/apps/com.example.shop" })
    #expect(seen.token == "Y2hhbm5lbA==")
    #expect(!names.contains("apns-topic") && !names.contains("apns-id"))
  }
}
