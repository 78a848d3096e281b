/// Base 64 with padding (RFC 4648, section 4), as in PEM files and in tokens that a device logs.
package enum Base64 {
  /// Appends the text of `bytes`.
  package static func encode(_ bytes: Span<UInt8>, into output: inout [UInt8]) {
    Base64Digits.encode(bytes, into: &output, last: (0x2b, 0x2f), padded: true)
  }

  /// Appends what `text` stands for. Strict: padding must be there, bits that do not count must be 0, and white space
  /// is refused. Returns false, and appends nothing, if the text is wrong.
  package static func decode(_ text: Span<UInt8>, into output: inout [UInt8]) -> Bool {
    guard text.count % 4 == 0 else { return false }
    var count = text.count
    if count > 0, text[count - 1] == 0x3d { count -= 1 }
    if count > 0, count < text.count, text[count - 1] == 0x3d { count -= 1 }
    return Base64Digits.decode(text.extracting(0..<count), into: &output, last: (0x2b, 0x2f))
  }
}

/// Base 64 with the URL alphabet and without padding (RFC 4648, section 5; RFC 7515, section 2), as in JSON Web Tokens.
package enum Base64URL {
  /// Appends the text of `bytes`.
  package static func encode(_ bytes: Span<UInt8>, into output: inout [UInt8]) {
    Base64Digits.encode(bytes, into: &output, last: (0x2d, 0x5f), padded: false)
  }

  /// Appends what `text` stands for. Strict: padding is refused, and bits that do not count must be 0. Returns false,
  /// and appends nothing, if the text is wrong.
  package static func decode(_ text: Span<UInt8>, into output: inout [UInt8]) -> Bool {
    Base64Digits.decode(text, into: &output, last: (0x2d, 0x5f))
  }
}

// The same with results of their own, for where speed does not matter.

extension Base64 {
  /// The text of `bytes`.
  package static func encode(_ bytes: Span<UInt8>) -> String {
    var text: [UInt8] = []
    encode(bytes, into: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// `nil` if the text is wrong.
  package static func decode(_ text: Span<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    return decode(text, into: &bytes) ? bytes : nil
  }
}

extension Base64URL {
  /// The text of `bytes`.
  package static func encode(_ bytes: Span<UInt8>) -> String {
    var text: [UInt8] = []
    encode(bytes, into: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// `nil` if the text is wrong.
  package static func decode(_ text: Span<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    return decode(text, into: &bytes) ? bytes : nil
  }
}

/// What the two alphabets share; they differ in their last two digits.
private enum Base64Digits {
  typealias LastDigits = (UInt8, UInt8)

  static func encode(_ bytes: Span<UInt8>, into output: inout [UInt8], last: LastDigits, padded: Bool) {
    output.append(addingCapacity: (bytes.count + 2) / 3 * 4) { output in
      for start in stride(from: 0, to: bytes.count, by: 3) {
        let given = min(3, bytes.count - start)
        var word: UInt32 = 0
        for index in 0..<3 {
          word = word << 8 | (index < given ? UInt32(bytes[start + index]) : 0)
        }
        for index in 0...given {
          output.append(digit(of: UInt8(word >> UInt32(18 - 6 * index) & 63), last))
        }
        if padded {
          for _ in given..<3 { output.append(0x3d) }
        }
      }
    }
  }

  static func decode(_ text: Span<UInt8>, into output: inout [UInt8], last: LastDigits) -> Bool {
    guard text.count % 4 != 1 else { return false }
    let before = output.count
    var word: UInt32 = 0
    var bits = 0
    for index in text.indices {
      guard let value = value(of: text[index], last) else {
        output.removeSubrange(before...)
        return false
      }
      word = word << 6 | UInt32(value)
      bits += 6
      if bits >= 8 {
        bits -= 8
        output.append(UInt8(truncatingIfNeeded: word >> UInt32(bits)))
        word &= 1 << UInt32(bits) - 1
      }
    }
    guard word == 0 else {
      output.removeSubrange(before...)
      return false
    }
    return true
  }

  private static func digit(of value: UInt8, _ last: LastDigits) -> UInt8 {
    switch value {
    case 0..<26: 0x41 + value
    case 26..<52: 0x61 + value - 26
    case 52..<62: 0x30 + value - 52
    case 62: last.0
    default: last.1
    }
  }

  private static func value(of digit: UInt8, _ last: LastDigits) -> UInt8? {
    switch digit {
    case 0x41...0x5a: digit - 0x41
    case 0x61...0x7a: digit - 0x61 + 26
    case 0x30...0x39: digit - 0x30 + 52
    case last.0: 62
    case last.1: 63
    default: nil
    }
  }
}
