import Wire

/// The scanner against a second reader, and its ways of reading against each other.
enum JSONChecks {
  static func check(_ text: [UInt8]) throws {
    let whole: JSONValue?
    let error: JSONError?
    do {
      whole = try JSONScanner.document(text.span)
      error = nil
    } catch let fault {
      whole = nil
      error = fault
    }
    var strict = StrictJSON(text, deepest: JSONScanner.deepest)
    let isJSON = strict.accepts()
    try hold((whole != nil) == isJSON, "scanner: \(error.map { "\($0)" } ?? "accepted"); strictly read: \(isJSON)")
    if let error {
      try hold((0...text.count).contains(error.offset), "an error at \(error.offset) of \(text.count) bytes")
      try hold(!strict.isTooDeep || error.kind == .tooDeep, "too deep, but: \(error)")
    }
    guard let whole else { return }
    var scanner = JSONScanner(text.span)
    let walked = try walk(&scanner, text)
    try scanner.endDocument()
    try hold(walked == whole.kind, "as a whole \(whole.kind), in steps \(walked)")
  }

  /// Reads the next value in steps.
  private static func walk(_ scanner: inout JSONScanner, _ text: [UInt8]) throws -> JSONKind {
    let kind = try scanner.peekKind()
    switch kind {
    case .object:
      try scanner.beginObject()
      while let key = try scanner.nextKey() {
        try check(key, of: text)
        _ = try walk(&scanner, text)
      }
    case .array:
      try scanner.beginArray()
      while try scanner.hasNextElement() { _ = try walk(&scanner, text) }
    default:
      switch try scanner.value() {
      case .string(let string): try check(string, of: text)
      case .number(let range, let isInteger): try check(number: range, isInteger, of: text)
      default: break
      }
    }
    return kind
  }

  /// A string that is text stays that text when it is written and read again.
  private static func check(_ string: JSONString, of text: [UInt8]) throws {
    var plain: [UInt8] = [0x21]
    do {
      try JSONText.unescape(string, in: text.span, into: &plain)
    } catch {
      try hold(error.kind == .loneSurrogate && plain == [0x21], "unescaping: \(error), \(plain.count - 1) bytes left")
      return
    }
    plain.removeFirst()
    try hold(String(validating: plain, as: UTF8.self) != nil, "unescaped, it is no UTF-8: \(plain)")
    try hold(
      JSONText.matches(string, String(decoding: plain, as: UTF8.self), in: text.span), "it does not match itself")
    var storage = text
    let range = try JSONText.unescape(string, within: &storage)
    try hold(Array(storage[range.indices]) == plain, "unescaped in place it is another text")
    var writer = JSONWriter()
    writer.string(plain.span)
    guard case .string(let again) = try JSONScanner.document(writer.bytes.span) else {
      throw Broken(description: "written, it is no string")
    }
    var second: [UInt8] = []
    try JSONText.unescape(again, in: writer.bytes.span, into: &second)
    try hold(second == plain, "written and read again it is another text")
  }

  private static func check(number range: ByteRange, _ isInteger: Bool, of text: [UInt8]) throws {
    let digits = String(decoding: text[range.indices], as: UTF8.self)
    let value = JSONText.int64(of: range, in: text.span)
    try hold(value == (isInteger ? Int64(digits) : nil), "\(digits) read as \(value.map { "\($0)" } ?? "no integer")")
  }
}
