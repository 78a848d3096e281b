import Wire

/// Reads a whole text in one step.
func read(_ text: [UInt8], maxDepth: Int = JSONScanner.deepest) -> Result<JSONValue, JSONError> {
  do {
    return .success(try JSONScanner.document(text.span, maxDepth: maxDepth))
  } catch {
    return .failure(error)
  }
}

func read(_ text: String) -> Result<JSONValue, JSONError> {
  read(Array(text.utf8))
}

/// Reads a whole text token by token, with the calls for containers; `nil` if it is good.
func walkError(_ text: [UInt8]) -> JSONError? {
  do {
    var scanner = JSONScanner(text.span)
    try walk(&scanner)
    try scanner.endDocument()
    return nil
  } catch {
    return error
  }
}

private func walk(_ scanner: inout JSONScanner) throws(JSONError) {
  switch try scanner.peekKind() {
  case .object:
    try scanner.beginObject()
    while try scanner.nextKey() != nil { try walk(&scanner) }
  case .array:
    try scanner.beginArray()
    while try scanner.hasNextElement() { try walk(&scanner) }
  case .string, .number, .boolean, .null:
    try scanner.value()
  }
}

/// What a document means, so that two readers of it can be compared.
indirect enum JSONTree: Equatable {
  case object([String: JSONTree])
  case array([JSONTree])
  case string(String)
  case number(Double)
  case boolean(Bool)
  case null

  /// Throws `loneSurrogate` too, for a string that is no text.
  init(reading text: [UInt8]) throws(JSONError) {
    var scanner = JSONScanner(text.span)
    self = try Self.next(&scanner, text)
    try scanner.endDocument()
  }

  private static func next(_ scanner: inout JSONScanner, _ text: [UInt8]) throws(JSONError) -> JSONTree {
    switch try scanner.peekKind() {
    case .object:
      var fields: [String: JSONTree] = [:]
      try scanner.beginObject()
      while let key = try scanner.nextKey() {
        let name = try plain(key, text)
        fields[name] = try next(&scanner, text)
      }
      return .object(fields)
    case .array:
      var elements: [JSONTree] = []
      try scanner.beginArray()
      while try scanner.hasNextElement() { elements.append(try next(&scanner, text)) }
      return .array(elements)
    case .string, .number, .boolean, .null:
      return try leaf(try scanner.value(), text)
    }
  }

  private static func leaf(_ value: JSONValue, _ text: [UInt8]) throws(JSONError) -> JSONTree {
    switch value {
    case .string(let string): .string(try plain(string, text))
    case .number(let range, _): .number(Double(String(decoding: text[range.indices], as: UTF8.self)) ?? .nan)
    case .true: .boolean(true)
    case .false: .boolean(false)
    case .object, .array, .null: .null
    }
  }

  private static func plain(_ string: JSONString, _ text: [UInt8]) throws(JSONError) -> String {
    var bytes: [UInt8] = []
    try JSONText.unescape(string, in: text.span, into: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }
}
