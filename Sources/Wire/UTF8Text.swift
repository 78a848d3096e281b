/// Checks of UTF-8 that work on borrowed bytes (The Unicode Standard, table 3-7, well-formed byte sequences).
package enum UTF8Text {
  /// How many bytes the well-formed sequence at `at` has (1 to 4); 0 if there is none.
  /// - Precondition: `at` is an index of `bytes`.
  package static func sequenceLength(in bytes: Span<UInt8>, at: Int) -> Int {
    let first = bytes[at]
    let left = bytes.count - at
    switch first {
    case 0..<0x80:
      return 1
    case 0xc2..<0xe0:
      guard left > 1, isContinuation(bytes[at + 1]) else { return 0 }
      return 2
    case 0xe0..<0xf0:
      guard left > 2, isSecond(bytes[at + 1], after: first), isContinuation(bytes[at + 2]) else { return 0 }
      return 3
    case 0xf0..<0xf5:
      guard left > 3, isSecond(bytes[at + 1], after: first), isContinuation(bytes[at + 2]),
        isContinuation(bytes[at + 3])
      else { return 0 }
      return 4
    default:
      return 0
    }
  }

  /// Whether the bytes from `at` to the end are the beginning of a sequence that could still become well-formed.
  package static func isCutOff(in bytes: Span<UInt8>, at: Int) -> Bool {
    let first = bytes[at]
    let left = bytes.count - at
    let wanted: Int
    switch first {
    case 0xc2..<0xe0: wanted = 2
    case 0xe0..<0xf0: wanted = 3
    case 0xf0..<0xf5: wanted = 4
    default: return false
    }
    guard left < wanted else { return false }
    if left > 1, !isSecond(bytes[at + 1], after: first) { return false }
    return left < 3 || isContinuation(bytes[at + 2])
  }

  /// How many bytes from `at` on one U+FFFD stands for: the beginning of a sequence as far as it is well-formed, one
  /// at the least (Unicode, section 3.9, "substitution of maximal subparts").
  /// - Precondition: no well-formed sequence begins at `at`.
  static func brokenLength(in bytes: Span<UInt8>, at: Int) -> Int {
    let first = bytes[at]
    guard (0xe0..<0xf5).contains(first), at + 1 < bytes.count, isSecond(bytes[at + 1], after: first) else { return 1 }
    guard first >= 0xf0, at + 2 < bytes.count, isContinuation(bytes[at + 2]) else { return 2 }
    return 3
  }

  /// Whether all of it is well-formed UTF-8 (RFC 3629).
  package static func isValid(_ bytes: Span<UInt8>) -> Bool {
    var at = 0
    while at < bytes.count {
      if bytes.count &- at >= 8, Words.beyondASCII(bytes.word(at: at)) == 0 {
        at &+= 8
        continue
      }
      let length = bytes[at] < 0x80 ? 1 : sequenceLength(in: bytes, at: at)
      guard length > 0 else { return false }
      at += length
    }
    return true
  }

  /// Whether there is a control character of ASCII, DEL among them.
  package static func hasControls(_ bytes: Span<UInt8>) -> Bool {
    var at = 0
    while bytes.count &- at >= 8 {
      if Words.controls(bytes.word(at: at)) != 0 { return true }
      at &+= 8
    }
    while at < bytes.count {
      if bytes[at] < 0x20 || bytes[at] == 0x7f { return true }
      at &+= 1
    }
    return false
  }

  /// Whether the byte stands for itself in a JSON string: ASCII, and no control character, quote or backslash.
  @inline(__always)
  static func isPlain(_ byte: UInt8) -> Bool {
    // The first comparison covers the control characters and all that is not ASCII.
    byte &- 0x20 < 0x60 && byte != 0x22 && byte != 0x5c
  }

  private static func isContinuation(_ byte: UInt8) -> Bool { byte & 0xc0 == 0x80 }

  /// The second byte is where overlong forms, surrogates and what lies past U+10FFFF are told from the rest.
  private static func isSecond(_ byte: UInt8, after first: UInt8) -> Bool {
    switch first {
    case 0xe0: 0xa0 <= byte && byte <= 0xbf
    case 0xed: 0x80 <= byte && byte <= 0x9f
    case 0xf0: 0x90 <= byte && byte <= 0xbf
    case 0xf4: 0x80 <= byte && byte <= 0x8f
    default: isContinuation(byte)
    }
  }
}
