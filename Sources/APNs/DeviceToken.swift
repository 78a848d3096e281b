import Wire

/// What a device token must look like to be sent. Apple fixes no length (today's are 64 digits, those of Live
/// Activities far longer), so the bound is only there to keep paths short.
package enum DeviceToken {
  /// In hex digits, of either case; always an even number of them.
  package static let length = 2...200

  /// Whether `text` may stand in a path as a device token.
  package static func isWellFormed(_ text: Span<UInt8>) -> Bool {
    length.contains(text.count) && text.count.isMultiple(of: 2) && Hex.isDigits(text)
  }
}
