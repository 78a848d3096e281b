import APNs
import Transport
import Wire

/// Broadcasts to the subscribers of a channel (Apple, "Sending broadcast push notification requests to APNs" and
/// "Handling error responses from Apple Push Notification service").
extension Behaviour {
  func broadcastRefusal(
    _ fields: HeaderList, _ path: Span<UInt8>, bodyLength: Int, _ connection: Connection
  ) -> Reason? {
    if let reason = appRefusal(BroadcastPath.bundleID(path), connection) { return reason }
    guard let channel = fields.value(of: "apns-channel-id"), !channel.isEmpty else { return .missingChannelID }
    guard Base64.decode(channel) != nil else { return .badChannelID }
    if let channels = rules.channels, !channels.contains(fields.text(of: "apns-channel-id") ?? "") {
      return .channelNotRegistered
    }
    guard let type = fields.value(of: "apns-push-type") else { return .missingPushType }
    guard matches(type, PushType.liveactivity.name) else { return .invalidPushType }
    guard fields.value(of: "apns-expiration") != nil else { return .badExpirationDate }
    guard fields.value(of: "apns-priority") != nil else { return .badPriority }
    if let reason = valueRefusal(fields, .liveactivity) { return reason }
    if bodyLength == 0 { return .payloadEmpty }
    return bodyLength > Notification.maximumBroadcastPayload ? .payloadTooLarge : nil
  }

  /// Why an app may not broadcast, or manage its channels, on this connection.
  func appRefusal(_ bundleID: String, _ connection: Connection) -> Reason? {
    if Self.hasSuffixOfOtherType(bundleID) { return .topicDisallowed }
    let allowed = connection.certificateTopic.map { [$0] } ?? connection.teamID.flatMap { rules.topics[$0] }
    if let allowed, !allowed.contains(bundleID) { return .topicMismatch }
    if let enabled = rules.broadcastApps, !enabled.contains(bundleID) { return .featureNotEnabled }
    return nil
  }
}

/// The path of a broadcast: `/4/broadcasts/apps/` and the bundle id.
enum BroadcastPath {
  private static let prefix = Array("/4/broadcasts/apps/".utf8)

  static func isBroadcastPath(_ path: Span<UInt8>) -> Bool {
    path.count > prefix.count && equal(path.extracting(0..<prefix.count), prefix.span)
  }

  static func bundleID(_ path: Span<UInt8>) -> String {
    var bytes: [UInt8] = []
    for index in prefix.count..<path.count { bytes.append(path[index]) }
    return String(decoding: bytes, as: UTF8.self)
  }
}
