import APNs
import TestSupport
import Testing
import Transport
import Wire

@testable import MockAPNs

/// The server over sockets, asked by the product's own client.
@Suite(.serialized)
struct ServerTests {
  /// Runs `body` with a server that takes the tokens of one key, and one client of it.
  private func run(
    _ script: Script = Script(), change: (inout MockServer.Configuration) -> Void = { _ in },
    _ body: (MockServer, TestClient, _ authorization: String) throws -> Void
  ) throws {
    let key = try ProviderKey.make(keyID: "KEY0000001", teamID: "TEAM000001")
    var configuration = MockServer.Configuration()
    configuration.keys = [key]
    configuration.script = script
    change(&configuration)
    let server = try MockServer.start(configuration)
    defer { server.stop() }
    let authorization = try key.bearer(issuedAt: Clock.time)
    let client = try TestClient(server, authorization: authorization)
    defer { client.stop() }
    try body(server, client, authorization)
  }

  private func rule(_ prefix: String, _ action: Script.Action) -> Script.Rule {
    Script.Rule(Script.Condition(tokenPrefix: prefix), action)
  }

  @Test func `one stream until the first good answer, then a thousand`() throws {
    try run(Script([rule("aa", .delay(.milliseconds(20), upTo: .milliseconds(20)))])) { server, client, _ in
      client.send(1...1) { _ in "zz" }
      #expect(client.wait(words: 1))
      #expect(client.state.value.limits == [1])
      client.send(2...301) { _ in "aabb" }
      #expect(client.wait(words: 301))
      let state = client.state.value
      #expect(state.limits == [1, 1000])
      #expect(state.words[1] == .response(400, #"{"reason":"BadDeviceToken"}"#))
      #expect(state.words.values.count { $0 == .response(200, "") } == 300)
      #expect(state.ids[17] == UUID(high: 0, low: 17).description)
      let counts = server.journal.counts
      #expect(counts.accepted == 300)
      #expect(counts.requests == 301)
      #expect(counts.byReason == ["BadDeviceToken": 1])
      #expect(counts.byTopic == ["com.example.shop": 301])
      #expect(counts.providerTokens == 1)
      #expect(counts.connections == 1)
      #expect(counts.mostOpenStreams > 1 && counts.mostOpenStreams <= 299)
      #expect(counts.streamLimitAnnounced == 1000)
      #expect(server.journal.tally(of: UUID(high: 0, low: 17)) == (1, 1))
    }
  }

  @Test func `GOAWAY answers what it covers and leaves the socket open`() throws {
    let goAway = Script.Action.goAway(code: 0, last: .newest, debugData: #"{"reason":"Shutdown"}"#, closes: false)
    try run(Script([rule("60a7", goAway), rule("60a7", .silence)])) { server, client, _ in
      client.send(1...1)
      #expect(client.wait(words: 1))
      client.send(2...2) { _ in "60a7" }
      #expect(client.state.wait { $0.goAways.count == 1 })
      client.ping()
      #expect(client.state.wait { $0.pings == 1 }, "the socket lives")
      let state = client.state.value
      #expect(state.goAways[0].lastStream == 3)
      #expect(state.goAways[0].debugData == #"{"reason":"Shutdown"}"#)
      #expect(!state.isClosed)
      #expect(state.words[2] == nil)
      #expect(server.journal.counts.goAwaysSent == 1)
      #expect(server.connections == 1)
    }
  }

  @Test func `GOAWAY drops the streams above its last one`() throws {
    let goAway = Script.Action.goAway(code: 0, last: .previous, debugData: "", closes: true)
    try run(Script([rule("60a7", goAway)])) { server, client, _ in
      client.send(1...1)
      #expect(client.wait(words: 1))
      client.send(2...2) { _ in "60a7" }
      #expect(client.wait(words: 2))
      #expect(client.state.value.words[2] == .failed(.refused))
      #expect(client.state.wait { $0.isClosed })
      #expect(server.journal.tally(of: UUID(high: 0, low: 2)) == (1, 0))
    }
  }

  @Test func `silence for one request, then for the connection`() throws {
    try run(Script([rule("5110", .silence), rule("5111", .silentConnection)])) { server, client, _ in
      client.send(1...1)
      #expect(client.wait(words: 1))
      client.send(2...2) { _ in "5110" }
      client.send(3...3)
      #expect(client.wait(words: 2))
      #expect(client.state.value.words[2] == nil)
      client.send(4...4) { _ in "5111" }
      #expect(waitUntil { server.journal.counts.silences == 2 })
      client.send(5...5)
      client.ping()
      // Another connection is served meanwhile: had the silent one been read, its word would have come before.
      let other = try TestClient(server, authorization: nil)
      defer { other.stop() }
      other.send(1...1)
      #expect(other.wait(words: 1))
      #expect(client.state.value.words[5] == nil)
      #expect(client.state.value.pings == 0)
      #expect(!client.state.value.isClosed)
      #expect(server.journal.requests == 5)
    }
  }

  @Test func `a delayed answer comes after those that are not`() throws {
    try run(Script([rule("de1a", .delay(.milliseconds(150), upTo: .milliseconds(200)))])) { _, client, _ in
      client.send(1...1)
      #expect(client.wait(words: 1))
      let began = Clock.now
      client.send(2...2) { _ in "de1a" }
      client.send(3...3)
      #expect(client.state.wait { $0.words[3] != nil })
      #expect(client.state.wait { $0.words[2] != nil })
      #expect(Clock.now - began >= .milliseconds(150))
      #expect(client.state.value.words[2] == .response(200, ""))
    }
  }

  @Test func `three hundred resets`() throws {
    try run(Script([rule("0007", .reset(code: HTTP2Code.refusedStream))])) { server, client, _ in
      client.send(1...1)
      #expect(client.wait(words: 1))
      client.send(2...301) { _ in "0007" }
      #expect(client.wait(words: 301))
      client.send(302...302)
      #expect(client.wait(words: 302))
      let state = client.state.value
      #expect(state.words.values.count { $0 == .failed(.refused) } == 300)
      #expect(state.words[302] == .response(200, ""))
      #expect(server.journal.counts.resets == 300)
    }
  }

  @Test func `other answers, other limits, the end of the connection`() throws {
    let script = Script([
      rule("429", .answer(Answer(.tooManyRequests, retryAfter: 5))), rule("11", .maxConcurrentStreams(7)),
      rule("cc", .close),
    ])
    try run(script, change: { $0.isSandbox = true }) { server, client, _ in
      client.send(1...1)
      client.send(2...2) { _ in "4290" }
      #expect(client.wait(words: 2))
      #expect(client.state.value.words[2] == .response(429, #"{"reason":"TooManyRequests"}"#))
      #expect(client.state.value.uniqueIDs[1] != nil)
      client.send(3...3) { _ in "1100" }
      #expect(client.state.wait { $0.limits.last == 7 })
      client.send(4...4) { _ in "cc00" }
      #expect(client.state.wait { $0.isClosed })
      #expect(waitUntil { server.journal.counts.openConnections == 0 })
      #expect(client.state.value.words[4] == .failed(.connectionLost))
    }
  }

  @Test func `an abort ends the connection with an error`() throws {
    try run(Script([rule("ab", .abort)])) { _, client, _ in
      client.send(1...1) { _ in "ab00" }
      #expect(client.state.wait { $0.isClosed })
      #expect(client.state.value.error != nil)
    }
  }

  @Test func `a clock that is off makes good tokens expire`() throws {
    try run(change: { $0.clockOffset = .seconds(2 * 3600) }) { _, client, _ in
      client.send(1...1)
      #expect(client.wait(words: 1))
      #expect(client.state.value.words[1] == .response(403, #"{"reason":"ExpiredProviderToken"}"#))
    }
  }

  @Test func `a client certificate will do where it is wanted`() throws {
    let authority = try CertificateAuthority(name: "clients")
    let pem = try authority.pem()
    try run(change: { $0.clientAuthority = pem }) { server, client, _ in
      let identity = try authority.issueClient(name: "push", userID: "com.example.cert")
      let certified = try TestClient(server, identity: identity, topic: "com.example.cert")
      defer { certified.stop() }
      certified.send(1...1)
      #expect(certified.wait(words: 1))
      #expect(certified.state.value.words[1] == .response(200, ""))
      client.send(1...1)
      #expect(client.wait(words: 1))
      #expect(client.state.value.words[1] == .response(200, ""), "tokens are still taken")
    }
  }

  @Test func `requests can be remembered, without their secrets in the dump`() throws {
    try run(change: { $0.journal.requests = 1 }) { server, client, authorization in
      client.send(1...2)
      #expect(client.wait(words: 2))
      let seen = server.journal.seen
      #expect(seen.count == 1)
      #expect(seen[0].token == "00aa11bb")
      #expect(seen[0].status == 200)
      #expect(seen[0].body == Array(#"{"aps":{}}"#.utf8))
      #expect(seen[0].fields.contains { $0.name == "apns-push-type" && $0.value == "alert" })
      let dump = String(decoding: server.journal.json(includingRequests: true), as: UTF8.self)
      #expect(dump.contains("00aa11bb") && !dump.contains(authorization.dropFirst(7)))
    }
  }
}
