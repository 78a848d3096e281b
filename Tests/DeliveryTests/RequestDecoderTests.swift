import APNs
import Delivery
import Testing
import Wire

@Suite struct RequestDecoderTests {
  private static let base = #""app":"shop","token":"ab12","payload":{"aps":{}}"#

  @Test func `a null value is a tombstone`() {
    let bench = DecoderBench()
    guard case .tombstone = bench.decode(.sample(nil, key: "k")) else {
      Issue.record("no tombstone")
      return
    }
    let headers: [(name: String, value: [UInt8]?)] = [("app", Array("shop".utf8))]
    guard case .tombstone = bench.decode(.sample(nil, headers: headers)) else {
      Issue.record("no tombstone")
      return
    }
  }

  @Test(arguments: [
    "", " ", "{", "}", "{\"app\"", "{\"app\":\"shop\"", "{\(base)", "{\(base)}}", "{\(base)} x", "{\(base),}",
    "{\(base),\"a\":01}", "{\(base),\"a\":'b'}", "{\(base),\"a\":\"\\x\"}", "{\(base),\"a\":NaN}", "\u{feff}{\(base)}",
    "not json", "{\(base),\"a\":\"\\u12\"}", "{\(base),\"a\":[1,]}",
  ])
  func `what is no JSON is malformed, and nothing of it is believed`(_ value: String) throws {
    let bench = DecoderBench()
    let invalid = try #require(bench.invalid(value))
    #expect(invalid.rule == .malformedJSON)
    #expect(invalid.id == nil)
    #expect(invalid.app == nil)
    #expect(invalid.token == nil)
    #expect(Bytes(invalid.body.storage, try #require(invalid.body.value)).array == Array(value.utf8))
  }

  @Test(arguments: [
    ("[]", "an array"), ("[{}]", "an array"), ("\"x\"", "a string"), ("1", "a number"), ("null", "null"),
  ])
  func `another document than an object has the wrong type`(_ value: String, _ kind: String) throws {
    let bench = DecoderBench()
    let invalid = try #require(bench.invalid(value))
    #expect(invalid.rule == .wrongType)
    #expect(invalid.message == "the value: must be a JSON object; found \(kind)")
  }

  @Test func `invalid UTF-8 anywhere is malformed`() {
    for bad: [UInt8] in [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]] {
      let bench = DecoderBench()
      let value = Array(#"{"app":"shop","token":"ab12","payload":{"a":""#.utf8) + bad + Array(#""}}"#.utf8)
      #expect(bench.invalid(.sample(bytes: value))?.rule == .malformedJSON)
    }
  }

  @Test func `every truncation of a request is malformed`() {
    let whole = Array(#"{"app":"shop","token":"ab12","payload":{"a":[1.5e3,true,null,"\u00e9é"]}}"#.utf8)
    let bench = DecoderBench()
    for count in 0..<whole.count {
      #expect(bench.invalid(.sample(bytes: Array(whole[..<count])))?.rule == .malformedJSON)
    }
    #expect(bench.request(.sample(bytes: whole)) != nil)
  }

  @Test(arguments: [
    #"{"aps":{"alert":"a\/b 😀 Ж","content-available":1},"id":12345678901234567890,"f":1.0,"e":1e2,"t":true,"n":null}"#,
    "{ \"a\" :\t[ 1 ,\r\n2 ] , \"a\" : {} }", #"{"\ud83d\ude00":"\ud800","":"","\u0000":"\u0000"}"#,
    #"{"b":1,"a":2,"b":3}"#, "{}", "{ }", #"{"payload":{"payload":{}},"token":"no","app":7}"#,
  ])
  func `payload bytes are untouched`(_ payload: String) throws {
    let bench = DecoderBench()
    let json = try #require(bench.request(#"{"payload":\#(payload),"app":"shop","token":"ab12"}"#))
    #expect(json.payload == Array(payload.utf8))
    let spaced = try #require(
      bench.request(RequestSample().with(payload: " \n\(payload)\t").record(.headers)))
    #expect(spaced.payload == Array(" \n\(payload)\t".utf8))
  }

  @Test func `the last of duplicate keys counts, whatever stood before`() throws {
    let bench = DecoderBench()
    let request = try #require(
      bench.request(
        #"{"app":7,"app":"shop","token":"zz","token":"ab12","payload":[],"payload":{"n":1},"payload":{"n":2},"#
          + #""priority":"x","priority":5,"tokens":["aa"],"tokens":null,"id":[],"id":"second"}"#))
    #expect(request.payload == Array(#"{"n":2}"#.utf8))
    #expect(request.notification.priority == 5)
    #expect(request.tokens.isEmpty)
    #expect(request.text(request.id) == "second")
    #expect(bench.invalid("{\(Self.base),\"app\":7}")?.rule == .wrongType)
    #expect(bench.invalid("{\(Self.base),\"priority\":5,\"priority\":7}")?.rule == .badPriority)
    #expect(bench.request("{\(Self.base),\"priority\":7,\"priority\":null}")?.notification.priority == 10)
  }

  @Test func `null in an optional field means absent`() throws {
    let bench = DecoderBench()
    let request = try #require(
      bench.request(
        "{\(Self.base),\"tokens\":null,\"push_type\":null,\"priority\":null,\"expiration\":null,"
          + "\"collapse_id\":null,\"id\":null,\"topic\":null}"))
    #expect(request.notification.pushType == .alert)
    #expect(request.notification.priority == 10)
    #expect(request.notification.expiration == nil)
    #expect(request.notification.collapseID.isEmpty)
    #expect(request.id == nil)
    #expect(request.unknownFields == 0)
  }

  @Test func `escapes in keys and values are read`() throws {
    let bench = DecoderBench()
    let request = try #require(
      bench.request(
        #"{"\u0061pp":"sh\u006fp","to\u006ben":"\u0061b12","p\u0061yload":{"a":"\u0041"},"#
          + #""push_type":"\u0061lert","collapse\u005fid":"\ud83d\ude00\/","id":"x\"y","topic":"\u0063om"}"#))
    #expect(request.text(request.notification.token) == "ab12")
    #expect(request.payload == Array(#"{"a":"\u0041"}"#.utf8))
    #expect(request.text(request.notification.collapseID) == "😀/")
    #expect(request.text(request.id) == "x\"y")
    #expect(request.text(request.notification.topic) == "com")
    #expect(request.unknownFields == 0)
  }

  @Test func `limits count the text, not its escapes`() {
    let bench = DecoderBench()
    let text = String(repeating: #"\u0061"#, count: 64)
    #expect(bench.request("{\(Self.base),\"collapse_id\":\"\(text)\"}")?.notification.collapseID.count == 64)
    #expect(bench.invalid("{\(Self.base),\"collapse_id\":\"\(text)a\"}")?.rule == .badCollapseID)
    #expect(bench.invalid("{\(Self.base),\"id\":\"a\\nb\"}")?.rule == .badID)
  }

  @Test(arguments: [
    ("id", InvalidRule.badID), ("collapse_id", .badCollapseID), ("app", .unknownApp), ("token", .badToken),
    ("push_type", .badPushType), ("topic", .badTopic),
  ])
  func `half a surrogate pair is no text`(_ key: String, _ rule: InvalidRule) throws {
    let bench = DecoderBench()
    let invalid = try #require(bench.invalid("{\(Self.base),\"\(key)\":\"\\ud800\"}"))
    #expect(invalid.rule == rule)
    #expect(invalid.message.hasPrefix("\(key): must be Unicode text"))
  }

  @Test func `unknown fields are ignored and counted`() throws {
    let bench = DecoderBench()
    let request = try #require(
      bench.request("{\(Self.base),\"x\":1,\"y\":{\"app\":1},\"\":[[]],\"Priority\":7,\"pushType\":1,\"x\":2}"))
    #expect(request.unknownFields == 6)
    #expect(request.notification.priority == 10)
  }

  @Test func `a record of 1 MiB is decoded`() throws {
    let bench = DecoderBench()
    let filler = String(repeating: "x", count: 1 << 20)
    let request = try #require(bench.request("{\"filler\":\"\(filler)\",\(Self.base)}"))
    #expect(request.unknownFields == 1)
    #expect(request.payload == Array(#"{"aps":{}}"#.utf8))
    #expect(bench.invalid("{\(Self.base),\"id\":\"\(filler)\"}")?.rule == .badID)
    #expect(bench.invalid(String(repeating: "[", count: 1 << 20))?.rule == .malformedJSON)
  }

  @Test(arguments: [
    ("application/json", true), ("application/json; charset=utf-8", true), (" Application/JSON ;x=y", true), ("", true),
    ("text/plain", false), ("application/jsonp", false), ("application/cloudevents-batch+json", false),
    ("application/cloudevents+protobuf", false), ("application/protobuf+json", false),
  ])
  func `other content types than those of JSON are refused`(_ type: String, _ isRead: Bool) {
    let bench = DecoderBench()
    let header: (name: String, value: [UInt8]?) = ("Content-Type", Array(type.utf8))
    let json = bench.decode(.sample("{\(Self.base)}", headers: [header]))
    let fields: [(name: String, value: [UInt8]?)] = [
      ("app", Array("shop".utf8)), ("token", Array("ab12".utf8)), ("id", Array("x".utf8)), header,
    ]
    let headers = bench.decode(.sample("{}", headers: fields))
    for decoded in [json, headers] {
      switch decoded {
      case .request: #expect(isRead)
      case .invalid(let invalid): #expect(!isRead && invalid.rule == .unsupportedContentType)
      case .tombstone: Issue.record("a tombstone")
      }
    }
  }

  @Test func `what could be read of an invalid request is kept`() throws {
    let bench = DecoderBench()
    let sample = RequestSample().with("id", .text("call-1")).with("priority", .number("7"))
    for form in RequestSample.Form.allCases {
      let invalid = try #require(bench.invalid(sample.record(form)))
      #expect(invalid.text(invalid.id) == "call-1")
      #expect(invalid.text(invalid.app) == "shop")
      #expect(invalid.text(invalid.token) == "ab12")
    }
    let partly = try #require(bench.invalid(#"{"id":"call\u002d2","app":7,"token":["x"],"payload":{}}"#))
    #expect(partly.text(partly.id) == "call-2")
    #expect(partly.app == nil)
    #expect(partly.token == nil)
    let badID = try #require(bench.invalid(#"{"id":"","app":"shop","token":"ab","payload":{}}"#))
    #expect(badID.id == nil)
    #expect(badID.text(badID.app) == "shop")
    let broken = try #require(bench.invalid(sample.with("priority", nil).with(payload: "{").record(.headers)))
    #expect(broken.rule == .malformedJSON)
    #expect(broken.text(broken.id) == "call-1")
  }

  // MARK: The header form

  private static func headers(_ more: [(name: String, value: [UInt8]?)]) -> [(name: String, value: [UInt8]?)] {
    [("app", Array("shop".utf8)), ("token", Array("ab12".utf8))] + more
  }

  @Test func `header names have no case, the last counts, and null means absent`() throws {
    let bench = DecoderBench()
    let request = try #require(
      bench.request(
        .sample(
          "{}",
          headers: Self.headers([
            ("APNS-Priority", Array("7".utf8)), ("apns-priority", Array("5".utf8)), ("apns-collapse-id", nil),
            ("traceparent", Array("00-1-2-01".utf8)), ("apns-color", Array("red".utf8)), ("tracestate", nil),
          ]))))
    #expect(request.notification.priority == 5)
    #expect(request.notification.collapseID.isEmpty)
    #expect(request.unknownFields == 1)
    #expect(request.headers.count == 8)
  }

  @Test func `an app header of null leaves the JSON form`() throws {
    let bench = DecoderBench()
    let request = try #require(bench.request(.sample("{\(Self.base)}", headers: [("app", nil), ("id", [0x78])])))
    #expect(request.id == nil)
    #expect(request.payload == Array(#"{"aps":{}}"#.utf8))
  }

  @Test(arguments: ["05", "5.0", "5e0", "-0", "", " 5", "5 ", "+5", "abc", "0x5", "5,", "five", "-", "e1", ".5", "5e"])
  func `a header must be a whole number`(_ text: String) {
    let bench = DecoderBench()
    let record = Record.sample("{}", headers: Self.headers([("apns-priority", Array(text.utf8))]))
    #expect(bench.invalid(record)?.rule == .badPriority)
  }

  @Test(arguments: [("id", InvalidRule.badID), ("apns-collapse-id", .badCollapseID), ("apns-topic", .badTopic)])
  func `a header that is not UTF-8 is refused`(_ name: String, _ rule: InvalidRule) throws {
    let bench = DecoderBench()
    let invalid = try #require(bench.invalid(.sample("{}", headers: Self.headers([(name, [0x61, 0xff])]))))
    #expect(invalid.rule == rule)
    #expect(invalid.message.hasPrefix("\(name): must be Unicode text"))
  }
}
