/// Reads what the scanner has found: the text of strings, the value of integers.
///
/// The ranges must come from a scanner that read the same bytes (with the matching `base`).
package enum JSONText {
  /// Whether `string` spells `text`, escapes taken into account: a key may be written in more ways than one. Does not
  /// allocate. A string with a lone surrogate spells nothing.
  @inlinable
  package static func matches(_ string: JSONString, _ text: String, in bytes: Span<UInt8>) -> Bool {
    // Most comparisons end here, and need no call.
    guard string.hasEscapes || string.range.count == text.utf8.count else { return false }
    return matchesFully(string, text, in: bytes)
  }

  @usableFromInline
  static func matchesFully(_ string: JSONString, _ text: String, in bytes: Span<UInt8>) -> Bool {
    string.hasEscapes ? matchesEscaped(string, text, in: bytes) : matchesPlain(string.range, text, in: bytes)
  }

  private static func matchesPlain(_ range: ByteRange, _ text: String, in bytes: Span<UInt8>) -> Bool {
    bytes.extracting(range.indices).spells(text)
  }

  private static func matchesEscaped(_ string: JSONString, _ text: String, in bytes: Span<UInt8>) -> Bool {
    var wanted = text.utf8.makeIterator()
    let end = Int(string.range.end)
    var at = Int(string.range.start)
    while at < end {
      if bytes[at] != 0x5c {
        guard wanted.next() == bytes[at] else { return false }
        at += 1
        continue
      }
      guard let (scalar, next) = try? escape(in: bytes, at: at, end: end) else { return false }
      for byte in scalar.utf8 where wanted.next() != byte { return false }
      at = next
    }
    return wanted.next() == nil
  }

  /// Appends the text of `string` as UTF-8.
  /// - Throws: `loneSurrogate` if it is no text; then `output` is as it was.
  package static func unescape(
    _ string: JSONString, in bytes: Span<UInt8>, into output: inout [UInt8]
  ) throws(JSONError) {
    let before = output.count
    let end = Int(string.range.end)
    var at = Int(string.range.start)
    guard string.hasEscapes else {
      output.append(span: bytes.extracting(string.range.indices))
      return
    }
    while at < end {
      if bytes[at] != 0x5c {
        output.append(bytes[at])
        at += 1
        continue
      }
      do {
        let (scalar, next) = try escape(in: bytes, at: at, end: end)
        output.append(scalar: scalar)
        at = next
      } catch {
        output.removeSubrange(before...)
        throw error
      }
    }
  }

  /// The text of `string`, for where speed does not matter.
  /// - Throws: `loneSurrogate` if it is no text.
  package static func text(of string: JSONString, in bytes: Span<UInt8>) throws(JSONError) -> String {
    var text: [UInt8] = []
    try unescape(string, in: bytes, into: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Where the text of `string` stands as UTF-8 in `storage`: where it is, if it has no escapes, or else at the end,
  /// where it is appended. What stood in `storage` before stays where it is.
  /// - Throws: `loneSurrogate` if it is no text; then `storage` is as it was.
  package static func unescape(_ string: JSONString, within storage: inout [UInt8]) throws(JSONError) -> ByteRange {
    guard string.hasEscapes else { return string.range }
    let before = storage.count
    let end = Int(string.range.end)
    var at = Int(string.range.start)
    while at < end {
      if storage[at] != 0x5c {
        storage.append(storage[at])
        at += 1
        continue
      }
      do {
        let (scalar, next) = try escape(in: storage.span, at: at, end: end)
        storage.append(scalar: scalar)
        at = next
      } catch {
        storage.removeSubrange(before...)
        throw error
      }
    }
    return ByteRange(before, storage.count)
  }

  /// The number in `range`, if its text is a plain integer ("10", "-0", but not "1e1" or "10.0") that fits.
  package static func int64(of range: ByteRange, in bytes: Span<UInt8>) -> Int64? {
    var at = Int(range.start)
    let end = Int(range.end)
    guard at < end else { return nil }
    let isNegative = bytes[at] == 0x2d
    if isNegative { at += 1 }
    guard at < end else { return nil }
    // Counted downwards, since the negative half of the range is the larger one.
    var value: Int64 = 0
    while at < end {
      let digit = bytes[at] &- 0x30
      guard digit < 10 else { return nil }
      let (scaled, overflow) = value.multipliedReportingOverflow(by: 10)
      let (next, borrow) = scaled.subtractingReportingOverflow(Int64(digit))
      guard !overflow, !borrow else { return nil }
      value = next
      at += 1
    }
    if isNegative { return value }
    return value == .min ? nil : -value
  }

  /// The scalar that the escape at `at` stands for, and the index behind it; both halves of a surrogate pair at once.
  /// - Parameter end: the end of the string that the escape is in.
  private static func escape(
    in bytes: Span<UInt8>, at: Int, end: Int
  ) throws(JSONError) -> (scalar: Unicode.Scalar, next: Int) {
    guard at + 1 < end else { throw JSONError(.badEscape, at: at) }
    switch bytes[at + 1] {
    case 0x22: return ("\"", at + 2)
    case 0x5c: return ("\\", at + 2)
    case 0x2f: return ("/", at + 2)
    case 0x62: return ("\u{8}", at + 2)
    case 0x66: return ("\u{c}", at + 2)
    case 0x6e: return ("\n", at + 2)
    case 0x72: return ("\r", at + 2)
    case 0x74: return ("\t", at + 2)
    case 0x75: break
    default: throw JSONError(.badEscape, at: at)
    }
    guard let unit = hexUnit(in: bytes, at: at, end: end) else { throw JSONError(.badEscape, at: at) }
    if let scalar = Unicode.Scalar(unit) { return (scalar, at + 6) }
    guard unit < 0xdc00, let low = hexUnit(in: bytes, at: at + 6, end: end), 0xdc00 <= low, low < 0xe000,
      let scalar = Unicode.Scalar(0x10000 + (UInt32(unit - 0xd800) << 10 | UInt32(low - 0xdc00)))
    else { throw JSONError(.loneSurrogate, at: at) }
    return (scalar, at + 12)
  }

  /// The code unit of the `\uXXXX` at `at`, if there is one.
  private static func hexUnit(in bytes: Span<UInt8>, at: Int, end: Int) -> UInt16? {
    guard at + 6 <= end, bytes[at] == 0x5c, bytes[at + 1] == 0x75 else { return nil }
    var unit: UInt16 = 0
    for index in at + 2..<at + 6 {
      guard let digit = Hex.value(of: bytes[index]) else { return nil }
      unit = unit << 4 | UInt16(digit)
    }
    return unit
  }
}
