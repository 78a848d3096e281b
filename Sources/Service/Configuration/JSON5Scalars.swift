/// The strings and numbers of JSON5.
extension JSON5Parser {
  /// A number: decimal or hexadecimal, signed or not, with or without digits on one side of the point.
  mutating func number() throws(Failure) -> ConfigurationValue.Content {
    let start = offset
    let negative = next == UInt8(ascii: "-")
    if negative || next == UInt8(ascii: "+") { offset += 1 }
    if startsWith("Infinity") {
      offset += 8
      return .number(negative ? -.infinity : .infinity)
    }
    let digits = offset
    while let byte = next, Self.isDigit(byte) || Self.isWord(byte) || byte == UInt8(ascii: ".") || isSign(after: digits)
    {
      offset += 1
    }
    let body = String(decoding: text[digits..<offset], as: UTF8.self)
    let malformed = failure(
      "\(String(decoding: text[start..<offset], as: UTF8.self).prefix(40)) is no number", at: start)
    if body.hasPrefix("0x") || body.hasPrefix("0X") {
      guard let value = Int64(body.dropFirst(2), radix: 16), Self.isHex(body.utf8.dropFirst(2)) else { throw malformed }
      return .integer(negative ? -value : value)
    }
    guard let first = body.utf8.first, Self.isDigit(first) || first == UInt8(ascii: ".") else { throw malformed }
    let leadingZero = first == UInt8(ascii: "0") && body.utf8.dropFirst().first.map(Self.isDigit) == true
    guard !leadingZero, body.utf8.allSatisfy(Self.isDecimal) else { throw malformed }
    if let value = Int64(body) { return .integer(negative ? -value : value) }
    guard let value = Double(body) else { throw malformed }
    return .number(negative ? -value : value)
  }

  /// Whether the current byte is the sign of an exponent.
  private func isSign(after digits: Int) -> Bool {
    guard let byte = next, byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-"), offset > digits else { return false }
    return text[offset - 1] | 0x20 == UInt8(ascii: "e")
  }

  private static func isDecimal(_ byte: UInt8) -> Bool {
    isDigit(byte)
      || [UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"), UInt8(ascii: "+"), UInt8(ascii: "-")]
        .contains(byte)
  }

  private static func isHex(_ bytes: some Sequence<UInt8>) -> Bool { bytes.allSatisfy { hexValue($0) != nil } }

  private static func hexValue(_ byte: UInt8) -> UInt32? {
    switch byte {
    case 0x30...0x39: UInt32(byte - 0x30)
    case 0x41...0x46: UInt32(byte - 0x37)
    case 0x61...0x66: UInt32(byte - 0x57)
    default: nil
    }
  }

  /// A string in either kind of quotes.
  mutating func string() throws(Failure) -> String {
    let start = offset
    let quote = text[offset]
    offset += 1
    var bytes: [UInt8] = []
    while let byte = next {
      offset += 1
      switch byte {
      case quote:
        guard let string = String(validating: bytes, as: UTF8.self) else {
          throw failure("this string is no valid UTF-8", at: start)
        }
        return string
      case UInt8(ascii: "\\"): try escape(into: &bytes)
      case 0x0A, 0x0D: throw failure("this string does not end on its line", at: start)
      default: bytes.append(byte)
      }
    }
    throw failure("this string has no end", at: start)
  }

  /// What follows a backslash.
  private mutating func escape(into bytes: inout [UInt8]) throws(Failure) {
    let place = offset - 1
    guard let byte = next else { throw failure("this string has no end", at: place) }
    offset += 1
    switch byte {
    case UInt8(ascii: "b"): bytes.append(0x08)
    case UInt8(ascii: "f"): bytes.append(0x0C)
    case UInt8(ascii: "n"): bytes.append(0x0A)
    case UInt8(ascii: "r"): bytes.append(0x0D)
    case UInt8(ascii: "t"): bytes.append(0x09)
    case UInt8(ascii: "v"): bytes.append(0x0B)
    case UInt8(ascii: "0"): bytes.append(0x00)
    case 0x0A: break
    case 0x0D: _ = take(0x0A)
    case UInt8(ascii: "x"): append(try hex(digits: 2, from: place), to: &bytes, from: place)
    case UInt8(ascii: "u"): append(try codePoint(from: place), to: &bytes, from: place)
    case UInt8(ascii: "1")...UInt8(ascii: "9"): throw failure("a digit cannot be escaped", at: place)
    default: bytes.append(byte)
    }
  }

  /// Four hexadecimal digits, or two such groups that make a surrogate pair.
  private mutating func codePoint(from place: Int) throws(Failure) -> UInt32 {
    let first = try hex(digits: 4, from: place)
    guard (0xD800...0xDFFF).contains(first) else { return first }
    guard first < 0xDC00, startsWith("\\u") else { throw failure("half of a surrogate pair", at: place) }
    offset += 2
    let second = try hex(digits: 4, from: place)
    guard (0xDC00...0xDFFF).contains(second) else { throw failure("half of a surrogate pair", at: place) }
    return 0x10000 + (first - 0xD800) << 10 + (second - 0xDC00)
  }

  private mutating func hex(digits: Int, from place: Int) throws(Failure) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<digits {
      guard let byte = next, let digit = Self.hexValue(byte) else {
        throw failure("an escape needs \(digits) hexadecimal digits", at: place)
      }
      value = value << 4 | digit
      offset += 1
    }
    return value
  }

  private func append(_ codePoint: UInt32, to bytes: inout [UInt8], from place: Int) {
    guard let scalar = Unicode.Scalar(codePoint) else { return }
    bytes.append(contentsOf: Array(String(Character(scalar)).utf8))
  }
}
