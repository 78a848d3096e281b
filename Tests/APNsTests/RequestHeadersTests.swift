import APNs
import Testing
import Wire

/// Keeps what it is given, as text.
private struct Collector: HeaderSink {
  struct Field: Equatable {
    var name: String
    var value: String
    var neverIndexed: Bool
  }

  var fields: [Field] = []

  mutating func add(name: StaticString, value: Span<UInt8>, neverIndexed: Bool) {
    var bytes: [UInt8] = []
    for index in value.indices { bytes.append(value[index]) }
    fields.append(
      Field(name: name.description, value: String(decoding: bytes, as: UTF8.self), neverIndexed: neverIndexed))
  }

  mutating func add(name: StaticString, neverIndexed: Bool, value: (inout [UInt8]) -> Void) {
    var bytes: [UInt8] = []
    value(&bytes)
    add(name: name, value: bytes.span, neverIndexed: neverIndexed)
  }

  subscript(_ name: String) -> String? { fields.first { $0.name == name }?.value }
}

@Suite struct RequestHeadersTests {
  private func notification(
    token: String = "ab12", type: PushType = .alert, typeName: String = "", priority: UInt8 = 10,
    expiration: Int64? = nil, collapseID: String = "", topic: String = ""
  ) -> Notification {
    var storage: [UInt8] = []
    func lay(_ text: String) -> ByteRange {
      let start = storage.count
      storage.append(contentsOf: text.utf8)
      return ByteRange(start, storage.count)
    }
    _ = lay("###")
    let ranges = (lay(token), lay("{}"), lay(typeName), lay(collapseID), lay(topic))
    return Notification(
      storage: storage, token: ranges.0, payload: ranges.1, pushType: type, pushTypeName: ranges.2,
      priority: priority, expiration: expiration, collapseID: ranges.3, topic: ranges.4,
      apnsID: UUID(high: 0x0123_4567_89ab_cdef, low: 0xfedc_ba98_7654_3210))
  }

  private func shared(_ notification: Notification, authorization: String = "bearer jwt") -> SharedHeaders {
    SharedHeaders(
      of: notification, bundleID: "com.ex.app", authority: Array("api.push.apple.com".utf8),
      authorization: Array(authorization.utf8))
  }

  private func headers(of notification: Notification, authorization: String = "bearer jwt") -> Collector {
    var sink = Collector()
    var sent = SentNames()
    let added = RequestHeaders.add(
      notification, shared: shared(notification, authorization: authorization), sentNames: &sent, to: &sink)
    #expect(added)
    return sink
  }

  @Test func aBroadcastNamesItsChannelAndHasTheAppInItsPath() {
    var push = notification(token: "Y2hhbm5lbA==", type: .liveactivity, priority: 5, expiration: 1_790_000_000)
    push.channel = push.token
    push.token = .empty
    let fields = headers(of: push).fields.map { "\($0.name): \($0.value)" }
    #expect(
      fields == [
        ":method: POST", ":scheme: https", ":authority: api.push.apple.com",
        ":path: /4/broadcasts/apps/com.ex.app", "authorization: bearer jwt", "apns-push-type: liveactivity",
        "apns-priority: 5", "apns-channel-id: Y2hhbm5lbA==", "apns-request-id: 01234567-89ab-cdef-fedc-ba9876543210",
        "apns-expiration: 1790000000",
      ])
    #expect(SharedHeaders.slot(for: push) == nil)
  }

  @Test func fieldsComeInOrderWithTheirIndexing() {
    let push = notification(expiration: 1_790_000_000, collapseID: "order-42")
    let headers = shared(push)
    var sent = SentNames()
    var first = Collector()
    #expect(RequestHeaders.add(push, shared: headers, sentNames: &sent, to: &first))
    let wanted: [(String, String, Bool)] = [
      (":method", "POST", false), (":scheme", "https", false), (":authority", "api.push.apple.com", false),
      (":path", "/3/device/ab12", true), ("authorization", "bearer jwt", true), ("apns-topic", "com.ex.app", false),
      ("apns-push-type", "alert", false), ("apns-priority", "10", false),
      ("apns-id", "01234567-89ab-cdef-fedc-ba9876543210", false), ("apns-expiration", "1790000000", false),
      ("apns-collapse-id", "order-42", false),
    ]
    #expect(first.fields == wanted.map { Collector.Field(name: $0.0, value: $0.1, neverIndexed: $0.2) })
    #expect(first.fields.count == 11)

    var second = Collector()
    #expect(RequestHeaders.add(push, shared: headers, sentNames: &sent, to: &second))
    let never = second.fields.filter(\.neverIndexed).map(\.name)
    #expect(never == [":path", "authorization", "apns-id", "apns-expiration", "apns-collapse-id"])
    #expect(second.fields.map(\.value) == first.fields.map(\.value))
  }

  @Test func absentFieldsAreNotSent() {
    let headers = headers(of: notification(), authorization: "")
    #expect(headers["apns-expiration"] == nil)
    #expect(headers["apns-collapse-id"] == nil)
    #expect(headers["authorization"] == nil)
  }

  @Test(arguments: [(0, "0"), (1, "1"), (1_790_000_000, "1790000000"), (Int64.max, "9223372036854775807"), (-1, "0")])
  func expirationIsWrittenInSeconds(seconds: Int64, text: String) {
    #expect(headers(of: notification(expiration: seconds))["apns-expiration"] == text)
  }

  @Test func topicAndTypeFollowTheirRules() {
    let voip = headers(of: notification(type: .voip, priority: 5))
    #expect(voip["apns-topic"] == "com.ex.app.voip")
    #expect(voip["apns-push-type"] == "voip")
    #expect(voip["apns-priority"] == "5")
    let explicit = headers(of: notification(type: .voip, priority: 1, topic: "com.other"))
    #expect(explicit["apns-topic"] == "com.other")
    #expect(explicit["apns-priority"] == "1")
    let new = headers(of: notification(type: .other, typeName: "brandnew", topic: "com.ex.app.new"))
    #expect(new["apns-push-type"] == "brandnew")
    #expect(new["apns-topic"] == "com.ex.app.new")
  }

  @Test func tokensGoAsTheyCame() {
    for length in [2, 64, 108, 160, 200] {
      let token = String(repeating: "aB", count: length / 2)
      #expect(headers(of: notification(token: token))[":path"] == "/3/device/" + token)
    }
  }

  @Test func aTokenThatIsTooLongAddsNothing() {
    let push = notification(token: String(repeating: "a", count: 202))
    var sink = Collector()
    var sent = SentNames()
    let added = RequestHeaders.add(push, shared: shared(push), sentNames: &sent, to: &sink)
    #expect(!added)
    #expect(sink.fields.isEmpty)
  }

  @Test func slotsTellKindsApart() {
    var slots: Set<Int> = []
    for type in PushType.allCases where type != .other {
      for priority: UInt8 in [10, 5, 1] {
        let slot = SharedHeaders.slot(for: notification(type: type, priority: priority))
        #expect(slot.map { (0..<SharedHeaders.slotCount).contains($0) } == true)
        slots.insert(slot ?? -1)
      }
    }
    #expect(slots.count == (PushType.allCases.count - 1) * 3)
    #expect(SharedHeaders.slot(for: notification(topic: "com.other")) == nil)
    #expect(SharedHeaders.slot(for: notification(type: .other, typeName: "brandnew")) == nil)
    #expect(SharedHeaders.slot(for: notification(priority: 3)) == nil)
  }

  @Test(arguments: [
    ("ab", true), ("AB12", true), (String(repeating: "f", count: 200), true), ("", false), ("abc", false),
    ("zz", false), ("a/", false), (String(repeating: "f", count: 202), false),
  ])
  func deviceTokensAreEvenHex(text: String, isValid: Bool) {
    let bytes = Array(text.utf8)
    #expect(DeviceToken.isWellFormed(bytes.span) == isValid)
  }

  /// APNs has been seen to allow 8,000 bytes, counted as RFC 9113 does (section 6.5.2): 32 more for each field.
  @Test func headerListsStayFarBelowEightThousandBytes() throws {
    func long(_ count: Int) -> String { String(repeating: "f", count: count) }
    let push = notification(
      token: long(200), type: .other, typeName: long(PushType.longestName), expiration: .max,
      collapseID: long(64), topic: long(255))
    let jwt = try ProviderToken.text(
      keyID: "ABC123DEFG", teamID: "DEF123GHIJ", issuedAt: UnixTime(seconds: 9_999_999_999),
      signer: { _ in [UInt8](repeating: 0, count: 64) })
    let all = headers(of: push, authorization: "bearer " + String(decoding: jwt, as: UTF8.self)).fields
    #expect(all.count == 11)
    // The one value that nothing bounds but DNS is the host's.
    let size = all.reduce(255) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
    #expect(size < 2_000)

    var broadcast = notification(token: long(256), type: .liveactivity, expiration: .max)
    broadcast.channel = broadcast.token
    broadcast.token = .empty
    #expect(headers(of: broadcast).fields.reduce(255) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 } < 2_000)
  }

  @Test func endpointsAreApples() {
    #expect(APNsEndpoint(.production) == APNsEndpoint(host: "api.push.apple.com", port: 443))
    #expect(APNsEndpoint(.sandbox) == APNsEndpoint(host: "api.sandbox.push.apple.com", port: 443))
    #expect(APNsEndpoint(.production).authority == "api.push.apple.com")
    #expect(APNsEndpoint(.production, port: 2197).authority == "api.push.apple.com:2197")
    #expect(APNsEndpoint(host: "::1", port: 8443).authority == "[::1]:8443")
  }
}
