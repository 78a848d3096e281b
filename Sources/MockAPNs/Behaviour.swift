package import APNs
package import Transport
package import Wire

/// What Apple's server would say to a request: nothing but rules, no I/O.
///
/// The order of the checks is Apple's as far as it is known: a request that is refused for its credentials tells nothing
/// about its device token.
package struct Behaviour: Sendable {
  /// What must hold of tokens and topics.
  package struct Rules: Sendable {
    /// The bundle ids of each team; a team that is not listed may use any.
    package var topics: [String: Set<String>] = [:]
    /// The channels that exist; `nil`: any.
    package var channels: Set<String>?
    /// The bundle ids for which broadcasts are switched on; `nil`: all.
    package var broadcastApps: Set<String>?
    /// A provider token is good for so long, and may be so far ahead of the clock.
    package var tokenLifetime: Duration = .seconds(3600)
    /// A connection may change its provider token only so often.
    package var tokenChangeInterval: Duration = .seconds(20 * 60)

    package init() {}
  }

  /// What a connection is remembered for.
  package struct Connection: Sendable {
    /// The topic of the client's certificate, where TLS has checked one; then no provider token is needed.
    package var certificateTopic: String?
    /// The team that the first good token belonged to.
    package var teamID: String?
    /// The token that was accepted last, and since when it is in use.
    var accepted = 0
    var acceptedSince = Instant(nanoseconds: 0)
    /// The text that was judged last: mostly it comes again.
    var text: [UInt8] = []
    var verdict: ProviderTokenVerdict?
    /// The topic that was judged last, for a push type, and what was said.
    var topic: [UInt8] = []
    var topicType: PushType?
    var topicRefusal: Reason?

    package init() {}
  }

  package var rules: Rules
  private let judge: ProviderTokenJudge

  package init(judge: ProviderTokenJudge, rules: Rules = Rules()) {
    self.judge = judge
    self.rules = rules
  }

  /// Why the request is refused; `nil`: it is accepted.
  package func refusal(
    of fields: HeaderList, bodyLength: Int, on connection: inout Connection, at now: Moment
  ) -> Reason? {
    if hasDuplicates(fields) { return .duplicateHeaders }
    guard matches(fields.value(of: ":method"), "POST") else { return .methodNotAllowed }
    guard let path = fields.value(of: ":path") else { return .badPath }
    let isBroadcast = BroadcastPath.isBroadcastPath(path)
    guard isBroadcast || DevicePath.isDevicePath(path) else { return .badPath }
    if let text = fields.value(of: isBroadcast ? "apns-request-id" : "apns-id"), UUID(text) == nil {
      return .badMessageID
    }
    if let reason = credentialRefusal(fields, &connection, now) { return reason }
    if isBroadcast { return broadcastRefusal(fields, path, bodyLength: bodyLength, connection) }
    let token = path.extracting(DevicePath.prefix.utf8CodeUnitCount..<path.count)
    if token.isEmpty { return .missingDeviceToken }
    if !DeviceToken.isWellFormed(token) { return .badDeviceToken }
    var type: PushType?
    if let text = fields.value(of: "apns-push-type") {
      guard let known = PushType(text), known != .other else { return .invalidPushType }
      type = known
    }
    if let reason = topicRefusal(fields, type, &connection) { return reason }
    if let reason = valueRefusal(fields, type) { return reason }
    if bodyLength == 0 { return .payloadEmpty }
    return bodyLength > (type ?? .alert).maximumPayload ? .payloadTooLarge : nil
  }

  // MARK: Credentials

  func credentialRefusal(_ fields: HeaderList, _ connection: inout Connection, _ now: Moment) -> Reason? {
    if connection.certificateTopic != nil { return nil }
    guard let value = fields.value(of: "authorization"), let text = Self.bearer(value) else {
      return .missingProviderToken
    }
    let verdict = self.verdict(text, &connection)
    if let refusal = verdict.refusal { return refusal }
    let age = Duration.milliseconds(now.time.milliseconds) - .seconds(verdict.issuedAt)
    if age > rules.tokenLifetime || age < .zero - rules.tokenLifetime { return .expiredProviderToken }
    if let teamID = connection.teamID, teamID != verdict.teamID { return .invalidProviderToken }
    if verdict.number != connection.accepted {
      if connection.accepted != 0, now.instant - connection.acceptedSince < rules.tokenChangeInterval {
        return .tooManyProviderTokenUpdates
      }
      connection.accepted = verdict.number
      connection.acceptedSince = now.instant
      connection.teamID = verdict.teamID
    }
    return nil
  }

  private func verdict(_ text: Span<UInt8>, _ connection: inout Connection) -> ProviderTokenVerdict {
    if let verdict = connection.verdict, equal(text, connection.text.span) { return verdict }
    connection.text.removeAll(keepingCapacity: true)
    connection.text.append(span: text)
    let verdict = judge.judge(connection.text)
    connection.verdict = verdict
    return verdict
  }

  /// What follows "bearer ", in any case.
  @_lifetime(copy value)
  private static func bearer(_ value: Span<UInt8>) -> Span<UInt8>? {
    let scheme: StaticString = "bearer "
    guard value.count > scheme.utf8CodeUnitCount else { return nil }
    let same = scheme.withUTF8Buffer { wanted in
      for index in wanted.indices where unsafe value[index] | 0x20 != wanted[index] { return false }
      return true
    }
    return same ? value.extracting(scheme.utf8CodeUnitCount..<value.count) : nil
  }

  // MARK: Headers

  private func topicRefusal(_ fields: HeaderList, _ type: PushType?, _ connection: inout Connection) -> Reason? {
    guard let text = fields.value(of: "apns-topic"), !text.isEmpty else {
      return connection.certificateTopic == nil ? .missingTopic : nil
    }
    if equal(text, connection.topic.span), type == connection.topicType { return connection.topicRefusal }
    connection.topic.removeAll(keepingCapacity: true)
    connection.topic.append(span: text)
    connection.topicType = type
    connection.topicRefusal = refusal(ofTopic: String(decoding: connection.topic, as: UTF8.self), type, connection)
    return connection.topicRefusal
  }

  /// The team of a connection never changes, so this is the same for the same topic and type.
  private func refusal(ofTopic topic: String, _ type: PushType?, _ connection: Connection) -> Reason? {
    if let type, connection.certificateTopic != nil, type.needsTokenAuthentication { return .topicDisallowed }
    let suffix = type?.topicSuffix ?? ""
    guard topic.hasSuffix(suffix) else { return .topicDisallowed }
    if let type, !type.hasFreeTopic, suffix.isEmpty, Self.hasSuffixOfOtherType(topic) { return .topicDisallowed }
    let allowed = connection.certificateTopic.map { [$0] } ?? connection.teamID.flatMap { rules.topics[$0] }
    guard let allowed else { return nil }
    return allowed.contains(topic) || allowed.contains(String(topic.dropLast(suffix.count))) ? nil : .topicDisallowed
  }

  private static let suffixes = PushType.allCases.map(\.topicSuffix).filter { !$0.isEmpty }

  static func hasSuffixOfOtherType(_ topic: String) -> Bool {
    suffixes.contains { topic.hasSuffix($0) }
  }

  func valueRefusal(_ fields: HeaderList, _ type: PushType?) -> Reason? {
    if let text = fields.value(of: "apns-priority") {
      guard text.count <= 2, let number = Self.number(text), let priority = UInt8(exactly: number),
        (type ?? .alert).allows(priority: priority)
      else { return .badPriority }
    }
    if let text = fields.value(of: "apns-expiration") {
      // Later than the year 9999: those are milliseconds, not seconds.
      guard let seconds = Self.number(text), seconds < 253_402_300_800 else { return .badExpirationDate }
    }
    if let text = fields.value(of: "apns-collapse-id"), text.count > 64 { return .badCollapseID }
    return nil
  }

  private static func number(_ text: Span<UInt8>) -> Int64? {
    guard !text.isEmpty, text[0] != UInt8(ascii: "-") else { return nil }
    return JSONText.int64(of: ByteRange(0, text.count), in: text)
  }

  /// Mostly all fields are among these, each once; only otherwise their names are compared one by one.
  private static let usual: [StaticString] = [
    ":method", ":scheme", ":authority", ":path", "authorization", "apns-topic", "apns-push-type", "apns-priority",
    "apns-id", "apns-expiration", "apns-collapse-id", "content-length", "content-type", "user-agent", "accept",
    "accept-encoding", "apns-channel-id", "apns-request-id",
  ]

  private func hasDuplicates(_ fields: HeaderList) -> Bool {
    var found = 0
    for name in Self.usual where fields.value(of: name) != nil { found += 1 }
    guard found != fields.count else { return false }
    var names: Set<String> = []
    for field in fields.texts where !names.insert(field.name).inserted { return true }
    return false
  }

  func matches(_ value: Span<UInt8>?, _ text: String) -> Bool {
    guard let value else { return false }
    return equal(value, text.utf8.span)
  }
}

/// The path of a push: `/3/device/` and the token.
enum DevicePath {
  static let prefix: StaticString = "/3/device/"

  static func isDevicePath(_ path: Span<UInt8>) -> Bool {
    guard path.count >= prefix.utf8CodeUnitCount else { return false }
    return prefix.withUTF8Buffer { wanted in
      for index in wanted.indices where unsafe path[index] != wanted[index] { return false }
      return true
    }
  }
}

/// Whether both hold the same bytes.
func equal(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
  guard left.count == right.count else { return false }
  for index in left.indices where left[index] != right[index] { return false }
  return true
}
