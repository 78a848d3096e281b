/// A strict reader of JSON5 (json5.org, version 1.0.0): comments, trailing commas, single quotes, bare keys,
/// hexadecimal numbers.
///
/// The service has its own because the standard decoder neither tells where a file is broken nor that a key stands in
/// it twice. Files are small; the parser is simple rather than fast.
struct JSON5Parser {
  /// Why the text is no JSON5, and where.
  struct Failure: Error, Equatable {
    var offset: Int
    var message: String
  }

  /// Deeper nesting is refused; no setting lies that deep.
  static let deepest = 32

  var text: [UInt8]
  var offset = 0

  /// Reads a whole document.
  static func parse(_ text: [UInt8]) throws(Failure) -> ConfigurationValue {
    var parser = JSON5Parser(text: text)
    if text.starts(with: [0xEF, 0xBB, 0xBF]) { parser.offset = 3 }
    try parser.skipBlank()
    let value = try parser.value(depth: 0)
    try parser.skipBlank()
    guard parser.offset == text.count else {
      throw parser.failure("nothing may follow the end of the value, but \(parser.here) does")
    }
    return value
  }

  var next: UInt8? { offset < text.count ? text[offset] : nil }

  /// The character at the current place, for a message.
  var here: String {
    guard offset < text.count else { return "the end of the file" }
    let rest = text[offset..<min(text.count, offset + 4)]
    let character = String(decoding: rest, as: UTF8.self).first ?? "?"
    return character.isNewline ? "the end of the line" : "'\(character)'"
  }

  func failure(_ message: String, at place: Int? = nil) -> Failure {
    Failure(offset: place ?? offset, message: message)
  }

  mutating func take(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    offset += 1
    return true
  }

  func startsWith(_ word: StaticString) -> Bool {
    let bytes = Array(word.description.utf8)
    return text.count - offset >= bytes.count && text[offset..<offset + bytes.count].elementsEqual(bytes)
  }

  /// Skips white space and comments.
  mutating func skipBlank() throws(Failure) {
    while let byte = next {
      switch byte {
      case 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20: offset += 1
      case 0xC2 where startsWith("\u{A0}"): offset += 2
      case UInt8(ascii: "/") where startsWith("//"):
        while let byte = next, byte != 0x0A, byte != 0x0D { offset += 1 }
      case UInt8(ascii: "/") where startsWith("/*"):
        let start = offset
        offset += 2
        while !startsWith("*/") {
          guard offset < text.count else { throw failure("this comment has no end", at: start) }
          offset += 1
        }
        offset += 2
      default: return
      }
    }
  }

  mutating func value(depth: Int) throws(Failure) -> ConfigurationValue {
    guard depth < Self.deepest else { throw failure("nested too deeply") }
    let start = offset
    switch next {
    case UInt8(ascii: "{"): return ConfigurationValue(.object(try object(depth: depth)), offset: start)
    case UInt8(ascii: "["): return ConfigurationValue(.list(try list(depth: depth)), offset: start)
    case UInt8(ascii: "\""), UInt8(ascii: "'"): return ConfigurationValue(.string(try string()), offset: start)
    case .some(let byte) where Self.startsNumber(byte): return ConfigurationValue(try number(), offset: start)
    case .some(let byte) where Self.isWord(byte): return ConfigurationValue(try word(), offset: start)
    default: throw failure("a value is missing before \(here)")
    }
  }

  private mutating func object(depth: Int) throws(Failure) -> [ConfigurationMember] {
    let start = offset
    offset += 1
    var members: [ConfigurationMember] = []
    while true {
      try skipBlank()
      if take(UInt8(ascii: "}")) { return members }
      guard offset < text.count else { throw failure("this object has no end", at: start) }
      let keyOffset = offset
      let key = try self.key()
      if members.contains(where: { $0.key == key }) {
        throw failure("the key \"\(key)\" stands here a second time", at: keyOffset)
      }
      try skipBlank()
      guard take(UInt8(ascii: ":")) else { throw failure("a colon is missing between the key and \(here)") }
      try skipBlank()
      members.append(ConfigurationMember(key: key, keyOffset: keyOffset, value: try value(depth: depth + 1)))
      try skipBlank()
      if take(UInt8(ascii: ",")) || next == UInt8(ascii: "}") { continue }
      throw offset < text.count
        ? failure("a comma or a closing brace is missing before \(here)") : failure("this object has no end", at: start)
    }
  }

  private mutating func key() throws(Failure) -> String {
    if next == UInt8(ascii: "\"") || next == UInt8(ascii: "'") { return try string() }
    let start = offset
    while let byte = next, Self.isWord(byte) || (offset > start && Self.isDigit(byte)) { offset += 1 }
    guard offset > start else { throw failure("a key is missing before \(here)") }
    return String(decoding: text[start..<offset], as: UTF8.self)
  }

  private mutating func list(depth: Int) throws(Failure) -> [ConfigurationValue] {
    let start = offset
    offset += 1
    var items: [ConfigurationValue] = []
    while true {
      try skipBlank()
      if take(UInt8(ascii: "]")) { return items }
      guard offset < text.count else { throw failure("this list has no end", at: start) }
      items.append(try value(depth: depth + 1))
      try skipBlank()
      if take(UInt8(ascii: ",")) || next == UInt8(ascii: "]") { continue }
      throw offset < text.count
        ? failure("a comma or a closing bracket is missing before \(here)") : failure("this list has no end", at: start)
    }
  }

  private mutating func word() throws(Failure) -> ConfigurationValue.Content {
    let start = offset
    while let byte = next, Self.isWord(byte) || Self.isDigit(byte) { offset += 1 }
    let word = String(decoding: text[start..<offset], as: UTF8.self)
    switch word {
    case "true": return .bool(true)
    case "false": return .bool(false)
    case "null": return .null
    case "Infinity": return .number(.infinity)
    case "NaN": return .number(.nan)
    default: throw failure("the text \(word.prefix(40)) needs quotes", at: start)
    }
  }

  private static func startsNumber(_ byte: UInt8) -> Bool {
    isDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+") || byte == UInt8(ascii: ".")
  }

  static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  /// What a bare key may consist of, digits aside; bytes of letters beyond ASCII are taken as they come.
  static func isWord(_ byte: UInt8) -> Bool {
    (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$") || byte >= 0x80
  }
}
