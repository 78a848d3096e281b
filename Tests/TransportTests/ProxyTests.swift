import TestSupport
import Testing
import Wire

@testable import Transport

@Suite struct ProxyTests {
  /// Connects to `endpoint` through the proxy.
  private func connect(
    _ fixture: LoopFixture, to endpoint: Endpoint, through proxy: Proxy, tls: TLSContext? = nil,
    within limit: Duration = .seconds(20), _ recorder: Recorder
  ) {
    fixture.loop.execute { [loop = fixture.loop] in
      _ = ByteStream.connect(
        on: loop, to: endpoint, through: proxy, tls: tls, deadline: loop.now + limit, delegate: recorder)
    }
  }

  @Test(arguments: Cover.allCases)
  func aTunnelCarriesAStreamBothWays(_ cover: Cover) throws {
    let fixture = try LoopFixture()
    let (client, server) = try cover.contexts()
    let listener = try fixture.listen(tls: server) { echo() }
    let proxy = try ConnectProxy()
    defer { proxy.stop() }
    let data = pattern(2_000_000)
    let recorder = Recorder(opened: { stream in stream.write(data.span) })
    connect(fixture, to: listener.endpoint, through: Proxy(proxy.endpoint), tls: client, recorder)
    #expect(recorder.log.wait { $0.count >= data.count || $0.closed > 0 })
    #expect(recorder.log.value.bytes == data)
    let target = listener.endpoint.description
    #expect(proxy.state.value.requests == ["CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\r\n"])
  }

  @Test func whoWeAreIsToldWithBasicAuthentication() throws {
    let fixture = try LoopFixture()
    let proxy = try ConnectProxy([.text("HTTP/1.1 200 OK\r\n\r\n")])
    defer { proxy.stop() }
    let recorder = Recorder()
    // The example of RFC 7617, section 2.
    let ours = Proxy(proxy.endpoint, username: "Aladdin", password: "open sesame")
    connect(fixture, to: Endpoint(host: "::1", port: 443), through: ours, recorder)
    #expect(recorder.log.wait { $0.opened > 0 })
    let expected =
      "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\nProxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"
    #expect(proxy.state.value.requests == [expected])
    #expect(!"\(ours)".contains("QWxh"))
  }

  @Test func whatFollowsTheAnswerBelongsToTheTarget() throws {
    let fixture = try LoopFixture()
    let proxy = try ConnectProxy([.text("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 201 x\r\na: b\r\n\r\nHTTP/1.1 greeting")]
    )
    defer { proxy.stop() }
    let recorder = Recorder(opened: { stream in write(" echo", to: stream) })
    connect(fixture, to: Endpoint(host: "target", port: 1), through: Proxy(proxy.endpoint), recorder)
    #expect(recorder.log.wait { $0.count >= 22 || $0.closed > 0 })
    #expect(String(decoding: recorder.log.value.bytes, as: UTF8.self) == "HTTP/1.1 greeting echo")
  }

  @Test(arguments: [
    ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", TransportError.Kind.proxyRefused, "407 Proxy Auth", 407),
    ("HTTP/1.1 503 \r\ncontent-length: 0\r\n\r\n", .proxyRefused, "refuses CONNECT: 503", 503),
    ("HTTP/1.1 302 Found\n\n", .proxyRefused, "302 Found", 302),
    ("SSH-2.0-OpenSSH_9.2\r\n", .protocolViolation, "no HTTP/1.1", 0),
    ("HTTP/1.1 OK\r\n\r\n", .protocolViolation, "no HTTP/1.1", 0),
    ("HTTP/1.1 200 " + String(repeating: "x", count: 9000), .protocolViolation, "longer than", 0),
  ])
  func anythingButSuccessIsAnErrorThatNamesTheProxy(
    answer: String, kind: TransportError.Kind, words: String, code: Int
  ) throws {
    let fixture = try LoopFixture()
    let proxy = try ConnectProxy([.text(answer)])
    defer { proxy.stop() }
    let recorder = Recorder()
    connect(fixture, to: Endpoint(host: "target", port: 1), through: Proxy(proxy.endpoint), recorder)
    let log = try #require(recorder.waitForEnd())
    let error = try #require(log.error)
    #expect(log.opened == 0)
    #expect(error.kind == kind)
    #expect(error.code == UInt(code))
    #expect(error.subject == "target:1")
    #expect(error.cause.hasPrefix("proxy \(proxy.endpoint.description): "))
    #expect(error.cause.contains(words), "\(error)")
    #expect(error.grade == (code == 407 ? .configuration : .transient))
  }

  @Test func aProxyThatHangsUpIsTold() throws {
    let fixture = try LoopFixture()
    let proxy = try ConnectProxy([.close])
    defer { proxy.stop() }
    let recorder = Recorder()
    connect(fixture, to: Endpoint(host: "target", port: 1), through: Proxy(proxy.endpoint), recorder)
    let error = try #require(recorder.waitForEnd()?.error)
    #expect(error.kind == .endedEarly)
    #expect(error.cause.contains("proxy \(proxy.endpoint.description)"))
  }

  @Test func aProxyThatIsSilentEndsAtTheDeadline() throws {
    let fixture = try LoopFixture()
    let proxy = try ConnectProxy([.silence])
    defer { proxy.stop() }
    let recorder = Recorder()
    connect(
      fixture, to: Endpoint(host: "target", port: 1), through: Proxy(proxy.endpoint), within: .milliseconds(300),
      recorder)
    let error = try #require(recorder.waitForEnd()?.error)
    #expect(error.kind == .timedOut)
    #expect(error.cause.contains("proxy \(proxy.endpoint.description)"))
  }

  @Test func aProxyThatIsAwayIsToldByName() throws {
    let fixture = try LoopFixture()
    let proxy = try ConnectProxy()
    proxy.stop()
    let recorder = Recorder()
    connect(fixture, to: Endpoint(host: "target", port: 1), through: Proxy(proxy.endpoint), recorder)
    let error = try #require(recorder.waitForEnd()?.error)
    #expect(error.kind == .connect)
    #expect(error.cause.contains("proxy \(proxy.endpoint.description)"))
  }

  @Test func anAnswerInPiecesIsOneAnswer() {
    let text = Array("HTTP/1.1 200 OK\r\nx: y\r\n\r\n".utf8)
    var answer = ProxyAnswer()
    for byte in text.dropLast() { #expect(answer.take([byte].span) == .incomplete) }
    #expect(answer.take([0x0a, 0x50].span) == .ended(status: 200, reason: "OK", taken: 1))
  }
}
