import APNs
import Transport
import Wire

/// The management of channels (Apple, "Sending channel management requests to APNs"), which the look-alike answers on
/// the same port as everything else.
extension Behaviour {
  /// What is said to a management call.
  struct ChannelAnswer {
    var answer: Answer
    /// The value of `apns-channel-id`.
    var channel: String?

    init(_ status: UInt16, body: [UInt8]? = nil, channel: String? = nil) {
      answer = Answer(status: status, body: body ?? [])
      self.channel = channel
    }

    init(_ reason: Reason) { answer = Answer(reason) }
  }

  /// - Parameter newID: what a channel that is made is called.
  func answer(
    toManagement fields: HeaderList, _ path: ChannelPath, body: [UInt8], on connection: inout Connection,
    at now: Moment, book: ChannelBook, newID: UUID
  ) -> ChannelAnswer {
    let method = fields.text(of: ":method") ?? ""
    guard path.allows(method) else { return ChannelAnswer(.methodNotAllowed) }
    if let text = fields.value(of: "apns-request-id"), UUID(text) == nil { return ChannelAnswer(.badMessageID) }
    if let reason = credentialRefusal(fields, &connection, now) { return ChannelAnswer(reason) }
    if let reason = appRefusal(path.bundleID, connection) { return ChannelAnswer(reason) }
    if path.isList { return ChannelAnswer(200, body: Self.list(book.channels(of: path.bundleID))) }
    if method == "POST" { return create(path.bundleID, body, book, newID) }
    guard let channel = fields.text(of: "apns-channel-id"), !channel.isEmpty else {
      return ChannelAnswer(.missingChannelID)
    }
    guard Base64.decode(channel.utf8.span) != nil else { return ChannelAnswer(.badChannelID) }
    if method == "DELETE" {
      return book.delete(channel, of: path.bundleID) ? ChannelAnswer(204) : ChannelAnswer(.channelNotRegistered)
    }
    guard let storesMessages = book.storesMessages(channel, of: path.bundleID) else {
      return ChannelAnswer(.channelNotRegistered)
    }
    let request = ChannelRequest(.create(storesMessages: storesMessages), bundleID: path.bundleID)
    return ChannelAnswer(200, body: request.body)
  }

  /// What the channels that were made here add to the rules of broadcasts. An app that has made none may name any.
  func channelRefusal(_ fields: HeaderList, _ path: String, _ book: ChannelBook) -> Reason? {
    let bundleID = BroadcastPath.bundleID(path.utf8.span)
    guard book.isUsed(by: bundleID) else { return nil }
    guard let storesMessages = book.storesMessages(fields.text(of: "apns-channel-id") ?? "", of: bundleID) else {
      return .channelNotRegistered
    }
    return storesMessages || fields.text(of: "apns-expiration") == "0" ? nil : .badExpirationDate
  }

  private func create(_ bundleID: String, _ body: [UInt8], _ book: ChannelBook, _ newID: UUID) -> ChannelAnswer {
    guard !body.isEmpty else { return ChannelAnswer(.payloadEmpty) }
    guard let settings = try? ChannelSettings(answer: body.span), let storesMessages = settings.storesMessages else {
      return ChannelAnswer(.badRequestPayload)
    }
    guard let type = settings.pushType else { return ChannelAnswer(.missingPushType) }
    guard type == "LiveActivity" else { return ChannelAnswer(.invalidPushType) }
    guard let channel = book.create(bundleID, storesMessages: storesMessages, id: newID) else {
      return ChannelAnswer(.cannotCreateChannelConfig)
    }
    return ChannelAnswer(201, channel: channel)
  }

  private static func list(_ channels: [String]) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.list("channels", channels)
    writer.endObject()
    return writer.take()
  }
}

/// The path of a management call: `/1/apps/`, the bundle id, and `/channels` or `/all-channels`.
struct ChannelPath {
  var bundleID: String
  var isList: Bool

  init?(_ path: String) {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 5, parts[0].isEmpty, parts[1] == "1", parts[2] == "apps", !parts[3].isEmpty,
      parts[4] == "channels" || parts[4] == "all-channels"
    else { return nil }
    bundleID = String(parts[3])
    isList = parts[4] == "all-channels"
  }

  /// Tells other paths apart without an allocation.
  static func mayBe(_ path: Span<UInt8>) -> Bool { path.count > 3 && path[1] == UInt8(ascii: "1") }

  func allows(_ method: String) -> Bool {
    isList ? method == "GET" : ["GET", "POST", "DELETE"].contains(method)
  }
}
