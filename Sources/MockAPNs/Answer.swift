package import APNs
package import Wire

/// What the server says to one request.
package struct Answer: Hashable, Sendable {
  package var status: UInt16
  /// Apple's text, or any other; empty: an answer without a body, as with 200.
  package var reason: String
  /// With 410: since when the token is dead. `nil`: the time of the answer.
  package var timestamp: UnixTime?
  /// Sent as `retry-after`, in seconds.
  package var retryAfter: Int?
  /// Sent in place of the JSON that is made from the reason.
  package var body: [UInt8]?

  package init(
    status: UInt16, reason: String = "", timestamp: UnixTime? = nil, retryAfter: Int? = nil, body: [UInt8]? = nil
  ) {
    self.status = status
    self.reason = reason
    self.timestamp = timestamp
    self.retryAfter = retryAfter
    self.body = body
  }

  /// One of Apple's reasons, with the status that belongs to it.
  package init(_ reason: Reason, timestamp: UnixTime? = nil, retryAfter: Int? = nil) {
    self.init(status: reason.status ?? 500, reason: reason.text, timestamp: timestamp, retryAfter: retryAfter)
  }

  package static let accepted = Answer(status: 200)

  package var isAccepted: Bool { status == 200 }

  /// The body: JSON with the reason, and with 410 the timestamp in milliseconds (Apple, "Handling notification responses
  /// from APNs").
  package func content(at now: UnixTime) -> [UInt8] {
    if let body { return body }
    guard !reason.isEmpty else { return [] }
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("reason")
    writer.string(reason)
    if status == 410 || timestamp != nil {
      writer.key("timestamp")
      writer.integer((timestamp ?? now).milliseconds)
    }
    writer.endObject()
    return writer.take()
  }
}
