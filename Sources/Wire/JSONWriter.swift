/// Writes JSON (RFC 8259) to a buffer of its own that grows and is used again. Commas come by themselves.
///
/// ```
/// writer.beginObject()
/// writer.key("status")
/// writer.string("delivered")
/// writer.endObject()
/// ```
///
/// What is written is valid UTF-8 whatever it is given: broken sequences become U+FFFD. That begins and ends match,
/// and that each key has one value, is up to the caller. Several documents can lie one behind the other in one buffer;
/// see `beginDocument`.
package struct JSONWriter: Sendable {
  /// All that was written.
  package private(set) var bytes: [UInt8]
  /// Whether a value stands before this place in the same container.
  private var needsComma = false

  /// - Parameter buffer: what to append to.
  package init(appendingTo buffer: consuming [UInt8] = []) {
    bytes = buffer
  }

  /// Starts a new document behind what is there.
  /// - Returns: where it begins in `bytes`.
  @discardableResult
  package mutating func beginDocument() -> Int {
    needsComma = false
    return bytes.count
  }

  /// Empties the buffer but keeps its memory.
  package mutating func reset() {
    bytes.removeAll(keepingCapacity: true)
    needsComma = false
  }

  /// Gives the buffer away, and goes on with an empty one.
  package mutating func take() -> [UInt8] {
    let result = bytes
    bytes = []
    needsComma = false
    return result
  }

  // MARK: Structure

  /// Begins an object, as a value of its own or in the container that is open.
  package mutating func beginObject() { begin(0x7b) }

  /// Ends the object that was begun last.
  package mutating func endObject() { end(0x7d) }

  /// Begins an array, as a value of its own or in the container that is open.
  package mutating func beginArray() { begin(0x5b) }

  /// Ends the array that was begun last.
  package mutating func endArray() { end(0x5d) }

  /// The key of the value that comes next: a name of the program's own, in which nothing needs an escape.
  package mutating func key(static name: StaticString) {
    let comma = needsComma
    bytes.append(addingCapacity: name.utf8CodeUnitCount + 4) { output in
      if comma { output.append(0x2c) }
      output.append(0x22)
      output.append(text: name)
      output.append(0x22)
      output.append(0x3a)
    }
    needsComma = false
  }

  /// The key of the value that comes next: any text.
  package mutating func key(_ name: String) {
    string(name)
    bytes.append(0x3a)
    needsComma = false
  }

  // MARK: Values

  /// A string, escaped as far as RFC 8259 asks for it.
  package mutating func string(_ text: String) {
    string(text.utf8.span)
  }

  /// A string from bytes that should be UTF-8.
  package mutating func string(_ text: Span<UInt8>) {
    separate()
    guard text.firstSpecial(from: 0) == text.count else {
      bytes.append(0x22)
      bytes.append(jsonEscaped: text)
      bytes.append(0x22)
      return
    }
    bytes.append(addingCapacity: text.count + 2) { output in
      output.append(0x22)
      output.append(span: text)
      output.append(0x22)
    }
  }

  /// The UUID as a string, in lower case.
  package mutating func string(_ uuid: UUID) {
    separate()
    bytes.append(addingCapacity: 38) { output in
      output.append(0x22)
      output.append(uuid: uuid)
      output.append(0x22)
    }
  }

  /// A whole number.
  package mutating func integer(_ value: Int64) {
    separate()
    bytes.append(decimal: value)
  }

  /// A whole number.
  package mutating func integer(_ value: UInt64) {
    separate()
    bytes.append(decimal: value)
  }

  /// A whole number.
  package mutating func integer(_ value: Int) {
    integer(Int64(value))
  }

  /// `true` or `false`.
  package mutating func bool(_ value: Bool) { word(value ? "true" : "false") }

  /// `null`.
  package mutating func null() { word("null") }

  /// A value that is JSON already; it is not checked.
  package mutating func raw(_ json: Span<UInt8>) {
    separate()
    bytes.append(span: json)
  }

  // MARK: Parts

  private mutating func begin(_ opening: UInt8) {
    separate()
    bytes.append(opening)
    needsComma = false
  }

  private mutating func end(_ closing: UInt8) {
    bytes.append(closing)
    needsComma = true
  }

  private mutating func word(_ text: StaticString) {
    separate()
    bytes.append(static: text)
  }

  private mutating func separate() {
    if needsComma { bytes.append(0x2c) }
    needsComma = true
  }
}

extension Array where Element == UInt8 {
  /// Appends the inside of a JSON string: quotes, backslashes and control characters escaped, invalid UTF-8 replaced
  /// by U+FFFD.
  package mutating func append(jsonEscaped text: Span<UInt8>) {
    // Everything from `plain` to `at` can be copied as it is.
    var plain = 0
    var at = text.firstSpecial(from: 0)
    while at < text.count {
      let byte = text[at]
      if UTF8Text.isPlain(byte) {
        at = text.firstSpecial(from: at)
        continue
      }
      let length = byte < 0x80 ? 0 : UTF8Text.sequenceLength(in: text, at: at)
      if length > 0 {
        at += length
        continue
      }
      append(span: text.extracting(plain..<at))
      if byte < 0x80 {
        append(jsonEscape: byte)
        at += 1
      } else {
        append(scalar: "\u{fffd}")
        at += UTF8Text.brokenLength(in: text, at: at)
      }
      plain = at
    }
    append(span: text.extracting(plain..<at))
  }

  private mutating func append(jsonEscape byte: UInt8) {
    append(0x5c)
    switch byte {
    case 0x22, 0x5c: append(byte)
    case 0x08: append(0x62)
    case 0x09: append(0x74)
    case 0x0a: append(0x6e)
    case 0x0c: append(0x66)
    case 0x0d: append(0x72)
    default:
      append(text: "u00")
      append(Hex.digit(of: byte >> 4))
      append(Hex.digit(of: byte & 15))
    }
  }
}
