import Testing
import Wire

@testable import Transport

/// Bytes written by hand or spoiled: what a peer may send, allowed or not.
@Suite struct HTTP2FramesTests {
  private static let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]

  private static func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8]) -> [UInt8] {
    [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, flags, 0, 0, 0, stream] + payload
  }

  private static func status(_ code: String) -> [UInt8] { [0x08, UInt8(code.utf8.count)] + Array(code.utf8) }

  /// A client with one request open on stream 1, and what it hears from these frames.
  private static func words(_ frames: [[UInt8]]) throws -> [ClientRecorder.Word] {
    let pair = try SessionPair()
    try pair.feed(settings, to: pair.client) {}
    #expect(pair.submit(1))
    try pair.client.produce(limit: 1 << 20)
    for frame in frames {
      try pair.feed(frame, to: pair.client) { pair.client.handEvents(toClient: pair.clientHeard) }
    }
    try pair.client.produce(limit: 1 << 20)
    pair.client.handEvents(toClient: pair.clientHeard)
    return pair.clientHeard.words[1] ?? []
  }

  @Test func bodyInThreeFramesThenAnEmptyOneIsJoined() throws {
    let words = try Self.words([
      Self.frame(1, 4, 1, Self.status("400")), Self.frame(0, 0, 1, Array(#"{"reason":"#.utf8)),
      Self.frame(0, 0, 1, []), Self.frame(0, 0, 1, Array(#""BadDevice"#.utf8)),
      Self.frame(0, 0, 1, Array(#"Token"}"#.utf8)), Self.frame(0, 1, 1, []),
    ])
    #expect(words == [.response(status: 400, body: #"{"reason":"BadDeviceToken"}"#)])
  }

  @Test func interimResponsesAndTrailersAreSkipped() throws {
    let words = try Self.words([
      Self.frame(1, 4, 1, Self.status("103")), Self.frame(1, 4, 1, Self.status("200")),
      Self.frame(0, 0, 1, Array("ok".utf8)),
      Self.frame(1, 5, 1, [0, 1] + Array("t".utf8) + [1] + Array("v".utf8)),
    ])
    #expect(words == [.response(status: 200, body: "ok")])
  }

  @Test func responseCutByAResetIsNoResponse() throws {
    let words = try Self.words([
      Self.frame(1, 4, 1, Self.status("200")), Self.frame(0, 0, 1, Array("half".utf8)),
      Self.frame(3, 0, 1, [0, 0, 0, 2]),
    ])
    #expect(words == [.failed(.reset(code: 2))])
  }

  @Test func malformedResponseFailsItsStreamOnly() throws {
    let words = try Self.words([Self.frame(1, 5, 1, [0, 1] + Array("T".utf8) + [1] + Array("v".utf8))])
    #expect(words == [.failed(.reset(code: HTTP2Code.protocolError))])
  }

  @Test(
    arguments: [
      [0, 0, 1, 4, 0, 0, 0, 0, 0, 7],  // SETTINGS of a wrong length
      [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0],  // WINDOW_UPDATE by 0 on the connection
      [0, 0, 0, 0, 0, 0, 0, 0, 0],  // DATA on stream 0
      [0, 0, 5, 5, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0x88],  // PUSH_PROMISE, which we do not allow
      [0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1],  // a frame larger than we allow
      [0, 0, 1, 1, 5, 0, 0, 0, 1, 0xff],  // HPACK that ends in the middle
    ] as [[UInt8]])
  func violationsEndTheConnectionWithAGoAway(frame: [UInt8]) throws {
    let pair = try SessionPair()
    try pair.feed(Self.settings, to: pair.client) {}
    #expect(pair.submit(1))
    try pair.client.produce(limit: 1 << 20)
    pair.client.output.removeAll()
    try pair.feed(Self.frame(4, 1, 0, []), to: pair.client) {}  // our SETTINGS are acknowledged, and so in force
    #expect(throws: HTTP2SessionError.self) {
      try pair.feed(frame, to: pair.client) {}
      try pair.client.produce(limit: 1 << 20)
    }
    #expect(pair.client.output.count >= 17 && pair.client.output[3] == 7)  // GOAWAY
    pair.client.failAll(pair.clientHeard)
    #expect(pair.clientHeard.words[1]?.count == 1)
  }

  @Test func serverThatSpeaksHTTP1IsAnError() throws {
    let pair = try SessionPair()
    try pair.client.produce(limit: 1 << 20)
    #expect(throws: HTTP2SessionError.self) {
      try pair.feed(Array("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".utf8), to: pair.client) {}
      try pair.client.produce(limit: 1 << 20)
    }
  }

  @Test func clientWithoutThePrefaceIsAnError() throws {
    let pair = try SessionPair()
    #expect(throws: HTTP2SessionError.self) {
      try pair.feed(Array("GET / HTTP/1.1\r\nhost: a\r\n\r\n".utf8), to: pair.server) {}
    }
  }

  @Test func endlessContinuationsEndTheConnection() throws {
    let pair = try SessionPair()
    try pair.run()
    let field: [UInt8] = [0, 1, 97, 1, 98]
    var flood = Self.frame(1, 1, 1, field)
    for _ in 0..<1000 { flood += Self.frame(9, 0, 1, field) }
    #expect(throws: HTTP2SessionError.self) {
      try pair.feed(flood, to: pair.server) {}
      try pair.server.produce(limit: 1 << 20)
    }
  }

  /// Bytes of a real conversation, spoiled: no crash, and each request has one word at the most before the end and
  /// exactly one after it.
  @Test func spoiledBytesNeverCrashTheClient() throws {
    let recorded = try Self.recordedConversation().toClient
    var random = SeededRandom(seed: 1)
    for _ in 0..<1500 {
      let pair = try SessionPair()
      try pair.feed(Self.settings, to: pair.client) {}
      for tag in 0..<8 as Range<UInt64> { pair.submit(tag) }
      try pair.client.produce(limit: 1 << 20)
      pair.piece = Int(random.next() % 40) + 1
      try? pair.feed(Self.spoil(recorded, &random), to: pair.client) {
        pair.client.handEvents(toClient: pair.clientHeard)
      }
      try? pair.client.produce(limit: 1 << 20)
      pair.client.failAll(pair.clientHeard)
      #expect(pair.clientHeard.words.count == 8)
      #expect(pair.clientHeard.words.values.allSatisfy { $0.count == 1 })
      #expect(pair.client.streams.count == 0)
    }
  }

  @Test func spoiledBytesNeverCrashTheServer() throws {
    let recorded = try Self.recordedConversation().toServer
    var random = SeededRandom(seed: 2)
    for _ in 0..<1500 {
      let pair = try SessionPair()
      pair.serverHeard.onRequest = { [unowned pair] in pair.answer($0.stream, 200, "answer") }
      pair.piece = Int(random.next() % 40) + 1
      try? pair.feed(Self.spoil(recorded, &random), to: pair.server) {
        pair.server.handEvents(toServer: pair.serverHeard)
      }
      try? pair.server.produce(limit: 1 << 20)
      pair.server.handEvents(toServer: pair.serverHeard)
      #expect(pair.server.streams.count <= 8)
    }
  }

  /// Well-formed frames in no sensible order, with fields that mostly make sense.
  @Test(arguments: [HTTP2Session.Role.client, .server]) func framesInAnyOrderNeverCrash(role: HTTP2Session.Role) throws
  {
    var random = SeededRandom(seed: 4)
    for _ in 0..<1500 {
      let pair = try SessionPair()
      let session = role == .client ? pair.client : pair.server
      pair.serverHeard.onRequest = { [unowned pair] in pair.answer($0.stream, 200, "answer") }
      var frames: [UInt8] = role == .client ? [] : Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
      frames += Self.settings
      if role == .client {
        try pair.feed(Self.settings, to: session) {}
        for tag in 0..<8 as Range<UInt64> { pair.submit(tag) }
        try session.produce(limit: 1 << 20)
      }
      for _ in 0..<12 { frames += Self.anyFrame(role, &random) }
      let look = {
        role == .client
          ? pair.client.handEvents(toClient: pair.clientHeard) : pair.server.handEvents(toServer: pair.serverHeard)
      }
      pair.piece = Int(random.next() % 100) + 1
      try? pair.feed(frames, to: session, then: look)
      try? session.produce(limit: 1 << 20)
      look()
      if role == .client {
        session.failAll(pair.clientHeard)
        #expect(pair.clientHeard.words.count == 8)
        #expect(pair.clientHeard.words.values.allSatisfy { $0.count == 1 })
      }
    }
  }

  private static func anyFrame(_ role: HTTP2Session.Role, _ random: inout SeededRandom) -> [UInt8] {
    func any(_ bound: UInt64) -> UInt8 { UInt8(random.next() % bound) }
    let stream = any(9) * 2 + (any(8) == 0 ? 0 : 1)
    let number: [UInt8] = [0, 0, any(2), any(20)]
    switch any(9) {
    case 0: return frame(0, any(2), stream, (0..<any(40)).map { $0 })
    case 1, 2:
      let request: [UInt8] = [0x83, 0x87, 0x84, 0x01, 1, 97]
      return frame(1, 4 | any(2), stream, role == .client ? status(["200", "103", "410"][Int(any(3))]) : request)
    case 3: return frame(3, 0, stream, number)
    case 4: return frame(4, 0, 0, [0, [3, 4, 1][Int(any(3))]] + number)
    case 5: return frame(6, any(2), 0, number + number)
    case 6: return any(4) == 0 ? frame(7, 0, 0, number + number + Array("why".utf8)) : frame(2, 0, stream, number + [1])
    case 7: return frame(8, 0, any(2) * stream, number)
    default: return frame(any(12), any(255), stream, number)
    }
  }

  private static func recordedConversation() throws -> (toServer: [UInt8], toClient: [UInt8]) {
    let pair = try SessionPair()
    try pair.feed(settings, to: pair.client) {}
    for tag in 0..<8 as Range<UInt64> { pair.submit(tag, body: "body \(tag)") }
    try pair.client.produce(limit: 1 << 20)
    let toServer = pair.client.output
    pair.serverHeard.onRequest = { [unowned pair] in
      pair.answer($0.stream, $0.stream.number == 5 ? 400 : 200, $0.stream.number == 5 ? "why" : "", id: "x")
    }
    pair.server.ping()
    try pair.feed(toServer, to: pair.server) { pair.server.handEvents(toServer: pair.serverHeard) }
    try pair.server.produce(limit: 1 << 20)
    return (toServer, pair.server.output)
  }

  private static func spoil(_ bytes: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
    var bytes = bytes
    for _ in 0...Int(random.next() % 4) where !bytes.isEmpty {
      let place = Int(random.next() % UInt64(bytes.count))
      switch random.next() % 6 {
      case 0: bytes[place] ^= 1 << UInt8(random.next() % 8)
      case 1: bytes[place] = UInt8(truncatingIfNeeded: random.next())
      case 2: bytes.remove(at: place)
      case 3: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: place)
      case 4: bytes.removeSubrange(place...)
      default: bytes.append(contentsOf: bytes[place...].prefix(64))
      }
    }
    return bytes
  }
}
