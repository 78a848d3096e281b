package import Wire

/// One call to Apple's management of broadcast channels (Apple, "Sending channel management requests to APNs").
package struct ChannelRequest: Sendable, Equatable {
  /// What is asked for.
  package enum Call: Sendable, Equatable {
    /// A new channel. `storesMessages`: APNs keeps the most recent message for devices that are out of reach; it cannot
    /// be changed later.
    case create(storesMessages: Bool)
    /// The settings of one channel, by its id (base64 text of Apple's).
    case show(String)
    /// The ids of all channels of the app.
    case list
    /// For good; a message that is stored may still arrive.
    case delete(String)
  }

  package var call: Call
  package var bundleID: String

  package init(_ call: Call, bundleID: String) {
    self.call = call
    self.bundleID = bundleID
  }

  /// The value of `:method`.
  package var method: String {
    switch call {
    case .create: "POST"
    case .show, .list: "GET"
    case .delete: "DELETE"
    }
  }

  /// The value of `:path`; the bundle id has no suffix of a push type.
  package var path: String {
    "/1/apps/\(bundleID)/\(call == .list ? "all-channels" : "channels")"
  }

  /// The value of `apns-channel-id`, where the call has one.
  package var channel: String? {
    switch call {
    case .create, .list: nil
    case .show(let channel), .delete(let channel): channel
    }
  }

  /// Apple wants none for reading and deleting.
  package var body: [UInt8] {
    guard case .create(let storesMessages) = call else { return [] }
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("message-storage-policy")
    writer.integer(storesMessages ? 1 : 0)
    writer.key("push-type")
    writer.string("LiveActivity")
    writer.endObject()
    return writer.take()
  }

  /// The status that means success.
  package var successStatus: UInt16 {
    switch call {
    case .create: 201
    case .show, .list: 200
    case .delete: 204
    }
  }
}

/// What APNs says of a channel.
package struct ChannelSettings: Sendable, Equatable {
  /// Whether the most recent message is kept; `nil` where the answer does not say.
  package var storesMessages: Bool?
  /// Apple's only one is `LiveActivity`.
  package var pushType: String?

  package init(storesMessages: Bool? = nil, pushType: String? = nil) {
    self.storesMessages = storesMessages
    self.pushType = pushType
  }

  /// Reads the answer to `show`.
  package init(answer body: Span<UInt8>) throws(JSONError) {
    var scanner = JSONScanner(body)
    try scanner.beginObject()
    while let key = try scanner.nextKey() {
      let isPolicy = scanner.matches(key, "message-storage-policy")
      let isType = scanner.matches(key, "push-type")
      switch try scanner.value() {
      case .number(let range, _) where isPolicy: storesMessages = JSONText.int64(of: range, in: body).map { $0 != 0 }
      case .string(let text) where isType:
        pushType = try JSONText.text(of: text, in: body)
      default: break
      }
    }
    try scanner.endDocument()
  }

  /// Reads the answer to `list`: the ids of the channels, in the order in which they stand.
  package static func list(answer body: Span<UInt8>) throws(JSONError) -> [String] {
    var channels: [String] = []
    var scanner = JSONScanner(body)
    try scanner.beginObject()
    while let key = try scanner.nextKey() {
      guard scanner.matches(key, "channels") else {
        try scanner.value()
        continue
      }
      try scanner.beginArray()
      while try scanner.hasNextElement() {
        guard case .string(let text) = try scanner.value() else { continue }
        channels.append(try JSONText.text(of: text, in: body))
      }
    }
    try scanner.endDocument()
    return channels
  }
}
