import TestSupport
import Testing
import Wire

@testable import Transport

/// A responder and a loop of its own, for the time of `run`.
private final class Fixture {
  let loop: EventLoop
  let responder: HTTP1Responder
  let endpoint: Endpoint

  init(_ limits: HTTP1Limits = HTTP1Limits(), at endpoint: Endpoint = Endpoint(host: "127.0.0.1", port: 0)) throws {
    loop = try EventLoop.start(name: "http1-test")
    responder = try HTTP1Responder.listen(on: loop, at: endpoint, limits: limits) { request in
      switch request.path {
      case "/big": HTTP1Response(body: Bytes([UInt8](repeating: 66, count: 16 << 20)))
      case "/half": HTTP1Response(body: Bytes([UInt8](repeating: 67, count: 100 << 10)))
      case "/odd": HTTP1Response(headers: [("X-Odd", "a\r\nInjected: b")], body: Bytes(""))
      default: HTTP1Response(body: Bytes("you asked for \(request.path)"))
      }
    }
    self.endpoint = try #require(responder.endpoint)
  }

  static func run(
    _ limits: HTTP1Limits = HTTP1Limits(), at endpoint: Endpoint = Endpoint(host: "127.0.0.1", port: 0),
    _ body: (Fixture) throws -> Void
  ) throws {
    let fixture = try Fixture(limits, at: endpoint)
    defer {
      fixture.responder.close()
      fixture.loop.stop()
    }
    try body(fixture)
  }

  /// All that a client is sent when it sends this, until the server closes.
  func exchange(_ text: String) -> String { client(text).textAtTheEnd() }

  func client(_ text: String = "", paused: Bool = false) -> RawClient {
    RawClient(loop, endpoint, sending: Array(text.utf8), paused: paused)
  }
}

@Suite struct HTTP1ResponderTests {
  @Test func getIsAnsweredAndTheConnectionGoesOn() throws {
    try Fixture.run { fixture in
      let client = fixture.client("GET /one HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(client.waitFor("you asked for /one"))
      client.send("GET /two HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      let text = client.textAtTheEnd()
      #expect(text.hasPrefix("HTTP/1.1 200 OK\r\nDate: "))
      #expect(text.contains("Content-Length: 18\r\n"))
      #expect(text.contains("Content-Type: text/plain; charset=utf-8\r\n"))
      #expect(text.hasSuffix("Connection: close\r\n\r\nyou asked for /two"))
      #expect(client.state.value.error == nil)
    }
  }

  @Test func headHasTheLengthAndNoBody() throws {
    try Fixture.run { fixture in
      let text = fixture.exchange("HEAD /one HTTP/1.0\r\n\r\n")
      #expect(text.contains("Content-Length: 18\r\n"))
      #expect(text.hasSuffix("\r\n\r\n"))
    }
  }

  @Test func pipelinedRequestsAreAnsweredInOrder() throws {
    try Fixture.run { fixture in
      let all = (0..<20).map { "GET /\($0) HTTP/1.1\r\nHost: a\r\n\r\n" }.joined()
      let client = fixture.client(all + "GET /end HTTP/1.0\r\n\r\n")
      let text = client.textAtTheEnd()
      var rest = text[...]
      for number in (0..<20).map(String.init) + ["end"] {
        let found = try #require(rest.firstRange(of: "you asked for /\(number)"))
        rest = rest[found.upperBound...]
      }
    }
  }

  @Test func manyPipelinedLargeAnswersAreBoundedAndComplete() throws {
    try Fixture.run { fixture in
      let all = String(repeating: "GET /half HTTP/1.1\r\nHost: a\r\n\r\n", count: 200)
      let client = fixture.client(all + "GET /end HTTP/1.0\r\n\r\n")
      _ = client.textAtTheEnd()
      let bodies = client.state.value.received.count { $0 == 67 }
      #expect(bodies >= 200 * (100 << 10))
      #expect(client.state.value.error == nil)
    }
  }

  @Test(arguments: [
    ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "405"), ("\u{16}\u{3}\u{1}\r\n\r\n", "400"),
    ("GET / HTTP/2.0\r\n\r\n", "505"), ("GET /" + String(repeating: "x", count: 9000), "414"),
    ("GET / HTTP/1.1\r\nHost: a\r\nX: " + String(repeating: "x", count: 9000), "431"),
  ])
  func refusalsAreAnsweredAndClosed(text: String, status: String) throws {
    try Fixture.run { fixture in
      let client = fixture.client(text)
      let answer = client.textAtTheEnd()
      #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
      #expect(answer.contains("Connection: close\r\n"))
      if status == "405" { #expect(answer.contains("Allow: GET, HEAD\r\n")) }
    }
  }

  @Test func lineEndsInFieldsDoNotBeginNewFields() throws {
    try Fixture.run { fixture in
      let text = fixture.exchange("GET /odd HTTP/1.0\r\n\r\n")
      #expect(text.contains("X-Odd: a  Injected: b\r\n"))
    }
  }

  @Test func slowHeadIsEnded() throws {
    var limits = HTTP1Limits()
    limits.headTime = .milliseconds(50)
    try Fixture.run(limits) { fixture in
      let text = fixture.exchange("GET / HTTP/1.1\r\nHos")
      #expect(text.hasPrefix("HTTP/1.1 408 "))
    }
  }

  @Test func idleConnectionIsEndedWithoutAWord() throws {
    var limits = HTTP1Limits()
    limits.idleTime = .milliseconds(50)
    limits.answerTime = .milliseconds(50)
    try Fixture.run(limits) { fixture in
      let client = fixture.client("GET /one HTTP/1.1\r\nHost: a\r\n\r\n")
      let text = client.textAtTheEnd()
      #expect(text.hasSuffix("you asked for /one"))
      #expect(client.state.value.error == nil)
    }
  }

  @Test func clientThatDoesNotTakeItsAnswerIsCutOff() throws {
    var limits = HTTP1Limits()
    limits.answerTime = .milliseconds(100)
    try Fixture.run(limits) { fixture in
      let client = fixture.client("GET /big HTTP/1.1\r\nHost: a\r\n\r\n", paused: true)
      #expect(client.state.wait { $0.closed })
      #expect(waitUntil { fixture.served == 0 })
    }
  }

  @Test func connectionsOverTheLimitAreTold() throws {
    var limits = HTTP1Limits()
    limits.connections = 3
    limits.courtesy = .seconds(600)
    try Fixture.run(limits) { fixture in
      let clients = (0..<3).map { _ in fixture.client("GET /in HTTP/1.1\r\nHost: a\r\n\r\n") }
      for client in clients { #expect(client.waitFor("/in")) }
      let text = fixture.exchange("GET /out HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(text.hasPrefix("HTTP/1.1 503 "))
      for client in clients { client.abort() }
      #expect(waitUntil { fixture.served == 0 })
      let later = fixture.exchange("GET /later HTTP/1.0\r\n\r\n")
      #expect(later.hasSuffix("you asked for /later"))
    }
  }

  @Test func silentConnectionsKeepNobodyOut() throws {
    var limits = HTTP1Limits()
    limits.connections = 3
    limits.courtesy = .zero
    try Fixture.run(limits) { fixture in
      let idle = fixture.client("GET /idle HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(idle.waitFor("/idle"))
      let silent = (0..<20).map { _ in fixture.client("GET / HTTP/1.1\r\nHos") }
      let text = fixture.exchange("GET /in HTTP/1.0\r\n\r\n")
      #expect(text.hasSuffix("you asked for /in"))
      #expect(idle.state.wait { $0.closed })
      #expect(waitUntil { fixture.served <= 3 })
      for client in silent { client.abort() }
    }
  }

  @Test func connectionsThatTakeNothingKeepNobodyOut() throws {
    var limits = HTTP1Limits()
    limits.connections = 3
    limits.courtesy = .zero
    limits.answerTime = .seconds(600)
    try Fixture.run(limits) { fixture in
      let greedy = (0..<3).map { _ in fixture.client("GET /big HTTP/1.1\r\nHost: a\r\n\r\n", paused: true) }
      #expect(waitUntil { fixture.served == 3 && fixture.waiting > 3 << 20 })
      #expect(fixture.exchange("GET /in HTTP/1.0\r\n\r\n").hasSuffix("you asked for /in"))
      for client in greedy { client.abort() }
    }
  }

  @Test func answersThatNobodyTakesAreBoundedInAll() throws {
    var limits = HTTP1Limits()
    limits.waitingBytes = 20 << 20
    try Fixture.run(limits) { fixture in
      // Each of them lets 16 MiB wait; the second one is still let in.
      let greedy = (0..<2).map { _ in fixture.client("GET /big HTTP/1.1\r\nHost: a\r\n\r\n", paused: true) }
      #expect(waitUntil { fixture.waiting > 20 << 20 })
      #expect(fixture.exchange("GET /big HTTP/1.0\r\n\r\n").hasPrefix("HTTP/1.1 503 "))
      #expect(fixture.exchange("GET /healthz HTTP/1.0\r\n\r\n").hasSuffix("you asked for /healthz"))
      for client in greedy { client.abort() }
      #expect(waitUntil { fixture.served == 0 })
      #expect(fixture.exchange("GET /more HTTP/1.0\r\n\r\n").hasSuffix("you asked for /more"))
    }
  }

  @Test func unixSocketServesToo() throws {
    let path = "/tmp/martlet-http1-\(SystemRandomNumberGenerator.number()).sock"
    try Fixture.run(at: Endpoint(unixPath: path)) { fixture in
      let text = fixture.exchange("GET /u HTTP/1.0\r\n\r\n")
      #expect(text.hasSuffix("you asked for /u"))
    }
  }

  @Test(
    arguments: [
      (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
      (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"), (1_740_787_199, "Fri, 28 Feb 2025 23:59:59 GMT"),
      (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
    ] as [(Int64, String)])
  func datesAreWrittenAsHTTPWantsThem(seconds: Int64, text: String) {
    #expect(HTTPDate.text(UnixTime(seconds: seconds)) == text)
    #expect(HTTPDate.time(text) == (seconds < 0 ? nil : UnixTime(seconds: seconds)))
  }
}

extension Fixture {
  /// Connections served now.
  var served: Int { ask { $0.served } }
  /// Bytes that clients have not taken.
  var waiting: Int { ask { $0.waitingBytes } }

  /// Asks the responder on its loop.
  private func ask(_ question: @escaping @Sendable (HTTP1Responder) -> Int) -> Int {
    let answer = Monitor<Int?>(nil)
    loop.execute { [responder] in
      let value = question(responder)
      answer.update { $0 = value }
    }
    _ = answer.wait { $0 != nil }
    return answer.value ?? -1
  }
}

extension SystemRandomNumberGenerator {
  fileprivate static func number() -> UInt32 {
    var generator = SystemRandomNumberGenerator()
    return UInt32(truncatingIfNeeded: generator.next())
  }
}
