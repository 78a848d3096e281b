/// Strings, numbers and literals: the loops that look at each byte.
extension JSONScanner {
  /// Reads the value at `position` that begins with `byte` and is no container.
  @discardableResult
  mutating func scalar(_ byte: UInt8) throws(JSONError) -> JSONValue {
    switch byte {
    case 0x22:
      position += 1
      return .string(try stringAfterQuote())
    case 0x2d, 0x30...0x39:
      return try number(byte)
    case 0x74:
      try literal("true")
      return .true
    case 0x66:
      try literal("false")
      return .false
    case 0x6e:
      try literal("null")
      return .null
    default:
      throw unexpected(byte)
    }
  }

  /// Reads up to and with the closing quote; `position` is just behind the opening one.
  mutating func stringAfterQuote() throws(JSONError) -> JSONString {
    let start = position
    var at = position
    var hasEscapes = false
    while true {
      at = bytes.firstSpecial(from: at)
      guard at < bytes.count else { throw atEnd }
      let byte = bytes[at]
      if byte == 0x22 {
        position = at + 1
        return JSONString(range: ByteRange(base + start, base + at), hasEscapes: hasEscapes)
      } else if byte == 0x5c {
        hasEscapes = true
        at = try afterEscape(at)
      } else if byte >= 0x80 {
        let length = UTF8Text.sequenceLength(in: bytes, at: at)
        guard length > 0 else {
          throw UTF8Text.isCutOff(in: bytes, at: at) ? atEnd : JSONError(.badUTF8, at: at)
        }
        at += length
      } else {
        throw JSONError(.controlCharacter(byte), at: at)
      }
    }
  }

  /// The index behind the escape whose backslash is at `at`. Whether surrogates pair up is not looked at.
  private func afterEscape(_ at: Int) throws(JSONError) -> Int {
    guard at + 1 < bytes.count else { throw atEnd }
    switch bytes[at + 1] {
    case 0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74:
      return at + 2
    case 0x75:
      for index in at + 2..<at + 6 {
        guard index < bytes.count else { throw atEnd }
        guard Hex.value(of: bytes[index]) != nil else { throw JSONError(.badEscape, at: at) }
      }
      return at + 6
    default:
      throw JSONError(.badEscape, at: at)
    }
  }

  /// Reads a number (RFC 8259, section 6) that begins with `first`, at `position`.
  private mutating func number(_ first: UInt8) throws(JSONError) -> JSONValue {
    let start = position
    var leading = first
    if first == 0x2d {
      position += 1
      guard position < bytes.count else { throw atEnd }
      leading = bytes[position]
    }
    if leading == 0x30 {
      position += 1
      if position < bytes.count, bytes[position] &- 0x30 < 10 { throw JSONError(.badNumber, at: position) }
    } else {
      try digits()
    }
    var isInteger = true
    if position < bytes.count, bytes[position] == 0x2e {
      isInteger = false
      position += 1
      try digits()
    }
    if position < bytes.count, bytes[position] | 0x20 == 0x65 {
      isInteger = false
      position += 1
      if position < bytes.count, bytes[position] == 0x2b || bytes[position] == 0x2d { position += 1 }
      try digits()
    }
    return .number(range(from: start), isInteger: isInteger)
  }

  /// Reads one digit or more.
  private mutating func digits() throws(JSONError) {
    let start = position
    while position < bytes.count, bytes[position] &- 0x30 < 10 { position += 1 }
    guard position > start else {
      throw position < bytes.count ? JSONError(.badNumber, at: position) : atEnd
    }
  }

  private mutating func literal(_ text: String) throws(JSONError) {
    for byte in text.utf8 {
      guard position < bytes.count else { throw atEnd }
      guard bytes[position] == byte else { throw unexpected(bytes[position]) }
      position += 1
    }
  }
}
