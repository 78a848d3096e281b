/// How HPACK treats a field (RFC 7541 section 6.2).
package enum FieldIndexing: UInt8, Sendable {
  /// May enter the dynamic table: for values that come again and again.
  case always
  /// Enters the table the first time its name is used on a connection, so that later ones can refer to the name; then
  /// not again. For values that differ in each request.
  case firstUseOnly
  /// Never indexed, nor by any hop on the way: secrets, and values too many for the table.
  case never
}

/// An ordered list of HTTP/2 header fields in one buffer, made to be used again: `removeAll()` keeps its memory.
///
/// Names are lower case. Pseudo-fields (`:path` and the like) come before all others, as RFC 9113 section 8.3 has it.
package struct HeaderList: Sendable {
  /// One field: its name, and right after it its value.
  struct Field: Sendable {
    var start: UInt32
    var nameCount: UInt32
    var valueCount: UInt32
    var indexing: FieldIndexing

    var name: Range<Int> { Int(start)..<Int(start) + Int(nameCount) }
    var value: Range<Int> { name.upperBound..<name.upperBound + Int(valueCount) }
  }

  private(set) var bytes: [UInt8] = []
  private(set) var fields: [Field] = []
  /// How many of the fields are pseudo-fields; they stand in front.
  private(set) var pseudoCount = 0

  package init() {}

  package var count: Int { fields.count }
  package var isEmpty: Bool { fields.isEmpty }

  /// The size by the rule of RFC 9113 section 6.5.2 (SETTINGS_MAX_HEADER_LIST_SIZE): names, values and 32 bytes each.
  package var listSize: Int { bytes.count + 32 * fields.count }

  /// How many bytes of names and values fit without an allocation.
  var capacity: Int { bytes.capacity }

  /// Empties it and keeps its memory.
  package mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    fields.removeAll(keepingCapacity: true)
    pseudoCount = 0
  }

  /// Adds a field; its value is copied.
  package mutating func append(name: StaticString, value: Span<UInt8>, indexing: FieldIndexing = .always) {
    append(name: name, indexing: indexing) { bytes in
      unsafe value.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
    }
  }

  /// Adds a field; its value is copied as UTF-8.
  package mutating func append(name: StaticString, value: String, indexing: FieldIndexing = .always) {
    append(name: name, indexing: indexing) { $0.append(contentsOf: value.utf8) }
  }

  /// Adds a field whose value the closure appends to the buffer that it is given; it must not touch what is there.
  package mutating func append(
    name: StaticString, indexing: FieldIndexing = .always, value: (inout [UInt8]) -> Void
  ) {
    let start = bytes.count
    name.withUTF8Buffer { unsafe bytes.append(contentsOf: $0) }
    let middle = bytes.count
    value(&bytes)
    precondition(bytes.count >= middle, "a value may only be appended")
    addField(start: start, middle: middle, indexing: indexing)
  }

  /// Adds a field whose name is not known beforehand; for look-alikes and tests.
  package mutating func append(customName name: String, value: String, indexing: FieldIndexing = .always) {
    let start = bytes.count
    bytes.append(contentsOf: name.utf8)
    let middle = bytes.count
    bytes.append(contentsOf: value.utf8)
    addField(start: start, middle: middle, indexing: indexing)
  }

  /// Adds a field as it was received. The pointers need only live during the call.
  @unsafe mutating func append(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) {
    let start = bytes.count
    unsafe bytes.append(contentsOf: name)
    unsafe bytes.append(contentsOf: value)
    addField(start: start, middle: start + name.count, indexing: .always, received: true)
  }

  private mutating func addField(start: Int, middle: Int, indexing: FieldIndexing, received: Bool = false) {
    if middle > start, bytes[start] == UInt8(ascii: ":") {
      precondition(received || pseudoCount == fields.count, "pseudo-fields come before all others")
      pseudoCount += 1
    }
    fields.append(
      Field(
        start: UInt32(start), nameCount: UInt32(middle - start), valueCount: UInt32(bytes.count - middle),
        indexing: indexing))
  }

  /// Where the value of the first field of that name lies in the list's buffer.
  func range(of name: StaticString) -> Range<Int>? {
    for field in fields where Int(field.nameCount) == name.utf8CodeUnitCount {
      let start = Int(field.start)
      let same = name.withUTF8Buffer { wanted in
        for index in 0..<wanted.count where unsafe bytes[start + index] != wanted[index] { return false }
        return true
      }
      if same { return field.value }
    }
    return nil
  }

  /// The value of the first field of that name (lower case), borrowed; no copy.
  @_lifetime(borrow self)
  package borrowing func value(of name: StaticString) -> Span<UInt8>? {
    guard let range = range(of: name) else { return nil }
    return bytes.span.extracting(range)
  }

  /// The value of the first field of that name as text, invalid UTF-8 replaced.
  package func text(of name: StaticString) -> String? {
    range(of: name).map { String(decoding: bytes[$0], as: UTF8.self) }
  }

  /// All fields in order, as text; for journals and tests.
  package var texts: [(name: String, value: String)] {
    fields.map {
      (String(decoding: bytes[$0.name], as: UTF8.self), String(decoding: bytes[$0.value], as: UTF8.self))
    }
  }
}
