import APNs
import Delivery
import TestSupport
import Testing
import Wire

@Suite struct RequestEventTests {
  private static let data = #"{"app":"shop","token":"ab12","payload":{"aps":{}}}"#
  private static let structured: [(name: String, value: [UInt8]?)] = [
    ("content-type", Array("application/cloudevents+json; charset=UTF-8".utf8))
  ]

  private static func envelope(_ changes: [String: String?] = [:]) -> String {
    var members: [(key: String, value: String)] = [
      ("specversion", #""1.0""#), ("id", #""e-1""#), ("source", #""/shop/orders""#), ("type", #""com.example.push""#),
      ("time", #""2026-07-05T12:00:00Z""#), ("data", data),
    ]
    for (key, value) in changes {
      members.removeAll { $0.key == key }
      if let value { members.append((key, value)) }
    }
    return "{" + members.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}"
  }

  private static func decode(structured text: String) -> Decoded {
    DecoderBench().decode(.sample(text, headers: structured))
  }

  private static func headers(_ changes: [String: [UInt8]?] = [:]) -> [(name: String, value: [UInt8]?)] {
    RequestSample.eventHeaders.filter { !changes.keys.contains($0.name) } + changes.map { ($0.key, $0.value) }
  }

  @Test func `an event's id is that of a request that has none`() throws {
    let bench = DecoderBench()
    let structured = try #require(bench.request(.sample(Self.envelope(), headers: Self.structured)))
    #expect(structured.text(structured.id) == "e-1")
    let binary = try #require(bench.request(.sample(Self.data, headers: RequestSample.eventHeaders)))
    #expect(binary.text(binary.id) == "event-1")
    let own = #"{"app":"shop","token":"ab12","id":"own","payload":{}}"#
    let both = try #require(bench.request(.sample(Self.envelope(["data": own]), headers: Self.structured)))
    #expect(both.text(both.id) == "own")
    let inHeaders = try #require(
      bench.request(
        .sample("{}", headers: [("app", Array("shop".utf8)), ("token", Array("ab".utf8))] + RequestSample.eventHeaders))
    )
    #expect(inHeaders.text(inHeaders.id) == "event-1")
    let long = String(repeating: "x", count: 129)
    let tooLong = try #require(
      bench.invalid(.sample(Self.envelope(["id": "\"\(long)\""]), headers: Self.structured)))
    #expect(tooLong.rule == .badID)
  }

  @Test func `the payload's bytes are those of the event`() throws {
    let payload = #"{ "aps" : {"alert":"a\/b 😀"} , "n":1.0 }"#
    let data = "{\"app\":\"shop\",\"token\":\"ab12\",\"payload\":\(payload)}"
    let request = try #require(
      DecoderBench().request(.sample(Self.envelope(["data": data]), headers: Self.structured)))
    #expect(request.payload == Array(payload.utf8))
  }

  @Test func `binary data is base64, in JSON or Protobuf`() throws {
    let bench = DecoderBench()
    let json = Base64.encode(Self.data.utf8.span)
    let request = try #require(
      bench.request(
        .sample(Self.envelope(["data": nil, "data_base64": "\"\(json)\""]), headers: Self.structured)))
    #expect(request.text(request.notification.token) == "ab12")
    var writer = ProtobufWriter()
    writer.string(1, "shop")
    writer.string(2, "cd34")
    writer.string(4, "{}")
    let protobuf = Base64.encode(writer.bytes.span)
    let event = Self.envelope([
      "data": nil, "data_base64": "\"\(protobuf)\"", "datacontenttype": #""application\/x-protobuf""#,
    ])
    let other = try #require(bench.request(.sample(event, headers: Self.structured)))
    #expect(other.text(other.notification.token) == "cd34")
    let binary = Self.headers(["content-type": Array("application/protobuf".utf8)])
    #expect(bench.request(.sample(bytes: writer.bytes, headers: binary)) != nil)
  }

  private typealias Broken = (changes: [String: String?], rule: InvalidRule, message: String)

  private static let broken: [Broken] = [
    Broken(["specversion": nil], .badCloudEvent, "the event's specversion: is required in a CloudEvent"),
    Broken(["specversion": #""0.3""#], .badCloudEvent, "the event's specversion: must be 1.0; found \"0.3\""),
    Broken(
      ["specversion": "1.0"], .badCloudEvent, "the event's specversion: must be a text that is not empty; found 1.0"),
    Broken(["id": nil], .badCloudEvent, "the event's id: is required in a CloudEvent"),
    Broken(["source": #""""#], .badCloudEvent, "the event's source: must be a text that is not empty; found \"\""),
    Broken(["type": "null"], .badCloudEvent, "the event's type: is required in a CloudEvent"),
    Broken(["data": nil], .badCloudEvent, "the event's data: is required"),
    Broken(["data": "null"], .wrongType, "the event's data: must be a JSON object; found null"),
    Broken(["data": #""{}""#], .wrongType, "the event's data: must be a JSON object; found a string"),
    Broken(
      ["data_base64": #""e30=""#], .badCloudEvent, "the event's data: must not be there together with data_base64"),
    Broken(["data": nil, "data_base64": #""e30""#], .badCloudEvent, "the event's data_base64: must be base64"),
    Broken(["datacontenttype": #""text/xml""#], .unsupportedContentType, "the event's datacontenttype: must be"),
    Broken(["datacontenttype": "1"], .badCloudEvent, "the event's datacontenttype: must be a string; found a number"),
    Broken(["datacontenttype": #""application/x-protobuf""#], .unsupportedContentType, "the event's datacontenttype"),
    Broken(["data": #"{"app":"nobody"}"#], .unknownApp, "app: must name a configured app"),
    Broken(["data": "{]"], .malformedJSON, "the value: is not JSON"),
  ]

  @Test(arguments: broken)
  private func `a structured event must be whole`(_ row: Broken) {
    let (changes, rule, message) = row
    guard case .invalid(let invalid) = Self.decode(structured: Self.envelope(changes)) else {
      Issue.record("accepted")
      return
    }
    #expect(invalid.rule == rule)
    #expect(invalid.message.hasPrefix(message), "\(invalid.message)")
    let hasID = rule != .malformedJSON && changes["id"] == nil
    #expect(invalid.text(invalid.id) == (hasID ? "e-1" : nil))
  }

  private typealias BrokenHeader = (name: String, value: [UInt8]?, message: String)

  private static let brokenHeaders: [BrokenHeader] = [
    BrokenHeader("ce_specversion", Array("0.3".utf8), "ce_specversion: must be 1.0; found \"0.3\""),
    BrokenHeader("ce_id", nil, "ce_id: is required in a CloudEvent"),
    BrokenHeader("ce_source", [], "ce_source: must be a text"), BrokenHeader("ce_type", [0xff], "ce_type: must be a"),
    BrokenHeader("CE_TYPE", [], "ce_type: must be a text"),
  ]

  @Test(arguments: brokenHeaders)
  private func `a binary event must be whole`(_ row: BrokenHeader) throws {
    let headers = Self.headers([row.name: row.value])
    let invalid = try #require(DecoderBench().invalid(.sample(Self.data, headers: headers)))
    let message = row.message
    #expect(invalid.rule == .badCloudEvent)
    #expect(invalid.message.hasPrefix(message), "\(invalid.message)")
    #expect(invalid.text(invalid.app) == "shop")
  }

  @Test func `without a version there is no event, and its headers mean nothing`() throws {
    let headers = Self.headers(["ce_specversion": nil, "ce_type": [0xff]]).filter { $0.name != "ce_specversion" }
    let request = try #require(DecoderBench().request(.sample(Self.data, headers: headers)))
    #expect(request.text(request.notification.token) == "ab12")
  }

  @Test func `the id of a binary event is known even if its data cannot be read`() throws {
    let invalid = try #require(DecoderBench().invalid(.sample("{", headers: RequestSample.eventHeaders)))
    #expect(invalid.rule == .malformedJSON)
    #expect(invalid.text(invalid.id) == "event-1")
  }

  @Test func `attributes may have escapes, and of equal ones the last counts`() throws {
    let text =
      #"{"data":{"app":"nobody"},"\u0064ata":\#(Self.data),"specversion":"1\u002e0","id":1,"i\u0064":"e\u002d2","#
      + #""source":"\u002f","type":"\u0074","extra":[{"deep":[]}]}"#
    guard case .request(let request) = Self.decode(structured: text) else {
      Issue.record("refused")
      return
    }
    #expect(request.text(request.id) == "e-2")
  }

  @Test(arguments: [1, 2])
  func `no mutation of an event traps, and what passes keeps the contract`(_ seed: UInt64) {
    var documents = JSONDocuments(seed: seed)
    let base64 = Base64.encode(Self.data.utf8.span)
    let wholes = [
      Array(Self.envelope().utf8), Array(Self.envelope(["data": nil, "data_base64": "\"\(base64)\""]).utf8),
    ]
    var accepted = 0
    for round in 0..<4000 {
      let value = documents.mutated(wholes[round % 2])
      let bench = DecoderBench()
      guard let request = bench.request(.sample(bytes: value, headers: Self.structured)) else { continue }
      accepted += 1
      let payload = Bytes(request.notification.storage, request.notification.payload)
      #expect((try? JSONScanner.document(payload.span).kind) == .object)
      #expect(request.notification.token.count % 2 == 0)
    }
    #expect(accepted > 50)
  }
}
