/// Writes messages of Protocol Buffers to a buffer of its own that grows; see `ProtobufReader`.
///
/// Each call writes one field. Whether a default value is written is up to the caller.
package struct ProtobufWriter: Sendable {
  /// All that was written.
  package private(set) var bytes: [UInt8]

  /// - Parameter buffer: what to append to.
  package init(appendingTo buffer: consuming [UInt8] = []) {
    bytes = buffer
  }

  /// Gives the buffer away, and goes on with an empty one.
  package mutating func take() -> [UInt8] { exchange(&bytes, with: []) }

  /// A string, or a field of bytes. A string must be UTF-8: broken sequences become U+FFFD.
  package mutating func string(_ field: Int, _ text: Span<UInt8>) {
    if UTF8Text.isValid(text) {
      delimited(field, text)
    } else {
      var copy: [UInt8] = []
      copy.append(span: text)
      string(field, String(decoding: copy, as: UTF8.self))
    }
  }

  /// A string.
  package mutating func string(_ field: Int, _ text: String) {
    delimited(field, text.utf8.span)
  }

  /// Any bytes.
  package mutating func delimited(_ field: Int, _ content: Span<UInt8>) {
    tag(field, .delimited)
    varint(UInt64(content.count))
    bytes.append(span: content)
  }

  /// An `int64` or `int32`: negative numbers take ten bytes.
  package mutating func integer(_ field: Int, _ value: Int64) {
    tag(field, .varint)
    varint(UInt64(bitPattern: value))
  }

  /// A `bool`.
  package mutating func boolean(_ field: Int, _ value: Bool) {
    tag(field, .varint)
    varint(value ? 1 : 0)
  }

  /// Begins a message within the message; `endMessage` must follow with what this returns.
  package mutating func beginMessage(_ field: Int) -> Int {
    tag(field, .delimited)
    return bytes.count
  }

  /// Puts the length before the message that began at `start`; it moves, so such messages should be short.
  package mutating func endMessage(from start: Int) {
    let length = bytes.count - start
    var prefix = ProtobufWriter()
    prefix.varint(UInt64(length))
    bytes.insert(contentsOf: prefix.bytes, at: start)
  }

  private mutating func tag(_ field: Int, _ type: ProtobufReader.WireType) {
    varint(UInt64(field) << 3 | UInt64(type.rawValue))
  }

  private mutating func varint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }
}
