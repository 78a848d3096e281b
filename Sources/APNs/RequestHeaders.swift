import Wire

/// Takes the header fields of one request, in the order in which they must be sent.
package protocol HeaderSink: ~Copyable {
  /// - Parameters:
  ///   - name: lower case, as HTTP/2 wants it.
  ///   - value: valid during the call only.
  ///   - neverIndexed: advice for HPACK (RFC 7541, section 6.2.3): keep the value out of the dynamic table.
  mutating func add(name: StaticString, value: Span<UInt8>, neverIndexed: Bool)

  /// - Parameters:
  ///   - name: in lower case.
  ///   - neverIndexed: whether HPACK must keep it out of every table (RFC 7541, section 7.1.3).
  ///   - value: appends the value to the buffer that it is given, and touches nothing of what is there.
  mutating func add(name: StaticString, neverIndexed: Bool, value: (inout [UInt8]) -> Void)
}

/// The header fields that many requests of one app have in common. Prepared once for each `slot` and provider token,
/// and kept by the caller.
package struct SharedHeaders: Sendable {
  package var authority: [UInt8]
  /// "bearer " and the provider token; empty on a connection that a certificate authenticates.
  package var authorization: [UInt8]
  /// Empty for a broadcast, whose path has the bundle id instead.
  package var topic: [UInt8]
  /// The `:path` of a broadcast; empty for a push to a device, whose path is its own.
  package var broadcastPath: [UInt8] = []
  package var pushType: [UInt8]
  /// 10, 5 or 1.
  package var priority: UInt8

  /// What `notification` has in common with others of its kind, for an app with this bundle id.
  package init(of notification: borrowing Notification, bundleID: String, authority: [UInt8], authorization: [UInt8]) {
    let type = notification.pushType
    self.authority = authority
    self.authorization = authorization
    if notification.isBroadcast {
      topic = []
      broadcastPath = Array("/4/broadcasts/apps/\(bundleID)".utf8)
    } else if notification.topic.isEmpty {
      topic = Array(type.topic(bundleID: bundleID).utf8)
    } else {
      topic = Array(notification.storage[notification.topic.indices])
    }
    pushType =
      type == .other ? Array(notification.storage[notification.pushTypeName.indices]) : Array(type.name.utf8)
    priority = notification.priority
  }

  /// How many slots there are: one for each known push type and priority.
  package static let slotCount = PushType.allCases.count * 3

  /// The place, in a cache of `slotCount` places, of the headers that this notification shares with others; `nil` for
  /// the rare one that has a topic or a push type of its own, or goes to a channel, for which they must be made anew.
  @inlinable
  package static func slot(for notification: borrowing Notification) -> Int? {
    guard notification.topic.isEmpty, notification.pushType != .other, !notification.isBroadcast else { return nil }
    let type = Int(notification.pushType.rawValue) * 3
    switch notification.priority {
    case 10: return type
    case 5: return type + 1
    case 1: return type + 2
    default: return nil
    }
  }
}

/// Which fields were already sent on a connection, so that their names are in its HPACK table; one for each connection.
package struct SentNames: Sendable {
  @usableFromInline package var bits: UInt8 = 0

  package init() {}

  @usableFromInline package static let apnsID: UInt8 = 1
  @usableFromInline package static let expiration: UInt8 = 2
  @usableFromInline package static let collapseID: UInt8 = 4
  @usableFromInline package static let channelID: UInt8 = 8
  @usableFromInline package static let requestID: UInt8 = 16

  /// Whether it was sent before; from now on, it was.
  @inlinable
  package mutating func insert(_ bit: UInt8) -> Bool {
    let wasSent = bits & bit != 0
    bits |= bit
    return wasSent
  }
}

/// The header fields of one push (Apple, "Sending notification requests to APNs").
///
/// HTTP/2 wants pseudo-headers first, so what is shared and what is the request's own alternate:
///
/// | | fields | indexed |
/// |---|---|---|
/// | shared | `:method` `:scheme` `:authority` | yes |
/// | own | `:path` | never |
/// | shared | `authorization` | never |
/// | shared | `apns-topic` `apns-push-type` `apns-priority` | yes |
/// | own | `apns-id` `apns-expiration` `apns-collapse-id` | the first of each on a connection, for the name's sake |
///
/// The indexing is Apple's wish: the dynamic table of APNs is small, and values that never come again must not push out
/// those that do. Nothing here allocates.
package enum RequestHeaders {
  /// All fields of one request, in order.
  /// - Returns: `false`, and adds nothing, if the token is longer than `DeviceToken.length` allows.
  @inlinable
  package static func add<Sink: HeaderSink & ~Copyable>(
    _ notification: borrowing Notification, shared: borrowing SharedHeaders, sentNames: inout SentNames,
    to sink: inout Sink
  ) -> Bool {
    guard notification.token.count <= longestToken else { return false }
    addPseudoHeaders(shared, to: &sink)
    addPath(notification, to: &sink)
    addShared(shared, to: &sink)
    addOwn(notification, sentNames: &sentNames, to: &sink)
    return true
  }

  /// `:method`, `:scheme`, `:authority`; for a broadcast `:path` too.
  @inlinable
  package static func addPseudoHeaders<Sink: HeaderSink & ~Copyable>(
    _ shared: borrowing SharedHeaders, to sink: inout Sink
  ) {
    let method = "POST"
    let scheme = "https"
    sink.add(name: ":method", value: method.utf8.span, neverIndexed: false)
    sink.add(name: ":scheme", value: scheme.utf8.span, neverIndexed: false)
    sink.add(name: ":authority", value: shared.authority.span, neverIndexed: false)
    if !shared.broadcastPath.isEmpty {
      sink.add(name: ":path", value: shared.broadcastPath.span, neverIndexed: false)
    }
  }

  /// `:path`, with the token exactly as it was received; nothing for a broadcast, whose path is shared.
  /// - Precondition: the token is no longer than `DeviceToken.length` allows.
  @inlinable
  package static func addPath<Sink: HeaderSink & ~Copyable>(
    _ notification: borrowing Notification, to sink: inout Sink
  ) {
    if notification.isBroadcast { return }
    sink.add(name: ":path", neverIndexed: true) { value in
      value.append(static: "/3/device/")
      value.append(span: notification.storage.span.extracting(notification.token.indices))
    }
  }

  /// `authorization`, `apns-topic`, `apns-push-type`, `apns-priority`.
  @inlinable
  package static func addShared<Sink: HeaderSink & ~Copyable>(
    _ shared: borrowing SharedHeaders, to sink: inout Sink
  ) {
    if !shared.authorization.isEmpty {
      sink.add(name: "authorization", value: shared.authorization.span, neverIndexed: true)
    }
    if !shared.topic.isEmpty { sink.add(name: "apns-topic", value: shared.topic.span, neverIndexed: false) }
    sink.add(name: "apns-push-type", value: shared.pushType.span, neverIndexed: false)
    let priority =
      switch shared.priority {
      case 1: "1"
      case 5: "5"
      default: "10"
      }
    sink.add(name: "apns-priority", value: priority.utf8.span, neverIndexed: false)
  }

  /// `apns-id` in lower case, `apns-expiration`, `apns-collapse-id`; the last two only if the notification has them. For
  /// a broadcast, `apns-channel-id`, and `apns-request-id` in place of `apns-id`.
  @inlinable
  package static func addOwn<Sink: HeaderSink & ~Copyable>(
    _ notification: borrowing Notification, sentNames: inout SentNames, to sink: inout Sink
  ) {
    let identifier = notification.apnsID
    if notification.isBroadcast {
      sink.add(
        name: "apns-channel-id", value: notification.storage.span.extracting(notification.channel.indices),
        neverIndexed: sentNames.insert(SentNames.channelID))
      sink.add(name: "apns-request-id", neverIndexed: sentNames.insert(SentNames.requestID)) {
        $0.append(uuid: identifier)
      }
    } else {
      sink.add(name: "apns-id", neverIndexed: sentNames.insert(SentNames.apnsID)) { $0.append(uuid: identifier) }
    }
    if let expiration = notification.expiration {
      sink.add(name: "apns-expiration", neverIndexed: sentNames.insert(SentNames.expiration)) {
        $0.append(decimal: max(0, expiration))
      }
    }
    if !notification.collapseID.isEmpty {
      sink.add(
        name: "apns-collapse-id", value: notification.storage.span.extracting(notification.collapseID.indices),
        neverIndexed: sentNames.insert(SentNames.collapseID))
    }
  }

  // MARK: Parts

  @usableFromInline package static let longestToken = DeviceToken.length.upperBound
}
