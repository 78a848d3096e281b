import APNs
import Delivery
import FoundationEssentials
import Testing
import Wire

/// A result as its readers see it, by a decoder that is not ours.
private struct ResultDocument: Decodable {
  struct Source: Decodable, Equatable {
    var topic: String
    var partition: Int
    var offset: Int64
    var index: Int
  }

  var id: String
  var app: String?
  var token: String?
  var channel: String?
  var status: String
  var httpStatus: Int?
  var reason: String?
  var message: String?
  var apnsId: String?
  var apnsUniqueId: String?
  var topic: String?
  var environment: String?
  var pushType: String?
  var attempts: Int
  var requestedAt: Int64
  var completedAt: Int64
  var source: Source
}

private struct EventDocument: Decodable {
  var token: String
  var app: String
  var topic: String
  var environment: String
  var reason: String
  var suspect: Bool
  var unregisteredAt: Int64?
  var requestedAt: Int64
  var detectedAt: Int64
  var id: String
  var source: ResultDocument.Source
}

@Suite struct ResultEncoderTests {
  private static let slot = PushSlot(index: 7, generation: 9)
  private static let source = Source(partition: PartitionID(topic: 0, partition: 3), offset: 42)
  private static let callerID = "5f0c21ab-1111-4222-8333-abcdefabcdef"
  private let encoder = ResultEncoder(topics: DecoderBench.topics)
  private let bench = DecoderBench()
  private var outbox = Outbox()

  private mutating func subject(
    _ sample: RequestSample = RequestSample().with("id", .text(callerID)), key: String? = "user-1",
    headers: [(name: String, value: [UInt8]?)] = []
  ) throws -> ResultSubject {
    var record = sample.record(.json)
    let value = try #require(record.body.value)
    record = .sample(bytes: Bytes(record.body.storage, value).array, key: key, headers: headers)
    let request = try #require(bench.request(record))
    return ResultSubject(
      request, source: Self.source, attempts: 2, requestedAt: UnixTime(milliseconds: 1_790_000_000_123))
  }

  @discardableResult
  private static func read<Document: Decodable>(_ type: Document.Type, _ bytes: Bytes) throws -> Document {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(type, from: Data(bytes.array))
  }

  private mutating func result(_ subject: ResultSubject, _ ending: Ending) throws -> ResultDocument {
    outbox.removeAll()
    encoder.result(
      of: subject, ending: ending, completedAt: UnixTime(milliseconds: 1_790_000_000_456), apps: bench.apps,
      slot: Self.slot, into: &outbox)
    let item = try #require(outbox.items.last)
    #expect(item.topic == .results)
    #expect(item.slot == Self.slot)
    return try Self.read(ResultDocument.self, try #require(outbox.value(of: item)))
  }

  @Test mutating func `a result is laid out as the contract shows it`() throws {
    let response = Response(status: 410, reason: .unregistered, uniqueID: "u-1")
    _ = try result(try subject(), .rejected(response))
    #expect(
      outbox.value(of: outbox.items[0])?.text
        == #"{"id":"5f0c21ab-1111-4222-8333-abcdefabcdef","app":"shop","token":"ab12","channel":null,"status":"rejected","#
        + #""http_status":410,"reason":"Unregistered","apns_id":"5f0c21ab-1111-4222-8333-abcdefabcdef","#
        + #""apns_unique_id":"u-1","topic":"com.example.shop","environment":"production","push_type":"alert","#
        + #""attempts":2,"requested_at":1790000000123,"completed_at":1790000000456,"#
        + #""source":{"topic":"push.requests","partition":3,"offset":42,"index":0}}"#)
    #expect(outbox.key(of: outbox.items[0])?.text == "user-1")
  }

  @Test mutating func `each ending has its status, answer and reason`() throws {
    let subject = try subject()
    let cases: [(Ending, String, Int?, String?)] = [
      (.delivered(Response(status: 200)), "delivered", 200, nil),
      (.rejected(Response(status: 400, reason: .badDeviceToken)), "rejected", 400, "BadDeviceToken"),
      (.rejected(Response(status: 418, reason: .unknown, unknownReason: "Tea\"pot")), "rejected", 418, "Tea\"pot"),
      (.rejected(Response(status: 404)), "rejected", 404, nil),
      (.expired, "expired", nil, nil),
      (.failed(.answered(Response(status: 503, reason: .serviceUnavailable))), "failed", 503, "ServiceUnavailable"),
      (.failed(.notSent(.unreachable)), "failed", nil, "Unreachable"),
      (.failed(.notSent(.tls)), "failed", nil, "TLSFailure"),
      (.failed(.lost(.connectionClosed)), "failed", nil, "ConnectionClosed"),
      (.failed(.lost(.streamRefused)), "failed", nil, "StreamRefused"),
      (.failed(.notSent(.credentials)), "failed", nil, "CredentialsUnusable"),
      (.failed(.notSent(.draining)), "failed", nil, "ShuttingDown"),
      (.failed(.notSent(.appRemoved)), "failed", nil, "AppRemoved"),
      (.failed(.timedOut), "failed", nil, "RequestTimeout"),
      (.invalid(.badToken, message: "token: \"x\""), "invalid", nil, "BadToken"),
    ]
    for (ending, status, httpStatus, reason) in cases {
      let document = try result(subject, ending)
      #expect(document.status == status)
      #expect(document.httpStatus == httpStatus)
      #expect(document.reason == reason)
      #expect(document.message == (status == "invalid" ? "token: \"x\"" : nil))
    }
  }

  @Test mutating func `a body that is no reason is told as the message`() throws {
    let subject = try subject()
    for ending in [
      Ending.rejected(Response(status: 404, bodyText: "<html> \"no\"")),
      .failed(.answered(Response(status: 404, bodyText: "<html> \"no\""))),
    ] {
      let document = try result(subject, ending)
      #expect(document.message == "<html> \"no\"")
      #expect(document.reason == nil && document.httpStatus == 404)
    }
  }

  @Test mutating func `without an id the derived one stands in, and the key is the request's or the id`() throws {
    let derived = try subject(RequestSample(), key: nil)
    var document = try result(derived, .expired)
    #expect(document.id == derived.notification.apnsID.description)
    #expect(document.apnsId == document.id)
    #expect(outbox.key(of: outbox.items[0])?.text == document.id)

    document = try result(try subject(RequestSample().with("id", .text("call-é")), key: nil), .expired)
    #expect(document.id == "call-é")
    #expect(outbox.key(of: outbox.items[0])?.text == "call-é")

    _ = try result(try subject(key: ""), .expired)
    #expect(outbox.key(of: outbox.items[0])?.text == "")
  }

  @Test mutating func `an unknown push type and a given topic are told as they came`() throws {
    let sample = RequestSample().with("push_type", .text("brandnew")).with("topic", .text("com.example.new"))
    let document = try result(try subject(sample), .expired)
    #expect(document.pushType == "brandnew")
    #expect(document.topic == "com.example.new")
    let voip = try result(try subject(RequestSample().with("push_type", .text("voip"))), .expired)
    #expect(voip.topic == "com.example.shop.voip")
    #expect(voip.environment == "production")
  }

  @Test mutating func `an item of a batch has its own token, apns-id and index`() throws {
    let value = #"{"app":"shop","payload":{},"id":"\#(Self.callerID)","tokens":["ab","CD","x"]}"#
    let request = try #require(bench.request(value))
    var source = Self.source
    source.item = 1
    var document = try result(
      ResultSubject(request, source: source, attempts: 1, requestedAt: UnixTime(milliseconds: 1)), .expired)
    #expect(document.token == "CD")
    #expect(document.apnsId == request.apnsID(item: 1).description)
    #expect(document.id == Self.callerID)
    #expect(document.source == .init(topic: "push.requests", partition: 3, offset: 42, index: 1))
    source.item = 2
    document = try result(
      ResultSubject(request, source: source, attempts: 0, requestedAt: UnixTime(milliseconds: 1)),
      .invalid(.badToken, message: "m"))
    #expect(document.token == nil)
    #expect(document.app == "shop")
  }

  @Test mutating func `an invalid request's result says what could be read`() throws {
    let invalid = try #require(bench.invalid(.sample(#"{"id":"i\u00e9","app":"nobody","token":"ab"}"#, key: "k")))
    let subject = ResultSubject(invalid, source: Self.source, requestedAt: UnixTime(milliseconds: 5))
    let document = try result(subject, .invalid(invalid.rule, message: invalid.message))
    #expect(document.id == "ié")
    #expect(document.app == "nobody")
    #expect(document.token == "ab")
    #expect(document.status == "invalid")
    #expect(document.reason == "UnknownApp")
    #expect(document.message == invalid.message)
    #expect(document.apnsId == nil)
    #expect(document.topic == nil)
    #expect(document.environment == nil)
    #expect(document.pushType == nil)
    #expect(document.attempts == 0)
    #expect(outbox.key(of: outbox.items[0])?.text == "k")
  }

  @Test mutating func `an event names the token exactly as it was received`() throws {
    let subject = try subject(RequestSample().with("token", .text("aBCd")).with("id", .text("x")))
    let response = Response(
      status: 410, reason: .expiredToken, timestamp: UnixTime(milliseconds: 1_780_000_000_001))
    let bare = Response(status: 400, reason: .badDeviceToken)
    for (response, since, isSuspect) in [(response, 1_780_000_000_001 as Int64?, false), (bare, nil, true)] {
      outbox.removeAll()
      encoder.invalidToken(
        of: subject, response: response, isSuspect: isSuspect, detectedAt: UnixTime(milliseconds: 9), apps: bench.apps,
        slot: Self.slot, into: &outbox)
      let item = outbox.items[0]
      #expect(item.topic == .invalidTokens)
      #expect(outbox.key(of: item)?.text == "aBCd")
      let value = try #require(outbox.value(of: item))
      let event = try Self.read(EventDocument.self, value)
      #expect(event.token == "aBCd")
      #expect(event.app == "shop")
      #expect(event.topic == "com.example.shop")
      #expect(event.environment == "production")
      #expect(event.reason == response.reason?.text)
      #expect(event.suspect == isSuspect)
      #expect(event.unregisteredAt == since)
      #expect(event.requestedAt == 1_790_000_000_123)
      #expect(event.detectedAt == 9)
      #expect(event.id == "x")
      #expect(event.source.offset == 42)
    }
  }

  @Test mutating func `a dead letter is the record as it was, and why`() throws {
    let bytes: [UInt8] = [0xff, 0x00, 0x7b]
    let record = Record.sample(
      bytes: bytes, key: "k", headers: [("traceparent", [1]), ("martlet-error", [2]), ("empty", nil)])
    let invalid = try #require(bench.invalid(record))
    let subject = ResultSubject(invalid, source: Self.source, requestedAt: UnixTime(milliseconds: 5))
    encoder.deadLetter(
      of: subject, rule: invalid.rule, message: invalid.message, failedAt: UnixTime(milliseconds: 77),
      slot: Self.slot, into: &outbox)
    let item = outbox.items[0]
    #expect(item.topic == .deadLetters)
    #expect(outbox.key(of: item)?.text == "k")
    #expect(try #require(outbox.value(of: item)).array == bytes)
    // The headers of an earlier life as a dead letter are not repeated.
    #expect(item.headers.map { Bytes(item.requestStorage, $0.name).text } == ["traceparent", "empty"])
    let own = Dictionary(uniqueKeysWithValues: item.extraHeaders.map { ($0.name, $0.value) })
    #expect(
      own == [
        "martlet-error-rule": "MalformedJSON", "martlet-error": invalid.message,
        "martlet-source-topic": "push.requests", "martlet-source-partition": "3", "martlet-source-offset": "42",
        "martlet-failed-at": "77",
      ])
  }

  @Test mutating func `request headers are copied, and left out of the shortened form`() throws {
    let subject = try subject(headers: [("traceparent", Array("00-a".utf8)), ("x", nil)])
    for isShortened in [false, true] {
      outbox.removeAll()
      encoder.result(
        of: subject, ending: .expired, completedAt: UnixTime(milliseconds: 1), apps: bench.apps, slot: Self.slot,
        isShortened: isShortened, into: &outbox)
      encoder.deadLetter(
        of: subject, rule: .badID, message: "m", failedAt: UnixTime(milliseconds: 1), slot: Self.slot,
        isShortened: isShortened, into: &outbox)
      for item in outbox.items { #expect(item.headers.count == (isShortened ? 0 : 2)) }
      #expect((outbox.items[1].value == nil) == isShortened)
    }
  }

  @Test mutating func `records lie one behind the other in one arena`() throws {
    let subjects = [try subject(), try subject(RequestSample(), key: nil)]
    for subject in subjects {
      encoder.result(
        of: subject, ending: .expired, completedAt: UnixTime(milliseconds: 1), apps: bench.apps, slot: Self.slot,
        into: &outbox)
    }
    #expect(outbox.items.count == 2)
    for item in outbox.items {
      let value = try #require(outbox.value(of: item))
      #expect(throws: Never.self) { try Self.read(ResultDocument.self, value) }
    }
  }

  // MARK: Parking

  /// The record that Kafka would bring back from the deferred topic.
  private func parked(_ subject: ResultSubject, notBefore: Int64, offset: Int64 = 5) throws -> Record {
    var outbox = Outbox()
    encoder.deferred(
      of: subject, notBefore: UnixTime(milliseconds: notBefore), slot: Self.slot, into: &outbox)
    let item = outbox.items[0]
    #expect(item.topic == .deferred)
    var headers: [(name: String, value: [UInt8]?)] = item.headers.map { header in
      (Bytes(item.requestStorage, header.name).text, header.value.map { Bytes(item.requestStorage, $0).array })
    }
    headers += item.extraHeaders.map { ($0.name, Array($0.value.utf8)) }
    return .sample(
      bytes: outbox.value(of: item)?.array, key: outbox.key(of: item)?.text, headers: headers,
      source: PartitionID(topic: 1, partition: 0), offset: offset, timestamp: UnixTime(milliseconds: 1))
  }

  @Test mutating func `a parked request comes back as itself`() throws {
    var subject = try subject(
      RequestSample().with("app", .text("bank")), headers: [("traceparent", Array("00-a".utf8))])
    for round in 1...2 {
      let request = try #require(bench.request(try parked(subject, notBefore: 1_790_000_000_000 + Int64(round))))
      #expect(
        request.deferral
          == Deferral(
            notBefore: UnixTime(milliseconds: 1_790_000_000_000 + Int64(round)), source: Self.source, attempts: 2,
            requestedAt: UnixTime(milliseconds: 1_790_000_000_123),
            takenUpAt: UnixTime(milliseconds: 1_790_000_000_000 + Int64(round))))
      #expect(request.notification.apnsID == subject.notification.apnsID)
      // The default expiration counts from the first record, not from the parked one.
      #expect(request.notification.expiration == 1_790_003_600)
      #expect(request.text(request.key) == "user-1")
      let value = Bytes(request.notification.storage, request.value).text
      #expect(value == Bytes(subject.notification.storage, try #require(subject.value)).text)
      subject = ResultSubject(
        request, source: Self.source, attempts: 2, requestedAt: UnixTime(milliseconds: 1_790_000_000_123))
    }
  }

  @Test(arguments: [0, 1_790_000_000_123_456, .max] as [Int64])
  mutating func `a parked request keeps even an absurd timestamp`(_ milliseconds: Int64) throws {
    var subject = try subject()
    subject.requestedAt = UnixTime(milliseconds: milliseconds)
    let request = try #require(bench.request(try parked(subject, notBefore: 1)))
    #expect(request.deferral?.requestedAt == subject.requestedAt)
    #expect(request.deferral?.source == Self.source)
  }

  @Test mutating func `of a batch only the parked item comes back`() throws {
    let batch = try #require(bench.request(#"{"app":"shop","payload":{},"tokens":["ab","CD","x"]}"#))
    var source = Self.source
    source.item = 1
    let subject = ResultSubject(batch, source: source, attempts: 1, requestedAt: UnixTime(milliseconds: 1))
    let request = try #require(bench.request(try parked(subject, notBefore: 1)))
    #expect(request.tokens.isEmpty)
    #expect(request.invalidItems.isEmpty)
    #expect(request.text(request.notification.token) == "CD")
    #expect(request.notification.apnsID == batch.apnsID(item: 1))
    #expect(request.deferral?.source == source)
  }

  @Test mutating func `parking headers are believed on the deferred topic only, and only whole`() throws {
    var record = try parked(try subject(), notBefore: 1)
    #expect(bench.request(record)?.deferral != nil)
    record.source.topic = 0
    #expect(try #require(bench.request(record)).deferral == nil)
    record.source.topic = 1
    let whole = record
    for index in record.body.headers.indices {
      record = whole
      record.body.headers[index].value = nil
      #expect(try #require(bench.request(record)).deferral == nil)
      record.body.headers.remove(at: index)
      #expect(try #require(bench.request(record)).deferral == nil)
    }
  }

  @Test mutating func `an invalid parked request keeps its source`() throws {
    let record = try parked(try subject(), notBefore: 1)
    bench.apps.remove(AppIndex(0))
    let invalid = try #require(bench.invalid(record))
    #expect(invalid.rule == .unknownApp)
    #expect(invalid.deferral?.source == Self.source)
  }
}
