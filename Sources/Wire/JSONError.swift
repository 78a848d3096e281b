/// Why a text is not JSON (RFC 8259), and where.
package struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Which rule of the grammar, or of the scanner, the text breaks.
  package enum Kind: Hashable, Sendable {
    /// The text ends where more must follow.
    case unexpectedEnd
    /// This byte cannot stand here.
    case unexpectedByte(UInt8)
    /// A number that breaks the grammar: a leading zero, no digit where one must be.
    case badNumber
    /// A backslash that is not followed by one of the escapes of RFC 8259, section 7.
    case badEscape
    /// Bytes that are not UTF-8: overlong, a surrogate, past U+10FFFF, cut off.
    case badUTF8
    /// A byte below 0x20 within a string.
    case controlCharacter(UInt8)
    /// An escaped UTF-16 surrogate without its partner. Valid by the grammar, but no text: only unescaping reports it.
    case loneSurrogate
    /// More containers within each other than the scanner was told to allow.
    case tooDeep
    /// Something other than white space after the document.
    case trailingBytes
  }

  package var kind: Kind
  /// Bytes from the start of the text that was scanned (the scanner's `base` is not counted).
  package var offset: Int

  package init(_ kind: Kind, at offset: Int) {
    self.kind = kind
    self.offset = offset
  }

  /// For people: what is wrong and at which byte.
  package var description: String {
    "\(what) at byte \(offset)"
  }

  private var what: String {
    switch kind {
    case .unexpectedEnd: "the text ends too early"
    case .unexpectedByte(let byte): "unexpected \(Self.name(byte))"
    case .badNumber: "malformed number"
    case .badEscape: "unknown or incomplete escape in a string"
    case .badUTF8: "invalid UTF-8"
    case .controlCharacter(let byte): "unescaped control character \(Self.name(byte)) in a string"
    case .loneSurrogate: "escaped surrogate without its partner"
    case .tooDeep: "too many nested objects or arrays"
    case .trailingBytes: "something follows the document"
    }
  }

  private static func name(_ byte: UInt8) -> String {
    if byte > 0x20, byte < 0x7f { return "'\(Character(Unicode.Scalar(byte)))'" }
    let digits = String(byte, radix: 16)
    return "0x" + (digits.count < 2 ? "0" : "") + digits
  }
}
