import Testing
import Wire

@testable import Transport

/// A server that sends frames without end: whatever they are, they fill no memory of ours.
@Suite struct HTTP2FloodTests {
  private static func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8]) -> [UInt8] {
    [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, flags, 0, 0, 0, stream] + payload
  }

  /// A client with a request open on stream 1, and the peer's SETTINGS behind it.
  private func pair() throws -> SessionPair {
    let pair = try SessionPair()
    try pair.feed(Self.frame(4, 0, 0, []), to: pair.client) {}
    #expect(pair.submit(1))
    try pair.client.produce(limit: 1 << 20)
    pair.client.output.removeAll()
    return pair
  }

  struct Flood: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var frame: [UInt8]

    init(_ name: String, _ frame: [UInt8]) {
      testDescription = name
      self.frame = frame
    }
  }

  /// Frames that ask for an answer: nobody may have us gather answers that he does not read.
  @Test(arguments: [
    Flood("SETTINGS", frame(4, 0, 0, [])), Flood("SETTINGS with a limit", frame(4, 0, 0, [0, 3, 0, 0, 0, 100])),
    Flood("SETTINGS of a table of 4 GB", frame(4, 0, 0, [0, 1, 0xff, 0xff, 0xff, 0xff])),
    Flood("PING", frame(6, 0, 0, [1, 2, 3, 4, 5, 6, 7, 8])),
  ])
  func whatMustBeAnsweredEndsTheConnectionIfNobodyReads(flood: Flood) throws {
    let pair = try pair()
    let error = try #require(throws: HTTP2SessionError.self) {
      for _ in 0..<100 {
        try pair.feed((0..<100).flatMap { _ in flood.frame }, to: pair.client) { pair.client.finishEvents() }
      }
    }
    #expect(error.code == HTTP2Code.enhanceYourCalm)
    #expect(pair.client.output.isEmpty)
  }

  /// As long as the answers go out, the same frames do no harm.
  @Test func whatIsAnsweredAndReadMayGoOn() throws {
    let pair = try pair()
    for _ in 0..<200 {
      try pair.feed((0..<100).flatMap { _ in Self.frame(4, 0, 0, []) }, to: pair.client) { pair.client.finishEvents() }
      try pair.client.produce(limit: 1 << 20)
      #expect(pair.client.output.count == 900)
      pair.client.output.removeAll()
    }
  }

  /// Frames that need no answer: they are read and forgotten.
  @Test(arguments: [
    Flood("WINDOW_UPDATE of the connection", frame(8, 0, 0, [0, 0, 0, 1])),
    Flood("WINDOW_UPDATE of the stream", frame(8, 0, 1, [0, 0, 0, 1])),
    Flood("PRIORITY", frame(2, 0, 1, [0, 0, 0, 0, 16])),
    Flood("PRIORITY of streams that are not there", frame(2, 0, 99, [0, 0, 0, 0, 16])),
    Flood("an unknown type", frame(0x42, 0xff, 1, [1, 2, 3])), Flood("an unknown type, empty", frame(0x43, 0, 0, [])),
    Flood("PING answers that nobody asked for", frame(6, 1, 0, [1, 2, 3, 4, 5, 6, 7, 8])),
    Flood("interim responses", frame(1, 4, 1, [0x08, 3] + Array("103".utf8))),
    Flood("GOAWAY", frame(7, 0, 0, [0, 0, 0, 1, 0, 0, 0, 0] + Array(repeating: 0x20, count: 200))),
  ])
  func whatNeedsNoAnswerIsForgotten(flood: Flood) throws {
    let pair = try pair()
    for _ in 0..<200 {
      try pair.feed((0..<200).flatMap { _ in flood.frame }, to: pair.client) {
        // One each, and perhaps one that was left of the start.
        #expect(pair.client.events.count <= 201)
        pair.client.finishEvents()
      }
      try pair.client.produce(limit: 1 << 20)
      #expect(pair.client.output.count < 64)
      #expect(!pair.client.wantsToSend)
      pair.client.output.removeAll()
    }
    #expect(pair.client.openStreams == 1 && pair.client.streams.count == 1)
    #expect(pair.client.goAways.isEmpty)
  }

  /// Empty DATA frames carry nothing and end nothing.
  @Test func aBodyOfEmptyFramesTakesNoRoom() throws {
    let pair = try pair()
    try pair.feed(Self.frame(1, 4, 1, [0x88]), to: pair.client) {}
    for _ in 0..<200 {
      try pair.feed((0..<200).flatMap { _ in Self.frame(0, 0, 1, []) }, to: pair.client) { pair.client.finishEvents() }
      try pair.client.produce(limit: 1 << 20)
      #expect(pair.client.output.count < 64)
      pair.client.output.removeAll()
    }
    try pair.feed(Self.frame(0, 1, 1, Array("end".utf8)), to: pair.client) {
      pair.client.handEvents(toClient: pair.clientHeard)
    }
    #expect(pair.clientHeard.words[1] == [.response(status: 200, body: "end")])
  }

  /// A field that lies in HPACK's table once and is named a thousand times: small on the wire, large when read.
  @Test func aHeaderBombCostsItsStreamAlone() throws {
    let pair = try pair()
    let value = [UInt8](repeating: 0x61, count: 3000)
    // A literal with indexing (name "a"), its length as an integer of 7 bits and two more bytes.
    let literal: [UInt8] = [0x40, 1, 0x61, 0x7f, UInt8((3000 - 127) & 0x7f) | 0x80, UInt8((3000 - 127) >> 7)] + value
    let block = [0x88] + literal + [UInt8](repeating: 0xbe, count: 1000)
    try pair.feed(Self.frame(1, 5, 1, block), to: pair.client) {
      pair.client.handEvents(toClient: pair.clientHeard)
    }
    try pair.client.produce(limit: 1 << 20)
    pair.client.handEvents(toClient: pair.clientHeard)
    #expect(pair.clientHeard.words[1] == [.failed(.reset(code: HTTP2Code.internalError))])
    #expect(pair.submit(2), "the connection goes on")
  }

  @Test func moreSettingsThanThereAreEndTheConnection() throws {
    let pair = try pair()
    let many = (0..<1000).flatMap { _ in [0, 0x99, 0, 0, 0, 1] as [UInt8] }
    #expect(throws: HTTP2SessionError.self) {
      try pair.feed(Self.frame(4, 0, 0, many), to: pair.client) {}
      try pair.client.produce(limit: 1 << 20)
    }
  }

  /// Apple ignores priorities (Apple, "Sending notification requests to APNs"): none are sent, neither as frames nor
  /// with HEADERS.
  @Test func noPrioritiesOfStreamsAreSent() throws {
    let pair = try SessionPair()
    var sent: [UInt8] = []
    for round in 0..<3 as Range<UInt64> {
      for tag in 0..<50 as Range<UInt64> { pair.submit(round * 100 + tag, body: String(repeating: "x", count: 2000)) }
      try pair.client.produce(limit: 1 << 20)
      sent += pair.client.output
      try pair.run()
    }
    let preface = 24
    var position = preface
    var kinds: [UInt8: Int] = [:]
    while position + 9 <= sent.count {
      let length = Int(sent[position]) << 16 | Int(sent[position + 1]) << 8 | Int(sent[position + 2])
      let (type, flags) = (sent[position + 3], sent[position + 4])
      kinds[type, default: 0] += 1
      #expect(type != 2, "PRIORITY")
      #expect(type != 16, "PRIORITY_UPDATE")
      if type == 1 { #expect(flags & 0x20 == 0, "HEADERS with a priority") }
      position += 9 + length
    }
    #expect(position == sent.count)
    #expect((kinds[1] ?? 0) > 50)
  }
}
