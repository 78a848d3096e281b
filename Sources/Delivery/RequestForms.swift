import Wire

/// Reads the JSON form and the header form of a request into `RequestFields`. What the fields mean is not looked at here.
extension RequestFields {
  /// As many containers within each other as a payload may have, the payload itself counted: one less than the
  /// scanner's limit, because in the JSON form the request is around it.
  static let deepestPayload = JSONScanner.deepest - 1

  // MARK: The JSON form

  /// Reads the JSON form, in one pass over `value`, a stretch of `bytes`. Of duplicate keys the last one counts.
  mutating func readJSON(_ value: ByteRange, of bytes: Span<UInt8>) throws(Violation) {
    guard !value.isEmpty else { throw Violation(.malformedJSON, "the value: is empty, where a JSON object must be") }
    let kind: JSONKind
    do {
      kind = try readDocument(value, of: bytes)
    } catch {
      throw Violation(.malformedJSON, "the value: is not JSON, \(error)")
    }
    guard kind == .object else {
      throw Violation(.wrongType, "the value: must be a JSON object; found \(kind.rawValue)")
    }
  }

  /// - Returns: What the document is; its members were read if it is an object.
  private mutating func readDocument(_ value: ByteRange, of bytes: Span<UInt8>) throws(JSONError) -> JSONKind {
    var scanner = JSONScanner(bytes.extracting(value.indices), base: Int(value.start))
    let kind = try scanner.peekKind()
    if kind == .object {
      try readMembers(&scanner, in: bytes)
    } else {
      try scanner.value()
    }
    try scanner.endDocument()
    return kind
  }

  /// Reads the object that comes next.
  mutating func readMembers(_ scanner: inout JSONScanner, in bytes: Span<UInt8>) throws(JSONError) {
    try scanner.beginObject()
    while let key = try scanner.nextKey() {
      switch Self.field(key, in: bytes) {
      case .tokens?:
        try readTokens(&scanner)
      case let field?:
        self[field] = FieldValue(try scanner.value())
      case nil:
        let value = FieldValue(try scanner.value())
        let isTrace = JSONText.matches(key, TraceContext.name, in: bytes) && !key.hasEscapes
        if !isTrace || !noteTrace(key.range, value, in: bytes) { noteUnknown(key.range) }
      }
    }
  }

  /// Reads the value of `tokens`; items beyond the contract's number are checked and counted only.
  private mutating func readTokens(_ scanner: inout JSONScanner) throws(JSONError) {
    tokenItems.removeAll(keepingCapacity: true)
    tokenCount = 0
    guard try scanner.peekKind() == .array else {
      self[.tokens] = FieldValue(try scanner.value())
      return
    }
    self[.tokens] = FieldValue(kind: .array)
    try scanner.beginArray()
    while try scanner.hasNextElement() {
      let item = FieldValue(try scanner.value())
      if tokenCount < RequestLimits.tokens { tokenItems.append(item) }
      tokenCount += 1
    }
  }

  /// The field that a key names; keys may have escapes like any string.
  private static func field(_ key: JSONString, in bytes: Span<UInt8>) -> RequestField? {
    if key.hasEscapes {
      return RequestField.allCases.first { JSONText.matches(key, $0.key, in: bytes) }
    }
    let candidate: RequestField
    switch key.range.count {
    case 2: candidate = .id
    case 3: candidate = .app
    case 5: candidate = bytes[Int(key.range.start) + 2] == 0x6b ? .token : .topic
    case 6: candidate = .tokens
    case 7: candidate = bytes[Int(key.range.start)] == 0x70 ? .payload : .channel
    case 8: candidate = .priority
    case 9: candidate = .pushType
    case 10: candidate = .expiration
    case 11: candidate = .collapseID
    default: return nil
    }
    return bytes.extracting(key.range.indices).spells(static: candidate.keyText) ? candidate : nil
  }

  // MARK: The header form

  /// Reads the fields that are record headers. Names are compared without regard to case, as in HTTP; of duplicate
  /// headers the last one counts; a null value means the same as no header.
  ///
  /// - Returns: What the headers say of the value.
  mutating func readHeaders(_ headers: borrowing [RecordBody.Header], of bytes: Span<UInt8>) -> ContentHeaders {
    var content = ContentHeaders()
    if headers.isEmpty { return content }
    for index in headers.indices {
      let header = headers[index]
      if Self.matches(header.name, "content-type", in: bytes) {
        content.type = header.value
      } else if let field = Self.field(header.name, in: bytes) {
        self[field] = Self.headerValue(header.value, of: field, in: bytes)
      } else if header.name.count > 5,
        Self.matches(ByteRange(start: header.name.start, end: header.name.start + 5), "apns-", in: bytes)
      {
        noteUnknown(header.name)
      } else if ContentHeaders.isEventAttribute(header.name, in: bytes) {
        var event = content.event ?? EventAttributes(isBinary: true)
        event.note(header, in: bytes)
        content.event = event
      }
    }
    return content
  }

  /// Whether a header of that name belongs to the request: a field of the header form, or what the value is.
  static func isField(_ name: ByteRange, in bytes: Span<UInt8>) -> Bool {
    field(name, in: bytes) != nil || ContentHeaders.isContent(name, in: bytes)
  }

  /// Reads the payload of the header form, which is the whole value, white space around it included.
  mutating func readPayload(_ value: ByteRange, of bytes: Span<UInt8>) throws(Violation) {
    guard !value.isEmpty else { throw Violation(.missingField, "payload: is required; the value is empty") }
    do {
      let document = try JSONScanner.document(
        bytes.extracting(value.indices), base: Int(value.start), maxDepth: Self.deepestPayload)
      self[.payload] = FieldValue(document)
      if case .object = document { self[.payload].range = value }
    } catch {
      throw Violation(.malformedJSON, "payload: is not JSON, \(error)")
    }
  }

  private static func headerValue(_ value: ByteRange?, of field: RequestField, in bytes: Span<UInt8>) -> FieldValue {
    guard let value else { return .null }
    switch field {
    case .priority, .expiration: return FieldValue(kind: .number, range: value)
    default: return FieldValue(text: value, in: bytes)
    }
  }

  private static func field(_ name: ByteRange, in bytes: Span<UInt8>) -> RequestField? {
    let candidate: RequestField
    switch name.count {
    case 2: candidate = .id
    case 3: candidate = .app
    case 5: candidate = .token
    case 10: candidate = .topic
    case 13: candidate = .priority
    case 14: candidate = .pushType
    case 15: candidate = ASCII.lowercased(bytes[Int(name.start) + 5]) == 0x65 ? .expiration : .channel
    case 16: candidate = .collapseID
    default: return nil
    }
    return matches(name, candidate.header, in: bytes) ? candidate : nil
  }

  /// Whether `range` spells `text`, which is in lower case, in any case.
  static func matches(_ range: ByteRange, _ text: String, in bytes: Span<UInt8>) -> Bool {
    guard range.count == text.utf8.count else { return false }
    var at = Int(range.start)
    for byte in text.utf8 {
      guard ASCII.lowercased(bytes[at]) == byte else { return false }
      at += 1
    }
    return true
  }
}

/// The few classes of ASCII bytes that the contract speaks of.
enum ASCII {
  static func lowercased(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }
  static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
  static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7f }
}
