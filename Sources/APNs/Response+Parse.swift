package import Wire

extension Response {
  /// What the answer means.
  package var verdict: Verdict { Verdict(status: status, reason: reason) }

  /// Whether the answer says that the device token is no longer good, so that its owner must hear of it. Nothing else may
  /// cause an invalid-token event.
  package var namesDeadToken: Bool { verdict == .invalidToken }

  /// The longest text of the other side that is kept, in bytes: an unknown reason, an `apns-unique-id`.
  package static let longestText = 64

  /// The longest text of an error's body that is kept, in bytes.
  package static let longestBodyText = 200

  /// The longest `retry-after` that is honoured; Apple itself does not send the header, but proxies do.
  package static let longestRetryAfter: Duration = .seconds(3600)

  /// Reads an answer. Nothing in it is trusted: what does not look as it should is as good as absent, and texts are
  /// bounded. A 200 without `apns-unique-id` does not allocate.
  ///
  /// - Parameters:
  ///   - status: of the answer's `:status`.
  ///   - body: all DATA of the stream, joined; may be empty or no JSON.
  ///   - apnsID: the `apns-id` header, in any case.
  ///   - uniqueID: the `apns-unique-id` header.
  ///   - retryAfter: the `retry-after` header, in seconds or as a date.
  package static func parse(
    status: UInt16, body: Span<UInt8>, apnsID: Span<UInt8>? = nil, uniqueID: Span<UInt8>? = nil,
    retryAfter: Span<UInt8>? = nil
  ) -> Response {
    var response = Response(status: status)
    if let apnsID { response.apnsID = UUID(apnsID.trimmed()) }
    if let uniqueID { response.uniqueID = boundedText(uniqueID) }
    if let retryAfter {
      response.retryAfter = seconds(retryAfter.trimmed())
      response.retryAt = HTTPDate.time(retryAfter.trimmed())
    }
    if status != 200, !body.isEmpty {
      response.readBody(body)
      if response.reason == nil { response.bodyText = boundedText(body, longest: longestBodyText) }
    }
    return response
  }

  /// Reads `reason` and `timestamp`. The last one of duplicate keys counts; a text that breaks off counts as far as it
  /// was read, since what stood before the break is still the best that is known.
  private mutating func readBody(_ body: Span<UInt8>) {
    var scanner = JSONScanner(body, maxDepth: 8)
    do {
      try scanner.beginObject()
      while let key = try scanner.nextKey() {
        let isReason = scanner.matches(key, "reason")
        let isTimestamp = scanner.matches(key, "timestamp")
        let value = try scanner.value()
        switch value {
        case .string(let text) where isReason: readReason(text, in: body)
        case .number(let range, _) where isTimestamp: timestamp = Response.timestamp(range, in: body)
        case .string(let text) where isTimestamp: timestamp = Response.timestamp(text.range, in: body)
        default: break
        }
      }
    } catch {
      // Not JSON, or no longer: the status has to do.
    }
  }

  private mutating func readReason(_ text: JSONString, in body: Span<UInt8>) {
    unknownReason = nil
    guard text.hasEscapes else {
      setReason(body.extracting(text.range.indices))
      return
    }
    var plain: [UInt8] = []
    guard (try? JSONText.unescape(text, in: body, into: &plain)) != nil else { return }
    setReason(plain.span)
  }

  private mutating func setReason(_ text: Span<UInt8>) {
    let text = text.trimmed()
    guard !text.isEmpty else {
      reason = nil
      return
    }
    let known = Reason(text)
    reason = known
    if known == .unknown { unknownReason = Response.boundedText(text) }
  }

  /// Apple's timestamps are milliseconds. A value under 10^11 would then be before 1974, so that it can only be meant
  /// in seconds (which some look-alikes send). A value beyond the year 9999 is none.
  private static func timestamp(_ range: ByteRange, in body: Span<UInt8>) -> UnixTime? {
    guard let value = JSONText.int64(of: range, in: body), value > 0, value < 253_402_300_800_000 else { return nil }
    return value < 100_000_000_000 ? UnixTime(seconds: value) : UnixTime(milliseconds: value)
  }

  /// Printable ASCII only, other bytes shown as "?" and line ends as blanks, cut at `longest`; `nil` where nothing is
  /// left.
  private static func boundedText(_ bytes: Span<UInt8>, longest: Int = longestText) -> String? {
    let bytes = bytes.trimmed()
    guard !bytes.isEmpty else { return nil }
    var text = ""
    for index in 0..<min(bytes.count, longest) {
      let byte = bytes[index]
      switch byte {
      case 0x20...0x7e: text.unicodeScalars.append(Unicode.Scalar(byte))
      case 0x09, 0x0a, 0x0d: text.append(" ")
      default: text.append("?")
      }
    }
    return text
  }

  /// How long the server wants to be left alone, within bounds; `nil` where it does not say.
  package func askedWait(at now: UnixTime) -> Duration? {
    if let retryAfter { return retryAfter }
    guard let retryAt else { return nil }
    return min(max(retryAt - now, .zero), Response.longestRetryAfter)
  }

  /// A delay in whole seconds, cut at `longestRetryAfter`.
  private static func seconds(_ text: Span<UInt8>) -> Duration? {
    guard (1...18).contains(text.count) else { return nil }
    guard let value = JSONText.int64(of: ByteRange(0, text.count), in: text), value >= 0 else { return nil }
    return min(.seconds(value), longestRetryAfter)
  }
}

extension Reason {
  /// The reason in the debug data of a GOAWAY, which APNs writes like the body of an answer; `nil` where there is none,
  /// `unknown` where the table does not know it.
  package init?(goAwayData: Span<UInt8>) {
    guard let reason = Response.parse(status: 503, body: goAwayData).reason else { return nil }
    self = reason
  }
}
