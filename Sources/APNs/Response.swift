package import Wire

/// What APNs answered to one request (Apple, "Handling notification responses from APNs").
package struct Response: Sendable {
  package var status: UInt16
  /// `nil` for 200 and where the body named none.
  package var reason: Reason?
  /// The reason's text where the table does not know it (`reason` is then `.unknown`), trimmed and bounded.
  package var unknownReason: String?
  /// What an error's body says where it is not what APNs writes (a proxy's page, say): its text, bounded.
  package var bodyText: String?
  /// Since when the token is invalid, with 410.
  package var timestamp: UnixTime?
  /// The `apns-id` header, `nil` where it is missing or no UUID.
  package var apnsID: UUID?
  /// The `apns-unique-id` header of the development environment.
  package var uniqueID: String?
  /// The `retry-after` header, bounded.
  package var retryAfter: Duration?
  /// The same where it names a date.
  package var retryAt: UnixTime?

  package init(
    status: UInt16, reason: Reason? = nil, unknownReason: String? = nil, bodyText: String? = nil,
    timestamp: UnixTime? = nil, apnsID: UUID? = nil, uniqueID: String? = nil, retryAfter: Duration? = nil,
    retryAt: UnixTime? = nil
  ) {
    self.status = status
    self.reason = reason
    self.unknownReason = unknownReason
    self.bodyText = bodyText
    self.timestamp = timestamp
    self.apnsID = apnsID
    self.uniqueID = uniqueID
    self.retryAfter = retryAfter
    self.retryAt = retryAt
  }
}

/// What an answer means for the notification, the connection and the app.
package enum Verdict: UInt8, CaseIterable, Sendable {
  /// APNs took it.
  case delivered
  /// The request itself is at fault; sending it again would change nothing.
  case rejected
  /// The device token is no longer good: rejected, and its owner must hear of it.
  case invalidToken
  /// The app's credentials or configuration are at fault: rejected, and the app's health suffers.
  case credentialFault
  /// The provider token is too old: one fresh token for all, on a new connection.
  case refreshToken
  /// This connection will not do any more: again at once on another one.
  case replaceConnection
  /// Too many pushes to this one device: again later, that device only.
  case throttled
  /// Trouble at Apple's side: again later.
  case retry
}
