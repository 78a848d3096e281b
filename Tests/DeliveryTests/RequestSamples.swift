import APNs
import Delivery
import Wire

/// A request as a test describes it, in whichever form.
struct RequestSample {
  enum Value {
    case text(String)
    case number(String)
    /// JSON as it stands; the JSON form only.
    case raw(String)
  }

  /// `framed`: Protobuf as the serializers of a schema registry write it. The events are JSON.
  enum Form: CaseIterable { case json, headers, protobuf, framed, structuredEvent, binaryEvent }

  /// By the keys of the JSON form.
  var fields: [(key: String, value: Value)] = [("app", .text("shop")), ("token", .text("ab12"))]
  var payload: String? = #"{"aps":{"alert":"Hi"}}"#

  func with(_ key: String, _ value: Value?) -> RequestSample {
    var copy = self
    copy.fields.removeAll { $0.key == key }
    if let value { copy.fields.append((key, value)) }
    return copy
  }

  func with(payload: String?) -> RequestSample {
    var copy = self
    copy.payload = payload
    return copy
  }

  func record(_ form: Form, timestamp: UnixTime? = nil) -> Record {
    switch form {
    case .json: .sample(json, timestamp: timestamp)
    case .headers: .sample(payload ?? "", headers: headers, timestamp: timestamp)
    case .protobuf:
      .sample(
        bytes: protobuf, headers: [("content-type", Array("application/x-protobuf".utf8))], timestamp: timestamp)
    case .framed: .sample(bytes: [0, 0, 0, 1, 7, 0] + protobuf, timestamp: timestamp)
    case .structuredEvent:
      .sample(
        #"{"specversion":"1.0","type":"t","source":"/s","id":"event-1","data":\#(json)}"#,
        headers: [("content-type", Array("application/cloudevents+json; charset=UTF-8".utf8))], timestamp: timestamp)
    case .binaryEvent:
      .sample(
        json, headers: Self.eventHeaders + [("content-type", Array("application/json".utf8))], timestamp: timestamp)
    }
  }

  static let eventHeaders: [(name: String, value: [UInt8]?)] = [
    ("ce_specversion", Array("1.0".utf8)), ("ce_id", Array("event-1".utf8)), ("ce_source", Array("/s".utf8)),
    ("ce_type", Array("t".utf8)),
  ]

  /// Whether the form has a way to say it: Protobuf has no fractions, and no numbers beyond 64 bits.
  func fits(_ form: Form) -> Bool {
    guard form == .protobuf || form == .framed else { return true }
    return fields.allSatisfy { field in
      switch field.value {
      case .text: true
      case .number(let digits): Int64(digits) != nil
      case .raw: false
      }
    }
  }

  static let fieldNumbers = [
    "app": 1, "token": 2, "tokens": 3, "payload": 4, "push_type": 5, "priority": 6, "expiration": 7,
    "collapse_id": 8, "id": 9, "topic": 10, "channel": 11,
  ]

  private var protobuf: [UInt8] {
    var writer = ProtobufWriter()
    for field in fields {
      guard let number = Self.fieldNumbers[field.key] else { continue }
      switch field.value {
      case .text(let text), .raw(let text): writer.string(number, text)
      case .number(let digits): writer.integer(number, Int64(digits) ?? 0)
      }
    }
    if let payload { writer.string(4, payload) }
    return writer.take()
  }

  private var json: String {
    var members: [String] = fields.map { "\(Self.quoted($0.key)):\(Self.json($0.value))" }
    if let payload { members.append("\"payload\":\(payload)") }
    return "{" + members.joined(separator: ",") + "}"
  }

  private var headers: [(name: String, value: [UInt8]?)] {
    let names = [
      "push_type": "apns-push-type", "priority": "apns-priority", "expiration": "apns-expiration",
      "collapse_id": "apns-collapse-id", "topic": "apns-topic", "channel": "apns-channel-id",
    ]
    return fields.map { field in
      let value: String
      switch field.value {
      case .text(let text), .number(let text), .raw(let text): value = text
      }
      return (names[field.key] ?? field.key, Array(value.utf8))
    }
  }

  private static func json(_ value: Value) -> String {
    switch value {
    case .text(let text): quoted(text)
    case .number(let text), .raw(let text): text
    }
  }

  private static func quoted(_ text: String) -> String {
    var writer = JSONWriter()
    writer.string(text)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}

extension Record {
  static func sample(
    _ value: String?, key: String? = nil, headers: [(name: String, value: [UInt8]?)] = [],
    source: PartitionID = PartitionID(topic: 0, partition: 3), offset: Int64 = 42, timestamp: UnixTime? = nil
  ) -> Record {
    sample(
      bytes: value.map { Array($0.utf8) }, key: key, headers: headers, source: source, offset: offset,
      timestamp: timestamp)
  }

  static func sample(
    bytes: [UInt8]?, key: String? = nil, headers: [(name: String, value: [UInt8]?)] = [],
    source: PartitionID = PartitionID(topic: 0, partition: 3), offset: Int64 = 42, timestamp: UnixTime? = nil
  ) -> Record {
    Record(
      source: source, offset: offset, timestamp: timestamp,
      body: RecordBody(key: key.map { Array($0.utf8) }, value: bytes, headers: headers))
  }
}

/// A decoder with two apps, and what came out of it in terms that tests can compare.
final class DecoderBench {
  static let now = Moment(instant: Instant(nanoseconds: 0), time: UnixTime(seconds: 1_790_000_000))
  static let topics = ["push.requests", "push.deferred"]

  var apps = AppTable([
    AppRules(name: "shop", bundleID: "com.example.shop", environment: .production),
    AppRules(
      name: "bank", bundleID: "com.example.bank", environment: .sandbox, defaultExpiration: .seconds(3600),
      pushTypes: ["newtype": ".x", "plain-type": ""]),
  ])
  var decoder = RequestDecoder(topics: DecoderBench.topics, deferredTopic: "push.deferred")

  func decode(_ record: Record) -> Decoded { decoder.decode(record, apps: apps, now: Self.now) }

  func decode(_ value: String) -> Decoded { decode(.sample(value)) }

  func request(_ record: Record) -> Request? {
    guard case .request(let request) = decode(record) else { return nil }
    return request
  }

  func request(_ value: String) -> Request? { request(.sample(value)) }

  func invalid(_ record: Record) -> InvalidRequest? {
    guard case .invalid(let invalid) = decode(record) else { return nil }
    return invalid
  }

  func invalid(_ value: String) -> InvalidRequest? { invalid(.sample(value)) }
}

extension Request {
  func text(_ range: ByteRange?) -> String? { range.map { Bytes(notification.storage, $0).text } }
  var payload: [UInt8] { Bytes(notification.storage, notification.payload).array }
}

extension InvalidRequest {
  func text(_ range: ByteRange?) -> String? { range.map { Bytes(body.storage, $0).text } }
}

extension DecoderBench {
  static func text(_ count: Int, of character: String = "a") -> String { String(repeating: character, count: count) }
}
