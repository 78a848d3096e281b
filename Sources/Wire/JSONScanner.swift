/// A strict pull scanner for JSON (RFC 8259) over borrowed bytes: one pass, no tree, no allocation.
///
/// The caller asks for what should come next and gets ranges. Refused are: anything but UTF-8, a byte order mark,
/// comments, trailing commas, unescaped control characters, numbers with leading zeros, and an empty text. Accepted,
/// as the grammar has it, are: numbers of any size, escaped surrogates without a partner, and duplicate keys (each
/// is reported; what they mean is up to the caller).
///
/// ```
/// var scanner = JSONScanner(bytes)
/// try scanner.beginObject()
/// while let key = try scanner.nextKey() {
///   if scanner.matches(key, "token") { token = try scanner.value() } else { try scanner.value() }
/// }
/// try scanner.endDocument()
/// ```
///
/// Each key must be followed by one value: `value()`, or `beginObject()` / `beginArray()` and the calls up to its end.
/// Calls out of that order throw or give wrong tokens, but never trap. After an error the scanner is of no more use.
package struct JSONScanner: ~Escapable {
  /// The most containers within each other that one `value()` can have: one bit each in a word.
  package static let deepest = 64

  let bytes: Span<UInt8>
  let base: Int
  let maxDepth: Int
  /// The next byte to read.
  var position = 0
  /// Containers that are open.
  var depth = 0
  /// Whether the innermost container has just been opened, so that no comma may come first.
  var atFirst = false

  /// - Parameters:
  ///   - bytes: the text.
  ///   - base: is added to all ranges that are returned: where `bytes` begins in the buffer that the ranges are for.
  ///   - maxDepth: how many containers may be open at once; in one `value()` never more than `deepest`.
  /// - Precondition: `base` and the text together are under 4 GiB.
  @_lifetime(copy bytes)
  package init(_ bytes: Span<UInt8>, base: Int = 0, maxDepth: Int = JSONScanner.deepest) {
    self.bytes = bytes
    self.base = base
    self.maxDepth = maxDepth
  }

  /// Bytes read so far.
  package var offset: Int { position }

  /// Whether `string`, a result of this scanner, spells `text`, escapes taken into account. Does not allocate.
  @inlinable
  package func matches(_ string: JSONString, _ text: String) -> Bool {
    // Most comparisons end here, and need no call.
    guard string.hasEscapes || string.range.count == text.utf8.count else { return false }
    return matchesFully(string, text)
  }

  @usableFromInline
  func matchesFully(_ string: JSONString, _ text: String) -> Bool {
    let local = ByteRange(Int(string.range.start) - base, Int(string.range.end) - base)
    return JSONText.matches(JSONString(range: local, hasEscapes: string.hasEscapes), text, in: bytes)
  }

  // MARK: Containers

  /// Enters the object that comes next; anything else there is an error.
  package mutating func beginObject() throws(JSONError) {
    try begin(0x7b)
  }

  /// The next key of the innermost object, read past its colon; `nil` when the object has ended.
  package mutating func nextKey() throws(JSONError) -> JSONString? {
    let isFirst = atFirst
    atFirst = false
    var byte = try nextByte()
    if byte == 0x7d {
      close()
      return nil
    }
    if !isFirst {
      try expect(byte, 0x2c)
      byte = try nextByte()
    }
    try expect(byte, 0x22)
    return try keyAfterQuote()
  }

  /// Enters the array that comes next; anything else there is an error.
  package mutating func beginArray() throws(JSONError) {
    try begin(0x5b)
  }

  /// Whether the innermost array has another element, which is to be read next; `false` when the array has ended.
  package mutating func hasNextElement() throws(JSONError) -> Bool {
    let isFirst = atFirst
    atFirst = false
    let byte = try nextByte()
    if byte == 0x5d {
      close()
      return false
    }
    if !isFirst {
      try expect(byte, 0x2c)
    }
    return true
  }

  /// Checks that nothing but white space follows, and that no container is open.
  package mutating func endDocument() throws(JSONError) {
    skipWhiteSpace()
    guard depth == 0 else { throw position < bytes.count ? unexpected(bytes[position]) : atEnd }
    guard position == bytes.count else { throw JSONError(.trailingBytes, at: position) }
  }

  // MARK: Values

  /// What the next value is, by its first byte; reads white space only.
  package mutating func peekKind() throws(JSONError) -> JSONKind {
    let byte = try nextByte()
    switch byte {
    case 0x7b: return .object
    case 0x5b: return .array
    case 0x22: return .string
    case 0x2d, 0x30...0x39: return .number
    case 0x74, 0x66: return .boolean
    case 0x6e: return .null
    default: throw unexpected(byte)
    }
  }

  /// Reads a whole value; objects and arrays are checked in full and returned as one range.
  @discardableResult
  package mutating func value() throws(JSONError) -> JSONValue {
    let byte = try nextByte()
    guard byte == 0x7b || byte == 0x5b else { return try scalar(byte) }
    let start = position
    try skipContainer()
    let range = range(from: start)
    return byte == 0x7b ? .object(range) : .array(range)
  }

  /// Reads a text that must be exactly one value, with nothing but white space around it.
  package static func document(
    _ bytes: Span<UInt8>, base: Int = 0, maxDepth: Int = JSONScanner.deepest
  ) throws(JSONError) -> JSONValue {
    var scanner = JSONScanner(bytes, base: base, maxDepth: maxDepth)
    let value = try scanner.value()
    try scanner.endDocument()
    return value
  }

  // MARK: The parts of the structure

  /// Reads the container at `position` to its end, without recursion: the kind of each open one is a bit of a word.
  private mutating func skipContainer() throws(JSONError) {
    let outside = depth
    var objects: UInt64 = 0
    repeat {
      // A value is due here.
      let byte = try nextByte()
      if byte == 0x7b || byte == 0x5b {
        guard depth - outside < Self.deepest else { throw JSONError(.tooDeep, at: position) }
        try open()
        objects = objects << 1 | (byte == 0x7b ? 1 : 0)
        if try nextByte() == (byte == 0x7b ? 0x7d : 0x5d) {
          close()
          objects >>= 1
          try skipSeparators(&objects, downTo: outside)
        } else if byte == 0x7b {
          try expect(bytes[position], 0x22)
          _ = try keyAfterQuote()
        }
      } else {
        try scalar(byte)
        try skipSeparators(&objects, downTo: outside)
      }
    } while depth > outside
  }

  /// After a value: closes all containers that end here, then reads the comma and, in an object, the next key.
  private mutating func skipSeparators(_ objects: inout UInt64, downTo outside: Int) throws(JSONError) {
    while depth > outside {
      let inObject = objects & 1 == 1
      let byte = try nextByte()
      if byte == 0x2c {
        position += 1
        if inObject {
          try expect(try nextByte(), 0x22)
          _ = try keyAfterQuote()
        }
        return
      }
      guard byte == (inObject ? 0x7d : 0x5d) else { throw unexpected(byte) }
      close()
      objects >>= 1
    }
  }

  private mutating func begin(_ opening: UInt8) throws(JSONError) {
    let byte = try nextByte()
    guard byte == opening else { throw unexpected(byte) }
    try open()
    atFirst = true
  }

  /// Takes the opening byte at `position`.
  private mutating func open() throws(JSONError) {
    guard depth < maxDepth else { throw JSONError(.tooDeep, at: position) }
    depth += 1
    position += 1
  }

  /// Takes the closing byte at `position`.
  private mutating func close() {
    depth -= 1
    position += 1
  }

  private mutating func keyAfterQuote() throws(JSONError) -> JSONString {
    let key = try stringAfterQuote()
    try expect(try nextByte(), 0x3a)
    return key
  }

  /// Takes `byte`, which is at `position`, if it is the wanted one.
  private mutating func expect(_ byte: UInt8, _ wanted: UInt8) throws(JSONError) {
    guard byte == wanted else { throw unexpected(byte) }
    position += 1
  }

  /// The next byte that is no white space; it is not taken.
  private mutating func nextByte() throws(JSONError) -> UInt8 {
    skipWhiteSpace()
    guard position < bytes.count else { throw atEnd }
    return bytes[position]
  }

  @inline(__always)
  private mutating func skipWhiteSpace() {
    while position < bytes.count {
      let byte = bytes[position]
      guard byte <= 0x20, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 else { return }
      position += 1
    }
  }

  func unexpected(_ byte: UInt8) -> JSONError { JSONError(.unexpectedByte(byte), at: position) }

  var atEnd: JSONError { JSONError(.unexpectedEnd, at: bytes.count) }

  func range(from start: Int) -> ByteRange { ByteRange(base + start, base + position) }
}
