/// A strict pull reader for the wire format of Protocol Buffers over borrowed bytes: no tree, no allocation.
///
/// Refused, beyond what the format itself rules out, is what no encoder writes and what could hide a mistake: varints
/// with more bytes than they need, and groups. What fields mean, and which there are, is up to the caller.
///
/// ```
/// var reader = ProtobufReader(bytes)
/// while let tag = try reader.nextTag() {
///   switch (tag.field, tag.wireType) {
///   case (1, .delimited): name = try reader.delimited()
///   case (2, .varint): count = try reader.varint()
///   default: throw ProtobufError(.unknownField(tag.field), at: tag.offset)
///   }
/// }
/// ```
///
/// Source: Protocol Buffers documentation, "Encoding".
package struct ProtobufReader: ~Escapable {
  /// How the value of a field is laid out.
  package enum WireType: UInt8, Hashable, Sendable {
    case varint = 0
    case fixed64 = 1
    case delimited = 2
    case fixed32 = 5
  }

  /// What stands before each value.
  package struct Tag: Hashable, Sendable {
    package var field: UInt32
    package var wireType: WireType
    /// Where it begins, in bytes from the start of the message.
    package var offset: Int
  }

  private let bytes: Span<UInt8>
  private let base: Int
  private var position = 0

  /// - Parameters:
  ///   - bytes: the message.
  ///   - base: is added to all ranges that are returned: where `bytes` begins in the buffer that they are for.
  /// - Precondition: `base` and the message together are under 4 GiB.
  @_lifetime(copy bytes)
  package init(_ bytes: Span<UInt8>, base: Int = 0) {
    self.bytes = bytes
    self.base = base
  }

  /// Bytes read so far.
  package var offset: Int { position }

  /// The next field's tag; `nil` at the end of the message. Its value must be read next.
  package mutating func nextTag() throws(ProtobufError) -> Tag? {
    guard position < bytes.count else { return nil }
    let start = position
    let key = try varint()
    guard let number = UInt32(exactly: key >> 3), (1...536_870_911).contains(number) else {
      throw ProtobufError(.badFieldNumber, at: start)
    }
    guard let wireType = WireType(rawValue: UInt8(truncatingIfNeeded: key & 7)) else {
      throw ProtobufError(.badWireType(UInt8(truncatingIfNeeded: key & 7)), at: start)
    }
    return Tag(field: number, wireType: wireType, offset: start)
  }

  /// A number of up to 64 bits.
  package mutating func varint() throws(ProtobufError) -> UInt64 {
    let start = position
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      // The tenth byte has room for the last bit only.
      guard shift < 63 || byte < 2 else { throw ProtobufError(.overlongVarint, at: start) }
      value |= UInt64(byte & 0x7f) << shift
      if byte < 0x80 {
        guard byte != 0 || shift == 0 else { throw ProtobufError(.overlongVarint, at: start) }
        return value
      }
      shift += 7
    }
    throw ProtobufError(.unexpectedEnd, at: bytes.count)
  }

  /// Where the bytes of a string, a bytes field or a message lie.
  package mutating func delimited() throws(ProtobufError) -> ByteRange {
    let length = try varint()
    guard length <= UInt64(bytes.count - position) else { throw ProtobufError(.unexpectedEnd, at: bytes.count) }
    let start = position
    position += Int(length)
    return ByteRange(base + start, base + position)
  }

  /// Reads past a value that is of no interest.
  package mutating func skip(_ wireType: WireType) throws(ProtobufError) {
    switch wireType {
    case .varint: _ = try varint()
    case .delimited: _ = try delimited()
    case .fixed32: try skip(count: 4)
    case .fixed64: try skip(count: 8)
    }
  }

  private mutating func skip(count: Int) throws(ProtobufError) {
    guard count <= bytes.count - position else { throw ProtobufError(.unexpectedEnd, at: bytes.count) }
    position += count
  }
}

/// Why bytes are no message of Protocol Buffers, and where.
package struct ProtobufError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Which rule of the wire format, or of the message, the bytes break.
  package enum Kind: Hashable, Sendable {
    /// The message ends within a value.
    case unexpectedEnd
    /// A number of more than 64 bits, or with more bytes than it needs.
    case overlongVarint
    /// Field numbers go from 1 to 536,870,911.
    case badFieldNumber
    /// Groups (3 and 4), and numbers that stand for nothing (6 and 7).
    case badWireType(UInt8)
    /// The message has no field of that number.
    case unknownField(UInt32)
    /// The field's value is laid out in another way than its type asks for.
    case wrongWireType(field: UInt32, name: String)
  }

  package var kind: Kind
  /// Bytes from the start of the message.
  package var offset: Int

  package init(_ kind: Kind, at offset: Int) {
    self.kind = kind
    self.offset = offset
  }

  /// For people: what is wrong and at which byte.
  package var description: String { "\(what) at byte \(offset)" }

  private var what: String {
    switch kind {
    case .unexpectedEnd: "the message ends too early"
    case .overlongVarint: "a varint that is too long"
    case .badFieldNumber: "a field number that is not allowed"
    case .badWireType(let type): type == 3 || type == 4 ? "a group" : "the unknown wire type \(type)"
    case .unknownField(let field): "the unknown field \(field)"
    case .wrongWireType(let field, let name): "field \(field) (\(name)) with the wrong wire type"
    }
  }
}
