/// The six kinds of JSON value; the raw value is how a message for people calls it.
package enum JSONKind: String, Hashable, Sendable {
  case object = "an object"
  case array = "an array"
  case string = "a string"
  case number = "a number"
  case boolean = "a boolean"
  case null = "null"
}

/// A string as it stands in the text: checked, but not unescaped.
package struct JSONString: Hashable, Sendable {
  /// The bytes between the quotes.
  package var range: ByteRange
  /// Whether `range` must be unescaped before it is read as text. Without escapes it is valid UTF-8 as it stands.
  package var hasEscapes: Bool

  @inlinable
  package init(range: ByteRange, hasEscapes: Bool) {
    self.range = range
    self.hasEscapes = hasEscapes
  }
}

/// A whole value as it stands in the text. Everything within it was checked too.
package enum JSONValue: Hashable, Sendable {
  case string(JSONString)
  /// `isInteger`: it has neither a fraction nor an exponent. See `JSONText.int64`.
  case number(ByteRange, isInteger: Bool)
  /// From the opening to the closing brace, both included.
  case object(ByteRange)
  /// From the opening to the closing bracket, both included.
  case array(ByteRange)
  case `true`
  case `false`
  case null

  package var kind: JSONKind {
    switch self {
    case .string: .string
    case .number: .number
    case .object: .object
    case .array: .array
    case .true, .false: .boolean
    case .null: .null
    }
  }
}
