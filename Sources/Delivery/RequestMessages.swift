import Wire

/// What people are told about a broken rule: the field, the rule, and what was found. Only here, where speed does not
/// matter, do strings come into decoding.
extension RequestFields {
  /// The most bytes of a field's value that a message repeats.
  private static let shownBytes = 40

  /// "priority: must be 10, 5 or 1; found 7".
  func violation(_ field: RequestField, _ rule: String, in bytes: Span<UInt8>) -> Violation {
    Violation(field.rule, "\(name(of: field)): \(rule); found \(shown(self[field], in: bytes))")
  }

  func brokenText(_ rule: InvalidRule, _ name: String) -> Violation {
    let cause = form == .json ? "an escaped surrogate without its partner" : "bytes that are not UTF-8"
    return Violation(rule, "\(name): must be Unicode text; found \(cause)")
  }

  /// "token: is required; found tokn, did you mean token?".
  func missing(_ field: RequestField, in bytes: Span<UInt8>) -> Violation {
    let found = self[field].kind == .null ? "; found null" : ""
    for index in 0..<min(unknownFields, unknownKeys.count) {
      let key = unknownKeys[index]
      if NearName.isNear(bytes.extracting(key.indices), field.key) {
        return Violation(
          .missingField,
          "\(name(of: field)): is required; found \(shownText(key, in: bytes)), did you mean \(field.key)?")
      }
    }
    return Violation(.missingField, "\(name(of: field)): is required\(found)")
  }

  /// A value for a message; objects and arrays by their kind only, so that no payload is ever told.
  func shown(_ value: FieldValue, in bytes: Span<UInt8>) -> String {
    switch value.kind {
    case .string, .brokenText: shownText(value.range, in: bytes)
    case .number: form == .headers ? shownText(value.range, in: bytes) : Self.start(of: value.range, in: bytes)
    case .absent, .null, .boolean, .object, .array: kindName(value)
    }
  }

  func kindName(_ value: FieldValue) -> String {
    switch value.kind {
    case .absent: "nothing"
    case .null: JSONKind.null.rawValue
    case .string, .brokenText: JSONKind.string.rawValue
    case .number: JSONKind.number.rawValue
    case .boolean: JSONKind.boolean.rawValue
    case .object: JSONKind.object.rawValue
    case .array: JSONKind.array.rawValue
    }
  }

  /// A token is told by its ends and its length: it is personal data.
  func shownToken(_ range: ByteRange, in bytes: Span<UInt8>) -> String {
    guard range.count > 12 else { return shownText(range, in: bytes) }
    let start = Self.printable(ByteRange(start: range.start, end: range.start + 4), in: bytes)
    let end = Self.printable(ByteRange(start: range.end - 4, end: range.end), in: bytes)
    return "\"\(start)…\(end)\" of \(range.count) bytes"
  }

  func shownText(_ range: ByteRange, in bytes: Span<UInt8>) -> String {
    "\"\(Self.start(of: range, in: bytes))\""
  }

  private static func start(of range: ByteRange, in bytes: Span<UInt8>) -> String {
    guard range.count > shownBytes else { return printable(range, in: bytes) }
    return printable(ByteRange(start: range.start, end: range.start + UInt32(shownBytes)), in: bytes) + "…"
  }

  /// Control characters become blanks, and what is not UTF-8 is replaced: messages end in logs and headers.
  private static func printable(_ range: ByteRange, in bytes: Span<UInt8>) -> String {
    var text: [UInt8] = []
    for index in range.indices { text.append(ASCII.isControl(bytes[index]) ? 0x20 : bytes[index]) }
    return String(decoding: text, as: UTF8.self)
  }
}

/// Guesses whether a key was meant to be another one.
enum NearName {
  /// Whether `found` differs from `wanted` by case, by a slip or two, or has it as a part (`device_token`).
  static func isNear(_ found: Span<UInt8>, _ wanted: String) -> Bool {
    guard found.count <= 32 else { return false }
    var key: [UInt8] = []
    for index in found.indices { key.append(ASCII.lowercased(found[index])) }
    let name = Array(wanted.utf8)
    if contains(key, name) { return true }
    return distance(key, name) <= (name.count > 3 ? 2 : 1)
  }

  private static func contains(_ key: [UInt8], _ name: [UInt8]) -> Bool {
    guard key.count >= name.count else { return false }
    for start in 0...key.count - name.count where key[start..<start + name.count] == name[...] { return true }
    return false
  }

  /// How many bytes must be put in, taken out or changed (Levenshtein).
  private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var row = Array(0...right.count)
    for (line, byte) in left.enumerated() {
      var diagonal = row[0]
      row[0] = line + 1
      for column in right.indices {
        let above = row[column + 1]
        row[column + 1] = min(above + 1, row[column] + 1, diagonal + (byte == right[column] ? 0 : 1))
        diagonal = above
      }
    }
    return row[right.count]
  }
}
