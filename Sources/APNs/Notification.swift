package import Wire

/// One push, to a device or to the subscribers of a Live Activity's channel: all that APNs must be told, as stretches of one buffer (the record that asked for it).
///
/// A copy costs one reference count, whatever the payload's size.
package struct Notification: Sendable {
  /// The buffer that every range below points into.
  package var storage: [UInt8]
  /// The device token in hex, exactly as it was received; empty for a broadcast.
  package var token: ByteRange
  /// The channel that a broadcast goes to (base64 text of Apple's); empty for a push to a device.
  package var channel: ByteRange
  /// A JSON object; these bytes go to APNs unchanged.
  package var payload: ByteRange
  package var pushType: PushType
  /// The text of a push type that the table does not know; empty for the known ones.
  package var pushTypeName: ByteRange
  /// 10, 5 or 1.
  package var priority: UInt8
  /// UNIX seconds; 0 asks for one attempt without storing; `nil` leaves it to Apple.
  package var expiration: Int64?
  /// Empty: none. At most 64 bytes.
  package var collapseID: ByteRange
  /// A topic given by the request, or by the configuration for a push type that only it knows; empty: the app's bundle id with the suffix of the push type.
  package var topic: ByteRange
  /// The same for every attempt, also after a crash. A broadcast sends it as `apns-request-id`.
  package var apnsID: UUID

  package init(
    storage: [UInt8], token: ByteRange, payload: ByteRange, pushType: PushType = .alert,
    pushTypeName: ByteRange = .empty, priority: UInt8 = 10, expiration: Int64? = nil, collapseID: ByteRange = .empty,
    topic: ByteRange = .empty, channel: ByteRange = .empty, apnsID: UUID
  ) {
    self.storage = storage
    self.token = token
    self.payload = payload
    self.pushType = pushType
    self.pushTypeName = pushTypeName
    self.priority = priority
    self.expiration = expiration
    self.collapseID = collapseID
    self.topic = topic
    self.channel = channel
    self.apnsID = apnsID
  }

  /// Whether it goes to a channel (Apple, "Sending broadcast push notification requests to APNs").
  package var isBroadcast: Bool { !channel.isEmpty }

  /// The most bytes that the payload of a broadcast may have.
  package static let maximumBroadcastPayload = 5120
}
