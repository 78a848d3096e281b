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

  /// Apple wants a fresh look-up before each connection: an answer is good for those who wait for it, and for no more.
  @Test func theSystemIsAskedAnewEachTime() throws {
    let fixture = try LoopFixture()
    let all = try ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map { try address($0) }
    let asked = Monitor(0)
    for round in 0..<3 {
      let answer = Monitor<[String]?>(nil)
      Resolver.resolve(
        "fresh.test", port: 443, on: fixture.loop,
        asking: { _, _ in
          asked.update { $0 += 1 }
          return .success([all[round]])
        }
      ) { result in
        let hosts = (try? result.get())?.compactMap { $0.endpoint?.host }
        answer.update { $0 = hosts }
      }
      #expect(answer.wait { $0 != nil })
      #expect(answer.value == [["127.0.0.1", "127.0.0.2", "127.0.0.3"][round]])
      #expect(asked.value == round + 1)
    }
  }

  @Test func whoAsksWhileAnotherWaitsSharesHisAnswer() throws {
    let fixture = try LoopFixture()
    let one = try address("127.0.0.1")
    let gate = Monitor(false)
    let asked = Monitor(0)
    let answers = Monitor(0)
    for _ in 0..<20 {
      Resolver.resolve(
        "shared.test", port: 443, on: fixture.loop,
        asking: { _, _ in
          asked.update { $0 += 1 }
          _ = gate.wait { $0 }
          return .success([one])
        }
      ) { _ in answers.update { $0 += 1 } }
    }
    gate.update { $0 = true }
    #expect(answers.wait { $0 == 20 })
    #expect(asked.value == 1)
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
