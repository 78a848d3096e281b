/// Whole members of an object: a key with its value.
extension JSONWriter {
  /// A text.
  package mutating func field(_ name: String, _ text: String) {
    key(name)
    string(text)
  }

  /// A whole number.
  package mutating func field(_ name: String, _ number: Int64) {
    key(name)
    integer(number)
  }

  /// A text, or null.
  package mutating func field(_ name: String, _ text: String?) {
    key(name)
    if let text { string(text) } else { null() }
  }

  /// A whole number, or null.
  package mutating func field(_ name: String, _ number: Int?) {
    key(name)
    if let number { integer(number) } else { null() }
  }

  /// A text; no member at all where there is none.
  package mutating func field(_ name: String, ifAny text: String?) {
    if let text { field(name, text) }
  }

  /// A whole number; no member at all where there is none.
  package mutating func field(_ name: String, ifAny number: Int64?) {
    if let number { field(name, number) }
  }

  /// An array of texts.
  package mutating func list(_ name: String, _ texts: some Sequence<String>) {
    key(name)
    beginArray()
    for text in texts { string(text) }
    endArray()
  }
}
