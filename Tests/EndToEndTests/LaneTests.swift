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
}
