import TestSupport
import Testing
import Wire

@testable import Transport

/// Our client against our server, over real sockets.
@Suite struct HTTP2ConnectionTests {
  private static let echo: SocketServer.Answer = { connection, stream, request in
    var fields = HeaderList()
    fields.append(name: "apns-id", value: request.text(of: "apns-id") ?? "none", indexing: .never)
    connection.respond(stream, status: 200, fields: fields)
  }

  @Test(arguments: [true, false]) func thousandsOfRequestsEachWithOneAnswer(secure: Bool) throws {
    try SocketServer.run(secure: secure, answer: Self.echo) { server, tls in
      let client = SocketClient(server.loop, server.endpoint, tls: tls)
      client.send(0..<5000, body: String(repeating: "x", count: 217))
      #expect(client.waitForWords(5000))
      client.act { $0.drain() }
      #expect(client.waitForEnd())
      let state = client.state.value
      #expect(state.error == nil)
      #expect(state.words.count == 5000)
      #expect(state.words.values.allSatisfy { $0 == [.response(status: 200, body: "")] })
      #expect(state.ids[4321] == "id-4321")
      #expect(state.late == 0)
      #expect(server.server.requests == 5000)
      #expect(server.server.acceptedConnections == 1)
      #expect(server.state.wait { $0.closedConnections == 1 })
      #expect(waitUntil { server.server.connections == 0 })
    }
  }

  @Test func answersMayComeLaterAndInAnyOrder() throws {
    try SocketServer.run(answer: { _, _, _ in }) { server, tls in
      let client = SocketClient(server.loop, server.endpoint, tls: tls)
      client.send(0..<50)
      #expect(server.state.wait { $0.streams.count == 50 })
      let streams = server.state.value.streams.reversed()
      server.act { connection in
        for stream in streams {
          #expect(connection.respond(stream, status: 410, body: Bytes("gone \(stream.number)")))
          #expect(!connection.respond(stream, status: 200))
        }
      }
      #expect(client.waitForWords(50))
      #expect(client.state.value.words[0] == [.response(status: 410, body: "gone 1")])
      #expect(client.state.value.words[49] == [.response(status: 410, body: "gone 99")])
      #expect(server.state.wait { $0.closedStreams == 50 })
    }
  }

  @Test func streamLimitRisesAndFallsWhileRequestsWait() throws {
    var one = HTTP2Server.serverLimits
    one.concurrentStreams = 1
    let open = Monitor((now: 0, most: 0))
    let answer: SocketServer.Answer = { connection, stream, _ in
      open.update { ($0.now, $0.most) = ($0.now + 1, max($0.most, $0.now + 1)) }
      open.update { $0.now -= 1 }
      connection.respond(stream, status: 200)
    }
    try SocketServer.run(limits: one, answer: answer) { server, tls in
      let client = SocketClient(server.loop, server.endpoint, tls: tls)
      client.send(0..<20)
      #expect(client.waitForWords(20))
      #expect(client.state.value.limits == [1])
      for (index, limit) in [1000, 0, 100].enumerated() {
        server.act { $0.setMaxConcurrentStreams(limit) }
        #expect(server.state.wait { $0.settingsAcknowledgements == index + 2 })
      }
      #expect(client.state.value.limits == [1, 1000, 0, 100])
      client.send(20..<400)
      #expect(client.waitForWords(400))
    }
  }

  @Test func deadPeerGivesEachTagOneWord() throws {
    let answer: SocketServer.Answer = { connection, stream, request in
      if request.path.hasSuffix("0") { connection.respond(stream, status: 200) }
    }
    try SocketServer.run(answer: answer) { server, tls in
      let client = SocketClient(server.loop, server.endpoint, tls: tls)
      client.send(0..<100)
      #expect(server.state.wait { $0.streams.count == 100 })
      #expect(client.waitForWords(10))
      server.act { $0.abort() }
      #expect(client.waitForEnd())
      let state = client.state.value
      #expect(state.words.count == 100 && state.wordCount == 100)
      #expect(state.words.values.filter { $0 == [.failed(.connectionLost)] }.count == 90)
      #expect(state.error?.kind == .reset)
      #expect(state.late == 0)
    }
  }

  @Test func endWithoutGoAwayIsAnErrorOfTheConnection() throws {
    try SocketServer.run(answer: { _, _, _ in }) { server, tls in
      let client = SocketClient(server.loop, server.endpoint, tls: tls)
      client.send(0..<3)
      #expect(server.state.wait { $0.streams.count == 3 })
      server.act { $0.close() }
      #expect(client.waitForEnd())
      #expect(client.state.value.error?.kind == .endedEarly)
      #expect(client.state.value.words.count == 3)
    }
  }

  @Test func goAwayRefusesLaterStreamsAndLetsEarlierOnesEnd() throws {
    try SocketServer.run(answer: { _, _, _ in }) { server, tls in
      let client = SocketClient(server.loop, server.endpoint, tls: tls)
      client.send(0..<4)
      #expect(server.state.wait { $0.streams.count == 4 })
      server.act { $0.goAway(lastStream: 3, code: 0, debugData: Array(#"{"reason":"Shutdown"}"#.utf8)) }
      #expect(client.waitForWords(2))
      #expect(client.state.value.words == [2: [.failed(.refused)], 3: [.failed(.refused)]])
      #expect(client.state.value.goAways.first?.debugData == Array(#"{"reason":"Shutdown"}"#.utf8))
      client.act { #expect(!$0.hasRoom) }
      let streams = server.state.value.streams.prefix(2)
      server.act { connection in for stream in streams { connection.respond(stream, status: 200) } }
      #expect(client.waitForEnd())  // the last stream has ended: the client closes by itself
      #expect(client.state.value.words[1] == [.response(status: 200, body: "")])
      #expect(client.state.value.error == nil)
    }
  }

  @Test func resetsPingsAndSilence() throws {
    let answer: SocketServer.Answer = { connection, stream, request in
      if request.path == "/3/device/0" { connection.reset(stream, code: HTTP2Code.refusedStream) }
      if request.path == "/3/device/1" { connection.reset(stream, code: HTTP2Code.internalError) }
    }
    try SocketServer.run(answer: answer) { server, tls in
      let client = SocketClient(server.loop, server.endpoint, tls: tls)
      client.send(0..<2)
      #expect(client.waitForWords(2))
      #expect(client.state.value.words == [0: [.failed(.refused)], 1: [.failed(.reset(code: 2))]])
      client.act { $0.ping() }
      #expect(client.state.wait { $0.pings == 1 })
      server.act { $0.goSilent() }
      client.act { $0.ping() }
      client.send(2..<3)
      client.act { #expect($0.cancel(tag: 2)) }
      server.act { $0.resume() }
      #expect(client.state.wait { $0.pings == 2 })
      client.act { $0.close() }
      #expect(client.waitForEnd())
      #expect(client.state.value.words[2] == nil)
      #expect(client.state.value.error == nil)
      #expect(server.state.wait { $0.goAways == 1 && $0.closedConnections == 1 })
    }
  }

  @Test func closeFailsWhatIsOpenAndDrainWaitsForIt() throws {
    try SocketServer.run(answer: { _, _, _ in }) { server, tls in
      let closing = SocketClient(server.loop, server.endpoint, tls: tls)
      closing.send(0..<3)
      #expect(server.state.wait { $0.streams.count == 3 })
      closing.act { $0.close() }
      #expect(closing.waitForEnd())
      #expect(closing.state.value.words.values.allSatisfy { $0 == [.failed(.connectionLost)] })
      #expect(closing.state.value.words.count == 3)

      let draining = SocketClient(server.loop, server.endpoint, tls: tls)
      draining.send(0..<1)
      #expect(server.state.wait { $0.streams.count == 4 })
      draining.act {
        $0.drain()
        #expect(!$0.hasRoom)
      }
      let stream = try #require(server.state.value.streams.last)
      server.act { $0.respond(stream, status: 200) }
      #expect(draining.waitForEnd())
      #expect(draining.state.value.words == [0: [.response(status: 200, body: "")]])
    }
  }

  @Test func largeBodiesAreCutAtTheServerAndWholeAtTheClient() throws {
    let answer: SocketServer.Answer = { connection, stream, _ in
      connection.respond(stream, status: 413, body: Bytes(String(repeating: "y", count: 60_000)))
    }
    try SocketServer.run(answer: answer) { server, tls in
      let client = SocketClient(server.loop, server.endpoint, tls: tls)
      client.send(0..<200, body: String(repeating: "x", count: 100_000))
      #expect(client.waitForWords(200))
      let body = String(repeating: "y", count: 60_000)
      #expect(client.state.value.words.values.allSatisfy { $0 == [.response(status: 413, body: body)] })
      #expect(server.state.value.bodyLengths.allSatisfy { $0 == 100_000 })
      #expect(server.state.value.keptLengths.allSatisfy { $0 == 8192 })
    }
  }

  @Test func serverStaysOpenAfterItsGoAway() throws {
    try SocketServer.run(secure: false, answer: { _, _, _ in }) { server, _ in
      let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]
      let client = RawClient(
        server.loop, server.endpoint, sending: Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + settings)
      #expect(client.state.wait { $0.received.count >= 9 && server.state.value.connections.count == 1 })
      server.act { $0.goAway(code: HTTP2Code.noError) }
      let goAway: [UInt8] = [0, 0, 8, 7, 0, 0, 0, 0, 0]
      #expect(client.state.wait { $0.received.firstRange(of: goAway) != nil })
      server.act { $0.ping() }
      #expect(client.state.wait { $0.received.firstRange(of: [0, 0, 8, 6, 0, 0, 0, 0, 0]) != nil })
      #expect(!client.state.value.closed)
      client.abort()
      #expect(server.state.wait { $0.closedConnections == 1 })
    }
  }

  @Test func outputOfASilentServerIsBounded() throws {
    try SocketServer.run(answer: { _, _, _ in }) { server, tls in
      let client = SocketClient(server.loop, server.endpoint, tls: tls)
      client.send(0..<1)
      #expect(server.state.wait { $0.streams.count == 1 })
      server.act { $0.goSilent() }
      // 20 MB, far more than the kernel's buffers and our high-water mark take, and than the windows allow.
      client.send(1..<2000, body: String(repeating: "x", count: 10_000))
      #expect(client.state.wait { $0.refusedSubmissions > 0 })
      let buffered = Monitor<Int?>(nil)
      client.act { client in buffered.update { $0 = client.bufferedOutput } }
      #expect(buffered.wait { $0 != nil })
      #expect((buffered.value ?? .max) < 2 * ByteStream.highWaterMark)
      server.act { $0.abort() }
      #expect(client.waitForEnd())
      #expect(client.state.value.words.values.allSatisfy { $0.count == 1 })
    }
  }
}

/// What is not HTTP/2 over TLS with ALPN.
@Suite struct HTTP2RefusalTests {
  @Test func serverWithoutH2IsNamedAsSuch() throws {
    let authority = try CertificateAuthority(name: "test authority")
    let identity = try authority.issueServer(names: ["localhost"])
    let loop = try EventLoop.start(name: "alpn-test")
    defer { loop.stop() }
    for protocols in [["http/1.1"], []] {
      let tls = try TLSContext.server(identity: identity, applicationProtocols: protocols)
      let listener = try Listener.listen(on: [loop], at: Endpoint(host: "127.0.0.1", port: 0), tls: tls) { _ in
        Mute()
      }
      let client = SocketClient(
        loop, listener.endpoint, tls: try TLSContext.client(trust: .pem(try authority.pem())))
      #expect(client.waitForEnd())
      let error = try #require(client.state.value.error)
      #expect(error.kind == .applicationProtocol)
      #expect(error.description.contains("h2"))
      #expect(!client.state.value.ready)
      listener.close()
    }
  }

  @Test func serverThatSpeaksHTTP1OverH2IsAViolation() throws {
    let loop = try EventLoop.start(name: "preface-test")
    defer { loop.stop() }
    let listener = try Listener.listen(on: [loop], at: Endpoint(host: "127.0.0.1", port: 0)) { _ in
      Mute(says: "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    }
    // The loop waits, so that the request is there before the server's word can come.
    let gate = Monitor(false)
    loop.execute { _ = gate.wait { $0 } }
    let client = SocketClient(loop, listener.endpoint, tls: nil)
    client.send(0..<1)
    gate.update { $0 = true }
    #expect(client.waitForEnd())
    #expect(client.state.value.error?.kind == .protocolViolation)
    #expect(client.state.value.words.count == 1)
    listener.close()
  }

  @Test func serverThatNeverSendsSettingsTimesOut() throws {
    let loop = try EventLoop.start(name: "settings-test")
    defer { loop.stop() }
    let listener = try Listener.listen(on: [loop], at: Endpoint(host: "127.0.0.1", port: 0)) { _ in Mute() }
    let client = SocketClient(loop, listener.endpoint, tls: nil, within: .milliseconds(200))
    client.send(0..<1)
    #expect(client.waitForEnd())
    #expect(client.state.value.error?.kind == .timedOut)
    #expect(client.state.value.words[0] == [.failed(.connectionLost)])
    listener.close()
  }

  @Test func refusedConnectionHasNoWordButTheEnd() throws {
    let loop = try EventLoop.start(name: "refused-test")
    defer { loop.stop() }
    let listener = try Listener.listen(on: [loop], at: Endpoint(host: "127.0.0.1", port: 0)) { _ in Mute() }
    let endpoint = listener.endpoint
    listener.close()
    let closed = Monitor(false)
    loop.execute { closed.update { $0 = true } }
    #expect(closed.wait { $0 })
    let client = SocketClient(loop, endpoint, tls: nil)
    #expect(client.waitForEnd())
    #expect(client.state.value.error?.kind == .connect)
    #expect(!client.state.value.ready)
  }

  /// A server that says one thing, or nothing.
  private final class Mute: ByteStreamDelegate {
    let says: String
    init(says: String = "") { self.says = says }
    func streamOpened(_ stream: ByteStream) { stream.write(Array(says.utf8).span) }
    func streamReceived(_ stream: ByteStream, _ bytes: Span<UInt8>) {}
    func streamHasRoom(_ stream: ByteStream) {}
    func streamClosed(_ stream: ByteStream, _ error: TransportError?) {}
  }
}
