import APNs
import Service
import Wire

/// What the options of a push say: the payload and the fields of its request. `martlet send` and `martlet produce` take
/// the same ones.
///
/// A command lists `NotificationOptions.options` among its own, reads them with `init`, and gets the requests that they
/// stand for from `requests(app:)`: each is the value of a record of the request topic (JSON form, with the payload as
/// it stands), which is judged where every request is judged, by the rules of the service. `inOptionTerms` puts the
/// words of those rules into the words of the command line.
///
/// ```
/// let push = try NotificationOptions(arguments, now: ServiceClock.now().time)
/// for request in push.requests(app: "shop") { publish(request.value, key: request.key) }
/// ```
///
/// It is a value, and knows nothing of where the push goes.
struct NotificationOptions: Sendable, Equatable {
  /// Hex digits as they were given; empty for a broadcast.
  var tokens: [String] = []
  /// The channel of a broadcast.
  var channel: String?
  /// A JSON object; exactly what stood in the file where one was given.
  var payload: [UInt8]
  /// `nil` leaves it to the rules: `alert`.
  var pushType: String?
  var priority: Int?
  /// UNIX seconds.
  var expiration: Int64?
  var collapseID: String?
  var id: String?
  var topic: String?

  /// One request, ready to be put into a record.
  struct Request: Sendable, Equatable {
    /// The token, or the channel of a broadcast; `nil` for a request with several tokens.
    var key: String?
    /// The request in its JSON form.
    var value: [UInt8]
  }

  /// The most tokens that one request may have.
  static let mostTokens = 1000

  /// In the order of the help: to whom, what, how.
  static let options: [Option] =
    [
      Option("token", value: "HEX", "A device token.", isRepeated: true),
      Option("token-base64", value: "TEXT", "The same in base 64.", isRepeated: true),
      Option("channel", value: "ID", "A Live Activity's channel, in place of tokens."),
    ] + PayloadOptions.options + [
      Option(
        "payload", value: "FILE",
        "The whole payload, in place of the options above; '-' is standard input. Its bytes go out as they stand."),
      Option(
        "push-type", value: "TYPE",
        "alert (the default), background, voip, liveactivity …; --content-available alone means background."
      ),
      Option("priority", value: "N", "10, 5 or 1 (default 10; 5 for background)."),
      Option("expiration", value: "TIME", "UNIX seconds, or from now, such as +1h; 0: try once, do not store."),
      Option("collapse-id", value: "TEXT", "Replaces what was sent with the same one."),
      Option("id", value: "TEXT", "Your id; a UUID becomes the apns-id, which is derived from anything else."),
      Option("topic", value: "TOPIC", "In place of the app's bundle id and the push type's suffix."),
    ]

  /// - Parameters:
  ///   - now: what a relative expiration counts from.
  ///   - read: reads the file that `--payload` names, or standard input for `-`.
  /// - Throws: `UsageError` for options that are wrong, `InputError` for input that is.
  init(
    _ arguments: Arguments, now: UnixTime, read: (String) throws -> [UInt8] = { try LocalFile.readInput($0) }
  ) throws {
    tokens = try Self.tokens(arguments)
    channel = arguments.value("channel")
    guard tokens.isEmpty || channel == nil else {
      throw UsageError(message: "'--channel' takes the place of '--token'; give one of them")
    }
    guard !tokens.isEmpty || channel != nil else {
      throw UsageError(
        message: "'--token HEX' is missing: to whom shall it go? ('--token-base64' and '--channel' do too)")
    }
    pushType = try Self.pushType(arguments)
    payload = try Self.payload(arguments, isLiveActivity: channel != nil || pushType == "liveactivity", read)
    if pushType == nil, !arguments.has("payload"), channel == nil, PayloadOptions.isBackground(arguments) {
      pushType = PushType.background.name
    }
    if arguments.has("priority") {
      priority = try arguments.integer("priority", in: 1...10, default: 10)
    }
    expiration = try Self.expiration(arguments, now: now)
    collapseID = arguments.value("collapse-id")
    id = arguments.value("id")
    topic = arguments.value("topic")
  }

  // MARK: Requests

  /// The requests that the options stand for: one, or several where there are more tokens than one may have.
  ///
  /// - Parameter app: the app's name in the configuration of the service that will read them.
  func requests(app: String) -> [Request] {
    guard channel == nil, tokens.count > 1 else {
      return [Request(key: channel ?? tokens.first, value: request(app, tokens[...]))]
    }
    return stride(from: 0, to: tokens.count, by: Self.mostTokens).map { start in
      Request(key: nil, value: request(app, tokens[start..<min(start + Self.mostTokens, tokens.count)]))
    }
  }

  private func request(_ app: String, _ tokens: ArraySlice<String>) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.field("id", ifAny: id)
    writer.field("app", app)
    writer.field("channel", ifAny: channel)
    if tokens.count > 1 {
      writer.list("tokens", tokens)
    } else {
      writer.field("token", ifAny: tokens.first)
    }
    writer.field("push_type", ifAny: pushType)
    if let priority {
      writer.key("priority")
      writer.integer(priority)
    }
    if let expiration {
      writer.key("expiration")
      writer.integer(expiration)
    }
    writer.field("collapse_id", ifAny: collapseID)
    writer.field("topic", ifAny: topic)
    writer.key("payload")
    writer.raw(payload.span)
    writer.endObject()
    return writer.take()
  }

  /// The words of a broken rule ("collapse_id: must be at most 64 bytes …") in those of the command line
  /// ("--collapse-id: must be …").
  static func inOptionTerms(_ message: String) -> String {
    guard let colon = message.firstIndex(of: ":") else { return message }
    let field = message[..<colon]
    let name = field.hasPrefix("tokens") ? "token" : field.replacing("_", with: "-")
    guard options.contains(where: { $0.name == name }) else { return message }
    let item = field.hasPrefix("tokens[") ? " (number \((Int(field.dropFirst(7).dropLast()) ?? 0) + 1))" : ""
    return "--\(name)\(item)\(message[colon...])"
  }
}

// MARK: Values

extension NotificationOptions {
  private static func tokens(_ arguments: Arguments) throws -> [String] {
    // People copy tokens from a device's log, where they stand as <740f4707 bebcf74f …>.
    let hex = arguments.all("token").map { $0.filter { !" <>\t".contains($0) } }
    let decoded = try arguments.all("token-base64").map { text in
      let padded = text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
      guard !text.isEmpty, let bytes = Base64.decode(padded.utf8.span) else {
        let isHex = Hex.isDigits(text.utf8.span)
        throw UsageError(
          message: "'--token-base64' must be base 64, not '\(text.prefix(12))…' of \(text.utf8.count) bytes"
            + (isHex ? "; hex digits go to '--token'" : ""))
      }
      return Hex.encode(bytes.span) as String
    }
    return hex + decoded
  }

  /// An unknown type is let through, because Apple adds some, unless it looks like a slip.
  private static func pushType(_ arguments: Arguments) throws(UsageError) -> String? {
    guard let text = arguments.value("push-type") else { return nil }
    let known = PushType.allCases.filter { $0 != .other }.map(\.name)
    guard !known.contains(text), let nearest = NearestName.find(text, in: known) else { return text }
    throw UsageError(
      message:
        "'--push-type' must be one of \(known.joined(separator: ", ")), not '\(text)'; did you mean '\(nearest)'?")
  }

  private static func payload(
    _ arguments: Arguments, isLiveActivity: Bool, _ read: (String) throws -> [UInt8]
  ) throws -> [UInt8] {
    let given = PayloadOptions.given(in: arguments)
    guard let path = arguments.value("payload") else {
      guard !given.isEmpty else {
        throw UsageError(
          message: "there is nothing to send: give '--alert', another option of the payload, or '--payload'")
      }
      return try PayloadOptions.payload(arguments, isLiveActivity: isLiveActivity)
    }
    guard given.isEmpty else {
      throw UsageError(
        message: "'--payload' is the whole payload; \(given.joined(separator: ", ")) cannot be added to it")
    }
    let name = path == "-" ? "standard input" : path
    let bytes: [UInt8]
    do { bytes = try read(path) } catch { throw InputError(message: "--payload: \(error)") }
    guard !bytes.allSatisfy({ [0x20, 0x09, 0x0a, 0x0d].contains($0) }) else {
      throw InputError(message: "--payload: \(name): is empty, where a JSON object must be")
    }
    do {
      let document = try JSONScanner.document(bytes.span)
      guard case .object(let range) = document else {
        throw InputError(message: "--payload: \(name): must be a JSON object; found \(document.kind.rawValue)")
      }
      return Array(bytes[range.indices])
    } catch let error as JSONError {
      throw InputError(error, in: bytes, of: "--payload: \(name)")
    }
  }

  /// UNIX seconds, or `+` and a duration.
  private static func expiration(_ arguments: Arguments, now: UnixTime) throws(UsageError) -> Int64? {
    guard let text = arguments.value("expiration") else { return nil }
    if text.hasPrefix("+") {
      let rest = String(text.dropFirst())
      guard let after = UInt32(rest).map({ Duration.seconds(Int64($0)) }) ?? Quantity.duration(rest) else {
        throw UsageError(
          message: "'--expiration' must be UNIX seconds, 0, or from now such as +90s, +1h or +7d, not '\(text)'")
      }
      let (sum, overflow) = now.seconds.addingReportingOverflow(after.components.seconds)
      return overflow ? .max : sum
    }
    guard let seconds = Int64(text), seconds >= 0 else {
      let isDuration = Quantity.duration(text) != nil
      throw UsageError(
        message: "'--expiration' must be UNIX seconds, 0, or from now such as +90s, +1h or +7d, not '\(text)'"
          + (isDuration ? "; did you mean '+\(text)'?" : ""))
    }
    guard seconds == 0 || seconds > now.seconds else {
      let hint = seconds < 100_000_000 ? "; did you mean '+\(text)', from now?" : ""
      throw UsageError(
        message: "'--expiration' \(text) has passed: it is UNIX seconds, and now is \(now.seconds)\(hint)")
    }
    return seconds
  }
}
