import TestSupport
import Testing
import Wire

@testable import Transport

@Suite struct ResolverTests {
  private func address(_ host: String) throws -> SocketAddress {
    try Resolver.passiveAddresses(of: host, port: 1)[0]
  }

  @Test func familiesTakeTurnsAndCallersStartAtDifferentAddresses() throws {
    let all = try ["::1", "::2", "::3", "127.0.0.1", "127.0.0.2"].map { try address($0) }
    func order(_ offset: Int) -> [String] {
      Resolver.interleaved(all, startingAt: offset).compactMap { $0.endpoint?.host }
    }
    #expect(order(0) == ["::1", "127.0.0.1", "::2", "127.0.0.2", "::3"])
    #expect(order(1) == ["::2", "127.0.0.2", "::3", "127.0.0.1", "::1"])
    #expect(order(4).first == "::2")
    #expect(Resolver.interleaved([], startingAt: 3).isEmpty)
  }

  @Test(arguments: ["127.0.0.1", "::1", "localhost"])
  func addressesAreDeliveredOnTheLoop(_ host: String) throws {
    let fixture = try LoopFixture()
    let answer = Monitor<(onLoop: Bool, count: Int)?>(nil)
    Resolver.resolve(host, port: 80, on: fixture.loop) { [loop = fixture.loop] result in
      let count = (try? result.get().count) ?? 0
      answer.update { $0 = (loop.isCurrent, count) }
    }
    #expect(answer.wait { $0 != nil })
    #expect(answer.value?.onLoop == true)
    #expect(answer.value.map { $0.count > 0 } == true)
  }

  @Test func aNameThatDoesNotExistIsAnErrorThatNamesIt() throws {
    let fixture = try LoopFixture()
    let recorder = Recorder()
    fixture.connect(to: Endpoint(host: "no-such-host.invalid", port: 443), recorder)
    let log = try #require(recorder.waitForEnd())
    #expect(log.opened == 0 && log.closed == 1)
    #expect(log.error?.kind == .resolve || log.error?.kind == .timedOut)
    #expect(log.error?.subject.contains("no-such-host.invalid") == true)
  }

  @Test(arguments: [
    ("127.0.0.1:80", "127.0.0.1:80"), ("[::1]:80", "[::1]:80"), (":80", ":80"), ("unix:/run/x", "unix:/run/x"),
    ("host", nil), ("::1:80", nil), ("host:99999", nil), ("unix:", nil), ("[::1:80", nil),
  ])
  func endpointsAreReadAndWritten(_ text: String, _ expected: String?) {
    #expect(Endpoint(parsing: text)?.description == expected)
  }
}
