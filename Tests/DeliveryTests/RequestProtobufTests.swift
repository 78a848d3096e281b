import APNs
import Delivery
import TestSupport
import Testing
import Wire

@Suite struct RequestProtobufTests {
  private static let type: [(name: String, value: [UInt8]?)] = [
    ("Content-Type", Array("application/x-protobuf; messageType=\"martlet.v1.PushRequest\"".utf8))
  ]
  private static let good: [UInt8] = message { _ in }

  /// A good request, with what `more` adds.
  private static func message(_ more: (inout ProtobufWriter) -> Void) -> [UInt8] {
    var writer = ProtobufWriter()
    writer.string(1, "shop")
    writer.string(2, "ab12")
    writer.string(4, #"{"aps":{}}"#)
    more(&writer)
    return writer.take()
  }

  private static func decode(_ value: [UInt8]) -> Decoded {
    DecoderBench().decode(.sample(bytes: value, headers: type))
  }

  private static func invalid(_ value: [UInt8]) -> InvalidRequest? {
    DecoderBench().invalid(.sample(bytes: value, headers: type))
  }

  @Test func `payload bytes are untouched`() throws {
    for payload in [#"{"a":"\/ 😀","n":1.0e400}"#, " {\"b\" : 1,\"b\":2}\n\t"] {
      let request = try #require(
        DecoderBench().request(.sample(bytes: Self.message { $0.string(4, payload) }, headers: Self.type)))
      #expect(request.payload == Array(payload.utf8))
    }
  }

  @Test func `of a field that comes twice the last one counts`() throws {
    let value = Self.message {
      $0.string(1, "nobody")
      $0.string(1, "bank")
      $0.integer(6, 7)
      $0.integer(6, 5)
    }
    let request = try #require(DecoderBench().request(.sample(bytes: value, headers: Self.type)))
    #expect(request.text(request.notification.token) == "ab12")
    #expect(request.notification.priority == 5)
    #expect(DecoderBench().apps.find("bank") == request.app)
  }

  @Test func `a batch has its tokens in order, and one bad token spoils only itself`() throws {
    var writer = ProtobufWriter()
    writer.string(1, "shop")
    writer.string(4, "{}")
    for token in ["ab", "xyz", "cd12"] { writer.string(3, token) }
    let request = try #require(DecoderBench().request(.sample(bytes: writer.take(), headers: Self.type)))
    #expect(request.tokens.map { request.text($0) } == ["ab", "", "cd12"])
    #expect(request.invalidItems.map(\.item) == [1])
    #expect(request.text(request.invalidItems[0].token) == "xyz")
  }

  @Test(arguments: [(1000, nil), (1001, InvalidRule.tooManyTokens)])
  func `a batch has at most 1,000 tokens`(_ count: Int, _ rule: InvalidRule?) {
    var writer = ProtobufWriter()
    writer.string(1, "shop")
    writer.string(4, "{}")
    for _ in 0..<count { writer.string(3, "ab12") }
    #expect(Self.invalid(writer.take())?.rule == rule)
  }

  @Test func `numbers are those of the record, as far as 64 bits go`() throws {
    let zero = Self.message { $0.integer(7, 0) }
    #expect(DecoderBench().request(.sample(bytes: zero, headers: Self.type))?.notification.expiration == 0)
    for (number, rule) in [(Int64.max, InvalidRule.badExpiration), (.min, .badExpiration), (-1, .badExpiration)] {
      #expect(Self.invalid(Self.message { $0.integer(7, number) })?.rule == rule)
    }
    #expect(Self.invalid(Self.message { $0.integer(6, -1) })?.rule == .badPriority)
    // A cut to 32 bits would make a 10 of it.
    #expect(Self.invalid(Self.message { $0.integer(6, 1 << 32 + 10) })?.rule == .badPriority)
  }

  @Test func `an empty message lacks its app, and an empty payload is none`() {
    #expect(Self.invalid([])?.message == "app: is required")
    #expect(Self.invalid(Self.message { $0.string(4, "") })?.message == "payload: is required; it has no bytes")
    #expect(Self.invalid(Self.message { $0.string(4, "{") })?.rule == .malformedJSON)
  }

  private typealias Broken = (value: [UInt8], what: String)

  private static let broken: [Broken] = [
    Broken(good + [0x68, 1], "the unknown field 13 at byte 24"),
    Broken(good + [0x60, 1], "field 12 (traceparent) with the wrong wire type at byte 24"),
    Broken(good + [0x08, 1], "field 1 (app) with the wrong wire type"),
    Broken(good + [0x32, 1, 5], "field 6 (priority) with the wrong wire type at byte 24"),
    Broken(good + [0x35, 5, 0, 0, 0], "field 6 (priority) with the wrong wire type"),
    Broken(good + [0x30], "the message ends too early at byte 25"),
    Broken(good + [0x30, 0x8a, 0x00], "a varint that is too long"),
    Broken(good + [0x4a, 5, 0x61], "the message ends too early"), Broken(good + [0x0b, 0x0c], "a group at byte 24"),
    Broken(good + [0x00], "a field number that is not allowed"),
    Broken(Array(good.dropLast()), "the message ends too early"),
    Broken(Array(#"{"app":"shop"}"#.utf8), "a group at byte 0"),
  ]

  @Test(arguments: broken)
  private func `what is no such message is refused, and nothing of it is believed`(_ row: Broken) throws {
    let (value, what) = row
    let invalid = try #require(Self.invalid(value))
    #expect(invalid.rule == .malformedProtobuf)
    #expect(invalid.message.hasPrefix("the value: is no PushRequest, \(what)"), "\(invalid.message)")
    #expect(invalid.app == nil)
    #expect(Bytes(invalid.body.storage, try #require(invalid.body.value)).array == value)
  }

  @Test func `text that is not UTF-8 breaks the field's rule`() throws {
    let invalid = try #require(Self.invalid(Self.message { $0.delimited(9, [0x61, 0xff].span) }))
    #expect(invalid.rule == .badID)
    #expect(invalid.message == "id: must be Unicode text; found bytes that are not UTF-8")
  }

  // MARK: The frame of a schema registry

  private static let json = Array(#"{"app":"shop","token":"ab12","payload":{"aps":{}}}"#.utf8)

  private struct Framed: Sendable {
    var prefix: [UInt8]
    var rest: [UInt8] = good
    var type: String?
    /// What the message says; `nil`: it is accepted.
    var fault: String?
  }

  private static let framed: [Framed] = [
    Framed(prefix: [0, 0, 0, 1, 7, 0]), Framed(prefix: [0, 0, 0, 1, 7, 2, 0]),
    Framed(prefix: [0, 0, 0, 1, 7, 0], type: "application/x-protobuf"),
    Framed(prefix: [0, 255, 0, 1, 7], rest: json),
    Framed(prefix: [0, 0, 0, 1, 7], rest: json, type: "application/json"),
    Framed(prefix: [0, 0, 0, 1, 7, 2, 2], fault: "found another"),
    Framed(prefix: [0, 0, 0, 1, 7, 4, 0, 0], fault: "found another"),
    Framed(prefix: [0, 0, 0, 1, 7, 1], fault: "found another"),
    Framed(prefix: [0, 0, 0, 1, 7, 2], rest: [], fault: "the message ends too early"),
    Framed(prefix: [0, 0, 0, 1, 7], rest: [], fault: "must have 5 bytes"),
    Framed(prefix: [0], rest: [], fault: "must have 5 bytes"),
    Framed(prefix: [0, 0, 0, 1, 7, 0], type: "application/json", fault: "is not JSON"),
    Framed(prefix: [], type: "application/json", fault: "is not JSON"), Framed(prefix: [], fault: "is not JSON"),
  ]

  @Test(arguments: framed)
  private func `the frame is taken off`(_ row: Framed) {
    let fault = row.fault
    let headers: [(name: String, value: [UInt8]?)] = row.type.map { [("content-type", Array($0.utf8))] } ?? []
    switch DecoderBench().decode(.sample(bytes: row.prefix + row.rest, headers: headers)) {
    case .request(let request):
      #expect(fault == nil)
      #expect(request.payload == Array(#"{"aps":{}}"#.utf8))
    case .invalid(let invalid):
      #expect(fault.map { invalid.message.contains($0) } == true, "\(invalid.message)")
    case .tombstone: Issue.record("a tombstone")
    }
  }

  @Test(arguments: [1, 2])
  func `no mutation traps, and what passes keeps the contract`(_ seed: UInt64) {
    var documents = JSONDocuments(seed: seed)
    let whole = Self.message {
      $0.integer(6, 5)
      $0.integer(7, 1_790_000_000)
      $0.string(8, "order-42")
      $0.string(9, "call-1")
    }
    var accepted = 0
    for round in 0..<4000 {
      let value = documents.mutated(round % 2 == 0 ? whole : [0, 0, 0, 0, 9, 0] + whole)
      guard case .request(let request) = Self.decode(value) else { continue }
      accepted += 1
      let payload = Bytes(request.notification.storage, request.notification.payload)
      #expect((try? JSONScanner.document(payload.span).kind) == .object)
      #expect(request.notification.token.count % 2 == 0)
      #expect([1, 5, 10].contains(request.notification.priority))
    }
    #expect(accepted > 50)
  }
}
