/// Hexadecimal digits to bytes and back.
package enum Hex {
  /// What the digit stands for, in either case; `nil` for any other byte.
  @inlinable
  package static func value(of digit: UInt8) -> UInt8? {
    switch digit {
    case 0x30...0x39: digit &- 0x30
    case 0x41...0x46: digit &- 0x37
    case 0x61...0x66: digit &- 0x57
    default: nil
    }
  }

  /// The lower-case digit of a value below 16.
  @inlinable
  package static func digit(of value: UInt8) -> UInt8 {
    value < 10 ? 0x30 &+ value : 0x57 &+ value
  }

  /// Whether there are digits only. True of an empty text.
  package static func isDigits(_ text: Span<UInt8>) -> Bool {
    var at = 0
    while text.count &- at >= 8 {
      guard Words.areHexDigits(text.word(at: at)) else { return false }
      at &+= 8
    }
    while at < text.count {
      guard value(of: text[at]) != nil else { return false }
      at &+= 1
    }
    return true
  }

  /// Appends the bytes that `text` spells, two digits each. Returns false, and appends nothing, if a byte is no digit
  /// or one is left over.
  package static func decode(_ text: Span<UInt8>, into output: inout [UInt8]) -> Bool {
    guard text.count % 2 == 0, isDigits(text) else { return false }
    output.append(addingCapacity: text.count / 2) { output in
      for index in stride(from: 0, to: text.count, by: 2) {
        output.append((value(of: text[index]) ?? 0) << 4 | (value(of: text[index + 1]) ?? 0))
      }
    }
    return true
  }

  /// Appends two lower-case digits for each byte.
  package static func encode(_ bytes: Span<UInt8>, into output: inout [UInt8]) {
    output.append(addingCapacity: bytes.count * 2) { output in
      for index in bytes.indices {
        output.append(digit(of: bytes[index] >> 4))
        output.append(digit(of: bytes[index] & 15))
      }
    }
  }

  /// The lower-case digits as text, for where speed does not matter.
  package static func encode(_ bytes: Span<UInt8>) -> String {
    var text: [UInt8] = []
    encode(bytes, into: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// The bytes that `text` spells; `nil` if a byte is no digit or one is left over.
  package static func decode(_ text: Span<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    return decode(text, into: &bytes) ? bytes : nil
  }
}
