import APNs
import Delivery
import Testing
import Wire

struct RuleCase: CustomTestStringConvertible, Sendable {
  var testDescription: String
  var sample: RequestSample
  var rule: InvalidRule?

  init(_ name: String, _ sample: RequestSample, breaks rule: InvalidRule?) {
    testDescription = name
    self.sample = sample
    self.rule = rule
  }
}

private let good = RequestSample()
private func text(_ count: Int, of character: String = "a") -> String { DecoderBench.text(count, of: character) }

private func payload(_ count: Int) -> String { #"{"a":""# + text(count - 8) + #""}"# }

private func field(_ key: String, _ text: String) -> RequestSample { good.with(key, .text(text)) }
private func number(_ key: String, _ digits: String) -> RequestSample { good.with(key, .number(digits)) }

/// Both sides of every bound. Each is run in every form.
let ruleCases: [RuleCase] = [
  RuleCase("a plain request", good, breaks: nil),
  RuleCase("no app", good.with("app", nil), breaks: .missingField),
  RuleCase("unknown app", field("app", "shops"), breaks: .unknownApp),
  RuleCase("app by another case", field("app", "Shop"), breaks: .unknownApp),
  RuleCase("empty app", field("app", ""), breaks: .unknownApp),
  RuleCase("no token", good.with("token", nil), breaks: .missingField),
  RuleCase("empty token", field("token", ""), breaks: .badToken),
  RuleCase("token of 1 digit", field("token", "a"), breaks: .badToken),
  RuleCase("token of 2 digits", field("token", "aF"), breaks: nil),
  RuleCase("token of 3 digits", field("token", "abc"), breaks: .badToken),
  RuleCase("token of 160 digits", field("token", text(160)), breaks: nil),
  RuleCase("token of 199 digits", field("token", text(199)), breaks: .badToken),
  RuleCase("token of 200 digits", field("token", text(200)), breaks: nil),
  RuleCase("token of 202 digits", field("token", text(202)), breaks: .badToken),
  RuleCase("token with a letter beyond f", field("token", "abcg"), breaks: .badToken),
  RuleCase("token with a blank", field("token", "ab 1"), breaks: .badToken),
  RuleCase("token in angle brackets", field("token", "<ab12>"), breaks: .badToken),
  RuleCase("token with a slash", field("token", "ab/1"), breaks: .badToken),
  RuleCase("no payload", good.with(payload: nil), breaks: .missingField),
  RuleCase("payload null", good.with(payload: "null"), breaks: .missingField),
  RuleCase("empty payload", good.with(payload: "{}"), breaks: nil),
  RuleCase("payload an array", good.with(payload: "[1]"), breaks: .badPayload),
  RuleCase("payload a string", good.with(payload: #""{}""#), breaks: .badPayload),
  RuleCase("payload a number", good.with(payload: "1"), breaks: .badPayload),
  RuleCase("payload cut off", good.with(payload: #"{"aps":"#), breaks: .malformedJSON),
  RuleCase("payload with a trailing comma", good.with(payload: #"{"aps":1,}"#), breaks: .malformedJSON),
  RuleCase("payload with a bare control character", good.with(payload: "{\"a\":\"\u{1}\"}"), breaks: .malformedJSON),
  RuleCase("payload of 63 levels", good.with(payload: nested(63)), breaks: nil),
  RuleCase("payload of 64 levels", good.with(payload: nested(64)), breaks: .malformedJSON),
  RuleCase("payload of 100,000 levels", good.with(payload: nested(100_000)), breaks: .malformedJSON),
  RuleCase("payload of 4,096 bytes", good.with(payload: payload(4096)), breaks: nil),
  RuleCase("payload of 4,097 bytes", good.with(payload: payload(4097)), breaks: .payloadTooLarge),
  RuleCase("voip of 5,120 bytes", field("push_type", "voip").with(payload: payload(5120)), breaks: nil),
  RuleCase("voip of 5,121 bytes", field("push_type", "voip").with(payload: payload(5121)), breaks: .payloadTooLarge),
  RuleCase("1,000 emoji", good.with(payload: #"{"a":""# + text(1000, of: "😀") + #""}"#), breaks: nil),
  RuleCase("1,300 emoji", good.with(payload: #"{"a":""# + text(1300, of: "😀") + #""}"#), breaks: .payloadTooLarge),
  RuleCase("push type unknown", field("push_type", "brandnew"), breaks: .badPushType),
  RuleCase(
    "push type unknown, with a topic", field("push_type", "brandnew").with("topic", .text("com.example.new")),
    breaks: nil),
  RuleCase("push type in capitals", field("push_type", "Alert"), breaks: .badPushType),
  RuleCase(
    "push type in capitals, with a topic", field("push_type", "Brandnew").with("topic", .text("com.example.new")),
    breaks: .badPushType),
  RuleCase("push type empty", field("push_type", ""), breaks: .badPushType),
  RuleCase("push type with a line break", field("push_type", "alert\n"), breaks: .badPushType),
  RuleCase("priority 10", number("priority", "10"), breaks: nil),
  RuleCase("priority 5", number("priority", "5"), breaks: nil),
  RuleCase("priority 1", number("priority", "1"), breaks: nil),
  RuleCase("priority 0", number("priority", "0"), breaks: .badPriority),
  RuleCase("priority 7", number("priority", "7"), breaks: .badPriority),
  RuleCase("priority 11", number("priority", "11"), breaks: .badPriority),
  RuleCase("priority -5", number("priority", "-5"), breaks: .badPriority),
  RuleCase("priority 5.5", number("priority", "5.5"), breaks: .badPriority),
  RuleCase("priority 261", number("priority", "261"), breaks: .badPriority),
  RuleCase("priority of 40 digits", number("priority", "1" + text(39, of: "0")), breaks: .badPriority),
  RuleCase("background at 10", field("push_type", "background").with("priority", .number("10")), breaks: .badPriority),
  RuleCase("background at 5", field("push_type", "background").with("priority", .number("5")), breaks: nil),
  RuleCase("background at 1", field("push_type", "background").with("priority", .number("1")), breaks: nil),
  RuleCase("expiration 0", number("expiration", "0"), breaks: nil),
  RuleCase("expiration 1", number("expiration", "1"), breaks: nil),
  RuleCase("expiration -1", number("expiration", "-1"), breaks: .badExpiration),
  RuleCase("expiration in 2286", number("expiration", "9999999999"), breaks: nil),
  RuleCase("expiration after 2286", number("expiration", "10000000000"), breaks: .badExpiration),
  RuleCase("expiration in milliseconds", number("expiration", "1790000000123"), breaks: .badExpiration),
  RuleCase("expiration beyond 64 bits", number("expiration", "99999999999999999999"), breaks: .badExpiration),
  RuleCase("expiration with a fraction", number("expiration", "1790000000.5"), breaks: .badExpiration),
  RuleCase("expiration 1e400", number("expiration", "1e400"), breaks: .badExpiration),
  RuleCase("the least exponent", number("expiration", "1e-9223372036854775808"), breaks: .badExpiration),
  RuleCase("the greatest exponent", number("expiration", "1e9223372036854775807"), breaks: .badExpiration),
  RuleCase("collapse id of 64 bytes", field("collapse_id", text(64)), breaks: nil),
  RuleCase("collapse id of 65 bytes", field("collapse_id", text(65)), breaks: .badCollapseID),
  RuleCase("collapse id of 32 é", field("collapse_id", text(32, of: "é")), breaks: nil),
  RuleCase("collapse id of 33 é", field("collapse_id", text(33, of: "é")), breaks: .badCollapseID),
  RuleCase("collapse id of 17 emoji", field("collapse_id", text(17, of: "😀")), breaks: .badCollapseID),
  RuleCase("collapse id with a line break", field("collapse_id", "a\r\nb"), breaks: .badCollapseID),
  RuleCase("collapse id with a delete", field("collapse_id", "a\u{7f}b"), breaks: .badCollapseID),
  RuleCase("collapse id with a blank within", field("collapse_id", "a b"), breaks: nil),
  RuleCase("collapse id with a blank at the end", field("collapse_id", "a "), breaks: .badCollapseID),
  RuleCase("collapse id with a blank at the start", field("collapse_id", " a"), breaks: .badCollapseID),
  RuleCase("empty collapse id", field("collapse_id", ""), breaks: nil),
  RuleCase("empty id", field("id", ""), breaks: .badID),
  RuleCase("id of 1 byte", field("id", "x"), breaks: nil),
  RuleCase("id of 128 bytes", field("id", text(128)), breaks: nil),
  RuleCase("id of 129 bytes", field("id", text(129)), breaks: .badID),
  RuleCase("id with a line break", field("id", "a\nb"), breaks: .badID),
  RuleCase("id with a zero byte", field("id", "a\0b"), breaks: .badID),
  RuleCase("id with letters beyond ASCII", field("id", "Жid"), breaks: nil),
  RuleCase("empty topic", field("topic", ""), breaks: .badTopic),
  RuleCase("topic of 255 bytes", field("topic", text(255)), breaks: nil),
  RuleCase("topic of 256 bytes", field("topic", text(256)), breaks: .badTopic),
  RuleCase("topic with a blank", field("topic", "com.example shop"), breaks: .badTopic),
  RuleCase("topic beyond ASCII", field("topic", "com.exämple"), breaks: .badTopic),
  RuleCase("topic with a delete", field("topic", "com\u{7f}"), breaks: .badTopic),
  RuleCase("channel", broadcast, breaks: nil),
  RuleCase("channel with its push type", broadcast.with("push_type", .text("liveactivity")), breaks: nil),
  RuleCase("channel and token", broadcast.with("token", .text("ab12")), breaks: .badChannel),
  RuleCase("channel with another push type", broadcast.with("push_type", .text("alert")), breaks: .badPushType),
  RuleCase("channel with a topic", broadcast.with("topic", .text("com.example.shop")), breaks: .badTopic),
  RuleCase("channel with a collapse id", broadcast.with("collapse_id", .text("a")), breaks: .badCollapseID),
  RuleCase("channel without an expiration", broadcast.with("expiration", nil), breaks: .missingField),
  RuleCase(
    "channel with the app's expiration", broadcast.with("expiration", nil).with("app", .text("bank")), breaks: nil),
  RuleCase("channel with priority 1", broadcast.with("priority", .number("1")), breaks: nil),
  RuleCase("empty channel", broadcast.with("channel", .text("")), breaks: .badChannel),
  RuleCase("channel of 256 bytes", broadcast.with("channel", .text(text(256))), breaks: nil),
  RuleCase("channel of 257 bytes", broadcast.with("channel", .text(text(257))), breaks: .badChannel),
  RuleCase("channel that is no base64", broadcast.with("channel", .text("a b")), breaks: .badChannel),
  RuleCase("broadcast of 5120 bytes", broadcast.with(payload: #"{"a":"\#(text(5112))"}"#), breaks: nil),
  RuleCase("broadcast of 5121 bytes", broadcast.with(payload: #"{"a":"\#(text(5113))"}"#), breaks: .payloadTooLarge),
  RuleCase("topic of the push type", typed("voip", "com.example.shop.voip"), breaks: nil),
  RuleCase("topic of another type", typed("voip", "com.ex.app.push-type.liveactivity"), breaks: .badTopic),
  RuleCase("topic of another type for alert", typed("alert", "com.example.shop.voip-ptt"), breaks: .badTopic),
  RuleCase("topic of another type by default", field("topic", "com.example.shop.voip"), breaks: .badTopic),
  RuleCase("topic of another app", typed("widgets", "com.other.push-type.widgets"), breaks: nil),
  RuleCase("topic that is a bare suffix", typed("alert", ".voip"), breaks: nil),
  RuleCase("topic without the suffix", typed("voip", "com.example.shop"), breaks: nil),
  RuleCase("topic of mdm", typed("mdm", "com.apple.mgmt.External.voip"), breaks: nil),
  RuleCase("topic of an unknown type", typed("brandnew", "com.example.shop.voip"), breaks: nil),
]

/// A broadcast that keeps the contract.
private let broadcast = good.with("token", nil).with("channel", .text("dHN0LXNyY2gtY2hubA=="))
  .with("expiration", .number("1790000001"))

private func typed(_ type: String, _ topic: String) -> RequestSample {
  field("push_type", type).with("topic", .text(topic))
}

private func nested(_ depth: Int) -> String {
  text(depth, of: #"{"a":"#) + "1" + text(depth, of: "}")
}

@Suite struct RequestRulesTests {
  @Test(arguments: ruleCases, RequestSample.Form.allCases)
  func `each rule holds in both forms`(_ test: RuleCase, _ form: RequestSample.Form) {
    guard test.sample.fits(form) else { return }
    let bench = DecoderBench()
    switch bench.decode(test.sample.record(form)) {
    case .request: #expect(test.rule == nil)
    case .invalid(let invalid): #expect(invalid.rule == test.rule, "\(invalid.message)")
    case .tombstone: Issue.record("a tombstone")
    }
  }

  @Test(arguments: PushType.allCases.filter { $0 != .other }, RequestSample.Form.allCases)
  func `each push type brings its topic and priority`(_ type: PushType, _ form: RequestSample.Form) throws {
    let bench = DecoderBench()
    let request = try #require(bench.request(field("push_type", type.name).record(form)))
    #expect(request.notification.pushType == type)
    #expect(request.notification.priority == (type == .background ? 5 : 10))
    #expect(request.notification.topic.isEmpty)
    let topic = String(decoding: bench.apps.topic(for: request.app, type), as: UTF8.self)
    #expect(topic == "com.example.shop" + type.topicSuffix)
  }

  @Test(
    arguments: [("newtype", "com.example.bank.x"), ("plain-type", "com.example.bank")], RequestSample.Form.allCases)
  func `a configured push type brings its topic`(
    _ row: (type: String, topic: String), _ form: RequestSample.Form
  ) throws {
    let bench = DecoderBench()
    let sample = good.with("app", .text("bank")).with("push_type", .text(row.type))
    let request = try #require(bench.request(sample.record(form)))
    #expect(request.notification.pushType == .other)
    #expect(request.text(request.notification.pushTypeName) == row.type)
    #expect(request.text(request.notification.topic) == row.topic)
    #expect(request.text(request.notification.token) == "ab12")
    #expect(request.payload == Array(#"{"aps":{"alert":"Hi"}}"#.utf8))
    // What the request says itself goes first, and another app knows nothing of it.
    let own = try #require(bench.request(sample.with("topic", .text("com.own")).record(form)))
    #expect(own.text(own.notification.topic) == "com.own")
    #expect(bench.invalid(sample.with("app", .text("shop")).record(form))?.rule == .badPushType)
  }

  @Test func `an app whose bundle id looks like a topic may name it`() throws {
    let bench = DecoderBench()
    bench.apps.update(AppRules(name: "shop", bundleID: "com.acme.voip", environment: .production))
    #expect(bench.request(typed("alert", "com.acme.voip").record(.json)) != nil)
    #expect(bench.invalid(typed("alert", "com.other.voip").record(.json))?.rule == .badTopic)
  }

  @Test(arguments: RequestSample.Form.allCases)
  func `a channel takes the place of a token`(_ form: RequestSample.Form) throws {
    let bench = DecoderBench()
    let request = try #require(bench.request(broadcast.record(form)))
    #expect(request.notification.isBroadcast)
    #expect(request.text(request.notification.channel) == "dHN0LXNyY2gtY2hubA==")
    #expect(request.notification.token.isEmpty)
    #expect(request.notification.pushType == .liveactivity)
    #expect(request.notification.expiration == 1_790_000_001)
    // The three ways to say where to exclude each other.
    let batch = broadcast.with("tokens", .raw(#"["ab"]"#)).record(.json)
    #expect(bench.invalid(batch)?.message == "channel: must not be there together with tokens; found both")
  }

  @Test(arguments: RequestSample.Form.allCases)
  func `every field arrives`(_ form: RequestSample.Form) throws {
    let bench = DecoderBench()
    let sample = RequestSample(
      fields: [
        ("app", .text("bank")), ("token", .text("AbCd")), ("push_type", .text("brandnew")),
        ("priority", .number("1")), ("expiration", .number("1790000001")), ("collapse_id", .text("order 42 é")),
        ("id", .text("caller-1")), ("topic", .text("com.example.other")),
      ], payload: #"{ "aps" : {} }"#)
    let request = try #require(bench.request(sample.record(form)))
    #expect(request.app == bench.apps.find("bank"))
    #expect(request.text(request.notification.token) == "AbCd")
    #expect(request.notification.pushType == .other)
    #expect(request.text(request.notification.pushTypeName) == "brandnew")
    #expect(request.notification.priority == 1)
    #expect(request.notification.expiration == 1_790_000_001)
    #expect(request.text(request.notification.collapseID) == "order 42 é")
    #expect(request.text(request.id) == "caller-1")
    #expect(request.text(request.notification.topic) == "com.example.other")
    #expect(request.payload == Array(#"{ "aps" : {} }"#.utf8))
    #expect(request.tokens.isEmpty)
    #expect(request.unknownFields == 0)
  }

  @Test(arguments: RequestSample.Form.allCases)
  func `a default expiration counts from the record's time`(_ form: RequestSample.Form) throws {
    let bench = DecoderBench()
    let sample = good.with("app", .text("bank"))
    func expiration(_ sample: RequestSample, _ time: UnixTime?) throws -> Int64? {
      try #require(bench.request(sample.record(form, timestamp: time))).notification.expiration
    }
    #expect(try expiration(sample, UnixTime(milliseconds: 1_700_000_000_999)) == 1_700_003_600)
    #expect(try expiration(sample, nil) == 1_790_003_600)
    #expect(try expiration(sample.with("expiration", .number("0")), nil) == 0)
    #expect(try expiration(sample.with("expiration", .number("7")), nil) == 7)
    #expect(try expiration(good, nil) == nil)
    // Timestamps are the producer's and may be nonsense.
    #expect(try expiration(sample, UnixTime(milliseconds: .min)) == 3600)
    #expect(try expiration(sample, UnixTime(milliseconds: .max)) == RequestLimits.expiration)
  }

  @Test(arguments: [("10.0", 10), ("1e1", 10), ("5.00", 5), ("100E-1", 10), ("0.1e+1", 1), ("-0.5e1", nil)])
  func `a number is judged by its value`(_ digits: String, _ priority: UInt8?) {
    let bench = DecoderBench()
    #expect(bench.request(number("priority", digits).record(.json))?.notification.priority == priority)
  }

  @Test(arguments: RequestSample.Form.allCases)
  func `a removed app is unknown`(_ form: RequestSample.Form) throws {
    let bench = DecoderBench()
    bench.apps.remove(try #require(bench.apps.find("shop")))
    let invalid = try #require(bench.invalid(good.record(form)))
    #expect(invalid.rule == .unknownApp)
    #expect(invalid.message.contains("removed"))
  }

  @Test(arguments: [
    (number("priority", "7"), "priority: must be 10, 5 or 1; found 7"),
    (
      good.with("priority", .text("10")), "priority: must be a number; found \"10\""
    ),
    (good.with("token", .raw("[\"ab\"]")), "token: must be a string; found an array"),
    (good.with("token", .raw("true")), "token: must be a string; found a boolean"),
    (good.with("token", nil).with("tokn", .text("ab")), "token: is required; found \"tokn\", did you mean token?"),
    (
      good.with("token", nil).with("deviceToken", .text("ab")),
      "token: is required; found \"deviceToken\", did you mean token?"
    ),
    (good.with("token", nil).with("colour", .text("ab")), "token: is required"),
    (good.with("app", .raw("null")), "app: is required; found null"),
    (
      typed("voip", "com.a.push-type.liveactivity"),
      "topic: must not end in .push-type.liveactivity for the push type voip; found \"com.a.push-type.liveactivity\""
    ),
    (field("app", "nobody"), "app: must name a configured app; found \"nobody\""),
    (good.with(payload: "[1,2]"), "payload: must be a JSON object; found an array"),
    (
      field("token", "0123456789abcdef012345678xyz"),
      "token: must be an even number of hex digits, 2 to 200; found \"0123…8xyz\" of 28 bytes"
    ),
  ])
  func `messages name the field, the rule and what was found`(_ sample: RequestSample, _ message: String) {
    let bench = DecoderBench()
    #expect(bench.invalid(sample.record(.json))?.message == message)
  }

  @Test func `a time in milliseconds is told`() throws {
    let bench = DecoderBench()
    let invalid = try #require(bench.invalid(number("expiration", "1790000000123").record(.json)))
    #expect(invalid.message.contains("milliseconds"))
    #expect(invalid.message.hasSuffix("found 1790000000123"))
  }

  @Test func `messages are short and never tell the payload`() throws {
    let bench = DecoderBench()
    let long = try #require(bench.invalid(field("app", text(10_000)).record(.json)))
    #expect(long.message.utf8.count < 200)
    for payload in [#"{"secret":"x}"#, #"["secret"]"#, #""secret""#, #"{"secret":"\#(text(5000))"}"#] {
      for form in RequestSample.Form.allCases {
        let invalid = try #require(bench.invalid(good.with(payload: payload).record(form)))
        #expect(!invalid.message.contains("secret"))
      }
    }
  }
}
