import Wire

/// The names of the record headers that the service adds of its own; all begin with `martlet-`.
package enum OwnHeader {
  /// The `InvalidRule` that a dead letter broke.
  package static let errorRule = "martlet-error-rule"
  /// The message for people.
  package static let error = "martlet-error"
  package static let sourceTopic = "martlet-source-topic"
  package static let sourcePartition = "martlet-source-partition"
  package static let sourceOffset = "martlet-source-offset"
  /// When it was given up, in milliseconds since 1970.
  package static let failedAt = "martlet-failed-at"
  /// When a parked request may be taken up again, in milliseconds since 1970.
  package static let notBefore = "martlet-not-before"
  /// How often a parked request was sent so far.
  package static let attempts = "martlet-attempts"
  /// Which item of a batch was parked.
  package static let item = "martlet-item"
  /// When the request was first taken up, in milliseconds since 1970.
  package static let takenUpAt = "martlet-taken-up-at"
  /// The first record's timestamp, in milliseconds since 1970.
  package static let requestedAt = "martlet-requested-at"

  /// The headers of a request as they are copied to what it causes: all but those that the service itself once added
  /// (a dead letter that was published anew, say), which speak of another record; and, on a result or an event, those
  /// that say what the request's value is.
  static func without(
    _ headers: [RecordBody.Header], in storage: borrowing [UInt8], topic: OutputTopic
  ) -> [RecordBody.Header] {
    let hasOtherValue = topic == .results || topic == .invalidTokens
    for index in headers.indices where speaksOfOther(headers[index].name, in: storage, hasOtherValue) {
      return headers.filter { !speaksOfOther($0.name, in: storage, hasOtherValue) }
    }
    return headers
  }

  private static func speaksOfOther(_ name: ByteRange, in storage: borrowing [UInt8], _ hasOtherValue: Bool) -> Bool {
    if hasOtherValue, ContentHeaders.isContent(name, in: storage.span) { return true }
    guard name.count >= 8 else { return false }
    var at = Int(name.start)
    for byte in "martlet-".utf8 {
      guard storage[at] == byte else { return false }
      at += 1
    }
    return true
  }
}
