import APNs
import Wire

/// The contract's bounds, all inclusive.
package enum RequestLimits {
  /// Hex digits of a token. Apple fixes no length; the longest seen in the field have 200.
  package static let tokenDigits = 200
  /// Items of `tokens`.
  package static let tokens = 1000
  /// Bytes of a collapse id (Apple, "Sending notification requests to APNs").
  package static let collapseID = 64
  /// Bytes of the caller's id.
  package static let id = 128
  /// Bytes of a channel's id. Apple fixes no length; those seen have 24.
  package static let channel = 256
  /// Bytes of a topic.
  package static let topic = 255
  /// The latest expiration, in UNIX seconds: in the year 2286. Whatever is larger was meant in milliseconds.
  package static let expiration: Int64 = 9_999_999_999
  /// Bytes of a malformed field that a result still repeats.
  static let repeated = 256
}

/// The fields of a request that keeps the contract.
struct CheckedFields {
  var app = AppIndex(0)
  /// Empty for a batch.
  var token = ByteRange.empty
  var payload = ByteRange.empty
  var pushType = PushType.alert
  var pushTypeName = ByteRange.empty
  var priority: UInt8 = 10
  var expiration: Int64?
  var collapseID = ByteRange.empty
  var id: ByteRange?
  var topic = ByteRange.empty
  /// Empty for pushes to devices.
  var channel = ByteRange.empty
}

/// The rules of the contract, the same for both forms; each check ends at the first rule that is broken.
extension RequestFields {
  /// Checks all but the items of `tokens`, each of which stands for itself: see `checkToken`.
  func check(in bytes: Span<UInt8>, apps: borrowing AppTable) throws(Violation) -> CheckedFields {
    var checked = CheckedFields()
    checked.app = try checkApp(in: bytes, apps)
    if self[.channel].isGiven {
      checked.channel = try checkChannel(in: bytes)
      checked.pushType = .liveactivity
    } else {
      checked.token = try checkTokens(in: bytes)
    }
    checked.payload = try checkPayload(in: bytes)
    checked.topic = try checkTopic(in: bytes)
    try checkPushType(in: bytes, apps, &checked)
    try checkSuffix(in: bytes, apps, checked)
    try checkCertificate(in: bytes, apps, checked)
    checked.priority = try checkPriority(in: bytes, checked.pushType)
    checked.expiration = try checkExpiration(in: bytes)
    checked.collapseID = try checkCollapseID(in: bytes)
    checked.id = try checkID(in: bytes)
    if !checked.channel.isEmpty { try checkBroadcast(in: bytes, apps, checked) }
    let limit =
      checked.channel.isEmpty ? checked.pushType.maximumPayload : Notification.maximumBroadcastPayload
    guard checked.payload.count <= limit else {
      throw Violation(
        .payloadTooLarge,
        "payload: must be at most \(limit) bytes for this push type; found \(checked.payload.count)")
    }
    return checked
  }

  /// Whether the bytes are an even number of 2 to 200 hex digits, in any case.
  static func isToken(_ range: ByteRange, in bytes: Span<UInt8>) -> Bool {
    let count = range.count
    guard count >= 2, count <= RequestLimits.tokenDigits, count & 1 == 0 else { return false }
    return Hex.isDigits(bytes.extracting(range.indices))
  }

  /// Checks one item of `tokens`; `name` is what messages call it.
  func checkToken(_ value: FieldValue, named name: String, in bytes: Span<UInt8>) throws(Violation) {
    guard value.kind != .brokenText else { throw brokenText(.badToken, name) }
    guard value.kind == .string else {
      throw Violation(.wrongType, "\(name): must be a string; found \(shown(value, in: bytes))")
    }
    guard Self.isToken(value.range, in: bytes) else {
      throw Violation(
        .badToken,
        "\(name): must be an even number of hex digits, 2 to \(RequestLimits.tokenDigits); "
          + "found \(shownToken(value.range, in: bytes))")
    }
  }

  /// The id, if it can be used even though the request cannot: to say which request a result is about.
  func usableID(in bytes: Span<UInt8>) -> ByteRange? {
    (try? checkID(in: bytes)) ?? nil
  }

  /// A text that a result can repeat even though the request is invalid.
  func usableText(_ field: RequestField) -> ByteRange? {
    let value = self[field]
    return value.kind == .string && value.range.count <= RequestLimits.repeated ? value.range : nil
  }

  // MARK: Each field

  private func checkApp(in bytes: Span<UInt8>, _ apps: borrowing AppTable) throws(Violation) -> AppIndex {
    guard let range = try text(.app, in: bytes) else { throw missing(.app, in: bytes) }
    guard let app = apps.find(bytes.extracting(range.indices)) else {
      throw violation(.app, "must name a configured app", in: bytes)
    }
    guard !apps.isRemoved(app) else {
      throw violation(.app, "must name a configured app; this one was removed", in: bytes)
    }
    return app
  }

  private func checkTokens(in bytes: Span<UInt8>) throws(Violation) -> ByteRange {
    let one = self[.token]
    let many = self[.tokens]
    guard many.isGiven else {
      guard one.isGiven else { throw missing(.token, in: bytes) }
      try checkToken(one, named: name(of: .token), in: bytes)
      return one.range
    }
    guard !one.isGiven else {
      throw Violation(.badToken, "token: must not be there together with tokens; found both")
    }
    guard many.kind == .array else {
      throw Violation(.wrongType, "tokens: must be an array of strings; found \(shown(many, in: bytes))")
    }
    guard tokenCount > 0 else { throw Violation(.badToken, "tokens: must have at least one item; found none") }
    guard tokenCount <= RequestLimits.tokens else {
      throw Violation(.tooManyTokens, "tokens: must have at most \(RequestLimits.tokens) items; found \(tokenCount)")
    }
    return .empty
  }

  private func checkPayload(in bytes: Span<UInt8>) throws(Violation) -> ByteRange {
    let value = self[.payload]
    guard value.isGiven else { throw missing(.payload, in: bytes) }
    guard value.kind == .object else {
      throw Violation(.badPayload, "payload: must be a JSON object; found \(kindName(value))")
    }
    return value.range
  }

  private func checkTopic(in bytes: Span<UInt8>) throws(Violation) -> ByteRange {
    guard let range = try text(.topic, in: bytes) else { return .empty }
    guard !range.isEmpty, range.count <= RequestLimits.topic else {
      throw violation(.topic, "must be 1 to \(RequestLimits.topic) bytes", in: bytes)
    }
    for index in range.indices where bytes[index] <= 0x20 || bytes[index] >= 0x7f {
      throw violation(.topic, "must be printable ASCII without blanks", in: bytes)
    }
    return range
  }

  private func checkPushType(
    in bytes: Span<UInt8>, _ apps: borrowing AppTable, _ checked: inout CheckedFields
  ) throws(Violation) {
    guard let range = try text(.pushType, in: bytes) else { return }
    guard let type = PushType(bytes.extracting(range.indices)) else {
      throw violation(.pushType, "must be a lower-case name such as alert or background", in: bytes)
    }
    checked.pushType = type
    checked.priority = type.defaultPriority
    guard type == .other else { return }
    let name = bytes.extracting(range.indices)
    guard !checked.topic.isEmpty || apps.topic(for: checked.app, typeNamed: name) != nil else {
      let known = PushType.allCases.filter { $0 != .other }.map(\.name).joined(separator: ", ")
      throw violation(
        .pushType,
        "must be one of \(known), or one of the app's pushTypes, or \(self.name(of: .topic)) must be given too",
        in: bytes)
    }
    checked.pushTypeName = range
  }

  /// APNs refuses a topic that belongs to another push type. A bundle id may look like such a topic; `mdm` and types
  /// that are not known may have any.
  private func checkSuffix(
    in bytes: Span<UInt8>, _ apps: borrowing AppTable, _ checked: CheckedFields
  ) throws(Violation) {
    guard !checked.topic.isEmpty, !checked.pushType.hasFreeTopic else { return }
    let topic = bytes.extracting(checked.topic.indices)
    guard let suffix = PushType.knownSuffix(of: topic), suffix != checked.pushType.topicSuffix,
      !apps.isBundleID(topic, of: checked.app)
    else { return }
    throw violation(.topic, "must not end in \(suffix) for the push type \(checked.pushType.name)", in: bytes)
  }

  private func checkPriority(in bytes: Span<UInt8>, _ type: PushType) throws(Violation) -> UInt8 {
    guard let range = try number(.priority, in: bytes) else { return type.defaultPriority }
    let value = whole(range, in: bytes)
    guard value == 10 || value == 5 || value == 1 else {
      throw violation(.priority, "must be 10, 5 or 1", in: bytes)
    }
    let priority = UInt8(truncatingIfNeeded: value ?? 0)
    guard type.allows(priority: priority) else {
      throw violation(.priority, "must be 5 or 1 for the push type \(type.name)", in: bytes)
    }
    return priority
  }

  private func checkExpiration(in bytes: Span<UInt8>) throws(Violation) -> Int64? {
    guard let range = try number(.expiration, in: bytes) else { return nil }
    guard let value = whole(range, in: bytes), value >= 0 else {
      throw violation(.expiration, "must be whole UNIX seconds, or 0", in: bytes)
    }
    guard value <= RequestLimits.expiration else {
      throw violation(
        .expiration, "must be UNIX seconds, at most \(RequestLimits.expiration) (is it in milliseconds?)", in: bytes)
    }
    return value
  }

  /// A collapse id travels in a header field, whose value may not begin or end with a blank (RFC 9113, section 8.2.1).
  private func checkCollapseID(in bytes: Span<UInt8>) throws(Violation) -> ByteRange {
    guard let range = try text(.collapseID, in: bytes), !range.isEmpty else { return .empty }
    guard range.count <= RequestLimits.collapseID else {
      throw violation(
        .collapseID, "must be at most \(RequestLimits.collapseID) bytes of UTF-8, not \(range.count)", in: bytes)
    }
    guard !UTF8Text.hasControls(bytes.extracting(range.indices)) else {
      throw violation(.collapseID, "must not have control characters", in: bytes)
    }
    guard !ASCII.isBlank(bytes[Int(range.start)]), !ASCII.isBlank(bytes[Int(range.end) - 1]) else {
      throw violation(.collapseID, "must not begin or end with a blank", in: bytes)
    }
    return range
  }

  private func checkID(in bytes: Span<UInt8>) throws(Violation) -> ByteRange? {
    guard let range = try text(.id, in: bytes) else { return nil }
    guard !range.isEmpty, range.count <= RequestLimits.id else {
      throw violation(.id, "must be 1 to \(RequestLimits.id) bytes, not \(range.count)", in: bytes)
    }
    guard !UTF8Text.hasControls(bytes.extracting(range.indices)) else {
      throw violation(.id, "must not have control characters", in: bytes)
    }
    return range
  }

  // MARK: Types

  /// The text of a field; `nil` where it is not given.
  func text(_ field: RequestField, in bytes: Span<UInt8>) throws(Violation) -> ByteRange? {
    let value = self[field]
    switch value.kind {
    case .string: return value.range
    case .absent, .null: return nil
    case .brokenText: throw brokenText(field.rule, name(of: field))
    case .number, .boolean, .object, .array:
      throw Violation(.wrongType, "\(name(of: field)): must be a string; found \(shown(value, in: bytes))")
    }
  }

  /// The digits of a field; `nil` where it is not given.
  private func number(_ field: RequestField, in bytes: Span<UInt8>) throws(Violation) -> ByteRange? {
    let value = self[field]
    switch value.kind {
    case .number: return value.range
    case .absent, .null: return nil
    case .string, .brokenText, .boolean, .object, .array:
      throw Violation(.wrongType, "\(name(of: field)): must be a number; found \(shown(value, in: bytes))")
    }
  }
}

extension RequestFields {
  /// A header has decimal digits, as Apple's own headers do; JSON may write 10 as 10.0 or 1e1.
  private func whole(_ range: ByteRange, in bytes: Span<UInt8>) -> Int64? {
    if form == .headers {
      for index in range.indices where bytes[index] &- 0x30 > 9 { return nil }
      if range.count > 1, bytes[Int(range.start)] == 0x30 { return nil }
    }
    return WholeNumber.value(of: range, in: bytes)
  }
}

/// Whole numbers as JSON may write them: 10, 10.0 and 1e1 are the same number (RFC 8259, section 6).
enum WholeNumber {
  /// `nil` for text that is no number, for a fraction, and for what does not fit.
  static func value(of range: ByteRange, in bytes: Span<UInt8>) -> Int64? {
    JSONText.int64(of: range, in: bytes) ?? scaled(of: range, in: bytes)
  }

  private static func scaled(of range: ByteRange, in bytes: Span<UInt8>) -> Int64? {
    // Longer ones are no sensible number, and a bound keeps this cheap.
    guard range.count <= 40 else { return nil }
    var at = Int(range.start)
    let end = Int(range.end)
    let isNegative = at < end && bytes[at] == 0x2d
    if isNegative { at += 1 }
    var digits = 0
    var mantissa: Int64 = 0
    var scale = 0
    var afterPoint = false
    while at < end, bytes[at] | 0x20 != 0x65 {
      if bytes[at] == 0x2e, !afterPoint, digits > 0 {
        afterPoint = true
      } else {
        let digit = bytes[at] &- 0x30
        guard digit < 10 else { return nil }
        let (grown, overflow) = mantissa.multipliedReportingOverflow(by: 10)
        guard !overflow, grown <= Int64.max - 9 else { return nil }
        mantissa = grown + Int64(digit)
        digits += 1
        if afterPoint { scale -= 1 }
      }
      at += 1
    }
    guard digits > 0 else { return nil }
    if at < end {
      let start = bytes[min(at + 1, end - 1)] == 0x2b ? at + 2 : at + 1
      guard start < end, let exponent = JSONText.int64(of: ByteRange(start, end), in: bytes), exponent.magnitude <= 40
      else { return nil }
      scale += Int(exponent)
    }
    return shifted(isNegative ? -mantissa : mantissa, by: scale)
  }

  /// `value` times ten to the power of `scale`, if that is whole and fits.
  private static func shifted(_ value: Int64, by scale: Int) -> Int64? {
    var value = value
    var scale = scale
    while scale < 0, value != 0 {
      guard value % 10 == 0 else { return nil }
      value /= 10
      scale += 1
    }
    while scale > 0, value != 0 {
      let (product, overflow) = value.multipliedReportingOverflow(by: 10)
      guard !overflow else { return nil }
      value = product
      scale -= 1
    }
    return value
  }
}
