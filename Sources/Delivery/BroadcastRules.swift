import APNs
import Wire

/// The rules of broadcasts to the subscribers of a Live Activity's channel (Apple, "Sending broadcast push notification
/// requests to APNs").
extension RequestFields {
  /// `channel` takes the place of `token`.
  func checkChannel(in bytes: Span<UInt8>) throws(Violation) -> ByteRange {
    let name = name(of: .channel)
    for other in [RequestField.token, .tokens] where self[other].isGiven {
      throw Violation(.badChannel, "\(name): must not be there together with \(other.key); found both")
    }
    guard let range = try text(.channel, in: bytes) else { throw missing(.channel, in: bytes) }
    guard !range.isEmpty, range.count <= RequestLimits.channel else {
      throw violation(.channel, "must be 1 to \(RequestLimits.channel) bytes", in: bytes)
    }
    for index in range.indices where !Self.isBase64(bytes[index]) {
      throw violation(.channel, "must be base64, as APNs gave it", in: bytes)
    }
    return range
  }

  /// What a broadcast must have, and what it cannot have.
  func checkBroadcast(
    in bytes: Span<UInt8>, _ apps: borrowing AppTable, _ checked: CheckedFields
  ) throws(Violation) {
    let channel = name(of: .channel)
    guard checked.pushType == .liveactivity else {
      throw violation(.pushType, "must be liveactivity together with \(channel)", in: bytes)
    }
    guard checked.topic.isEmpty else {
      throw violation(.topic, "must not be there together with \(channel)", in: bytes)
    }
    guard checked.collapseID.isEmpty else {
      throw violation(.collapseID, "must not be there together with \(channel)", in: bytes)
    }
    guard checked.expiration != nil || apps[checked.app].defaultExpiration != nil else {
      throw Violation(.missingField, "\(name(of: .expiration)): is required together with \(channel)")
    }
  }

  /// Letters, digits and `+/=`, or `-_` in the URL's alphabet.
  private static func isBase64(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2b, 0x2f, 0x3d, 0x2d, 0x5f: true
    default: false
    }
  }
}
