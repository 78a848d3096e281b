import Testing
import Wire

/// What the scanner hands out, and what can be read from it.
@Suite struct JSONReadingTests {
  @Test func anObjectIsPulledKeyByKey() throws {
    let text = Array(#" { "id" : "a\n" , "n":[1, 2.5,{"x":[]}], "t":true,"f":false , "z":null,"o":{"a":{}} } "#.utf8)
    var scanner = JSONScanner(text.span)
    var seen: [String] = []
    try scanner.beginObject()
    while let key = try scanner.nextKey() {
      let name = String(decoding: text[key.range.indices], as: UTF8.self)
      let kind = try scanner.peekKind()
      let value = try scanner.value()
      #expect(value.kind == kind)
      seen.append("\(name): \(show(value, text))")
    }
    try scanner.endDocument()
    #expect(scanner.offset == text.count)
    #expect(
      seen == [
        #"id: string a\n escaped"#, #"n: array [1, 2.5,{"x":[]}]"#, "t: true", "f: false", "z: null",
        #"o: object {"a":{}}"#,
      ])
  }

  private func show(_ value: JSONValue, _ text: [UInt8]) -> String {
    func slice(_ range: ByteRange) -> String { String(decoding: text[range.indices], as: UTF8.self) }
    switch value {
    case .string(let string): return "string \(slice(string.range))\(string.hasEscapes ? " escaped" : "")"
    case .number(let range, let isInteger): return "\(isInteger ? "integer" : "number") \(slice(range))"
    case .object(let range): return "object \(slice(range))"
    case .array(let range): return "array \(slice(range))"
    case .true: return "true"
    case .false: return "false"
    case .null: return "null"
    }
  }

  @Test func anArrayIsPulledElementByElement() throws {
    let text = Array(#"[10, -0.5, 1e3, [ ], "a", [7]]"#.utf8)
    var scanner = JSONScanner(text.span)
    var seen: [String] = []
    try scanner.beginArray()
    while try scanner.hasNextElement() { seen.append(show(try scanner.value(), text)) }
    try scanner.endDocument()
    #expect(seen == ["integer 10", "number -0.5", "number 1e3", "array [ ]", "string a", "array [7]"])
  }

  @Test func rangesCountFromTheBase() throws {
    let storage = Array(#"key{"k\u0065y":[1,"x"],"n":12}"#.utf8)
    var scanner = JSONScanner(storage.span.extracting(3..<storage.count), base: 3)
    try scanner.beginObject()
    let first = try #require(try scanner.nextKey())
    #expect(Array(storage[first.range.indices]) == Array(#"k\u0065y"#.utf8))
    let matchesKey = scanner.matches(first, "key")
    let matchesOther = scanner.matches(first, "kez")
    #expect(matchesKey && !matchesOther)
    #expect(JSONText.matches(first, "key", in: storage.span) == true)
    guard case .array(let range) = try scanner.value() else {
      Issue.record("not an array")
      return
    }
    #expect(Array(storage[range.indices]) == Array(#"[1,"x"]"#.utf8))
    let second = try #require(try scanner.nextKey())
    let matchesSecond = scanner.matches(second, "n")
    #expect(matchesSecond)
    guard case .number(let number, true) = try scanner.value() else {
      Issue.record("not an integer")
      return
    }
    #expect(JSONText.int64(of: number, in: storage.span) == 12)
  }

  @Test func errorsCountFromTheStartOfTheText() {
    let storage = Array("xxxx[1,]".utf8)
    #expect(throws: JSONError(.unexpectedByte(0x5d), at: 3)) {
      _ = try JSONScanner.document(storage.span.extracting(4..<8), base: 4)
    }
  }

  @Test func callsThatDoNotFitTheTextThrow() {
    func fails(_ text: String, _ body: (inout JSONScanner) throws(JSONError) -> Void) -> Bool {
      let bytes = Array(text.utf8)
      var scanner = JSONScanner(bytes.span)
      do {
        try body(&scanner)
        return false
      } catch {
        return true
      }
    }
    #expect(fails("[]") { (scanner) throws(JSONError) in try scanner.beginObject() })
    #expect(fails("{}") { (scanner) throws(JSONError) in try scanner.beginArray() })
    #expect(fails("1") { (scanner) throws(JSONError) in try scanner.beginArray() })
    #expect(
      fails("{\"a\":1}") { (scanner) throws(JSONError) in
        try scanner.beginObject()
        _ = try scanner.nextKey()
        _ = try scanner.nextKey()
      })
    #expect(
      fails("[1]") { (scanner) throws(JSONError) in
        try scanner.beginArray()
        try scanner.endDocument()
      })
    #expect(
      fails("[1") { (scanner) throws(JSONError) in
        try scanner.beginArray()
        _ = try scanner.hasNextElement()
        try scanner.value()
        try scanner.endDocument()
      })
    // More ends than beginnings: no trap, whatever is thrown.
    #expect(fails("}}}") { (scanner) throws(JSONError) in while try scanner.nextKey() == nil {} })
  }

  @Test(arguments: [
    (#"token"#, "token", true), (#"token"#, "tokens", false), (#"tokens"#, "token", false), (#"tokem"#, "token", false),
    (#"\u0074oken"#, "token", true), (#"toke\u006E"#, "token", true), (#"toke\u006e"#, "token", true),
    (#"toke\u006f"#, "token", false), (#"tok\u0065"#, "token", false), (#"token\u0000"#, "token", false),
    (#"\u00e9"#, "é", true), (#"\uD83D\ude00"#, "😀", true), ("😀", "😀", true), (#"\uD83D"#, "\u{fffd}", false),
    (#"a\/b"#, "a/b", true), (#"\"\\\b\f\n\r\t"#, "\"\\\u{8}\u{c}\n\r\t", true), ("", "", true), ("a", "", false),
    ("", "a", false), ("Token", "token", false), ("e\u{301}", "é", false),
  ])
  func keysAreComparedByWhatTheySpell(written: String, name: String, expected: Bool) throws {
    let text = Array("{\"\(written)\":0}".utf8)
    var scanner = JSONScanner(text.span)
    try scanner.beginObject()
    let key = try #require(try scanner.nextKey())
    let matches = scanner.matches(key, name)
    #expect(matches == expected)
    #expect(JSONText.matches(key, name, in: text.span) == expected)
  }

  @Test(arguments: [
    ("plain é😀", "plain é😀"), (#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"), (#"\u0000x\u001F"#, "\0x\u{1f}"),
    (#"\u00e9\u20AC\uFFFF"#, "é€\u{ffff}"), (#"\uD83D\uDE00!"#, "😀!"), (#"\uD800\uDC00"#, "\u{10000}"),
    (#"\uDBFF\uDFFF"#, "\u{10ffff}"), (#"\\u0041"#, #"\u0041"#), ("", ""),
  ])
  func stringsAreUnescaped(written: String, expected: String) throws {
    let text = Array("\"\(written)\"".utf8)
    guard case .string(let string) = try read(text).get() else {
      Issue.record("not a string")
      return
    }
    var output = Array("before ".utf8)
    try JSONText.unescape(string, in: text.span, into: &output)
    #expect(output == Array("before \(expected)".utf8))

    var storage = text
    let range = try JSONText.unescape(string, within: &storage)
    #expect(Array(storage[range.indices]) == Array(expected.utf8))
    #expect(storage.starts(with: text))
    #expect((storage.count == text.count) == !string.hasEscapes)
  }

  @Test(arguments: [
    #"\uD800"#, #"\uDC00"#, #"\uDFFF"#, #"\uD800\u0041"#, #"\uD800x"#, #"\uD83D\n"#, #"\uDE00\uD83D"#,
    #"\uD83D\uD83D\uDE00"#, #"a\uDBFF"#, #"\uD800\\uDC00"#,
  ])
  func aSurrogateWithoutItsPartnerPassesButIsNoText(written: String) throws {
    let text = Array("\"\(written)\"".utf8)
    guard case .string(let string) = try read(text).get() else {
      Issue.record("not a string")
      return
    }
    let place = 1 + (written.hasPrefix("a") ? 1 : 0)
    var output: [UInt8] = [1, 2, 3]
    #expect(throws: JSONError(.loneSurrogate, at: place)) {
      try JSONText.unescape(string, in: text.span, into: &output)
    }
    #expect(output == [1, 2, 3])
    var storage = text
    #expect(throws: JSONError(.loneSurrogate, at: place)) { _ = try JSONText.unescape(string, within: &storage) }
    #expect(storage == text)
    #expect(JSONText.matches(string, written, in: text.span) == false)
  }

  @Test(
    arguments: [
      ("0", 0), ("-0", 0), ("10", 10), ("-1", -1), ("9223372036854775807", .max), ("-9223372036854775808", .min),
      ("9223372036854775808", nil), ("-9223372036854775809", nil), ("18446744073709551616", nil),
      ("100000000000000000000000", nil), ("1e1", nil), ("10.0", nil), ("-0.0", nil), ("1E0", nil),
    ] as [(String, Int64?)])
  func integersAreReadExactly(text: String, expected: Int64?) throws {
    guard case .number(let range, _) = try read(text).get() else {
      Issue.record("not a number")
      return
    }
    #expect(JSONText.int64(of: range, in: text.utf8.span) == expected)
  }

  @Test func noIntegerIsReadFromOtherText() {
    for text in ["", "-", "a", "1a", "+1", " 1", "--1"] {
      #expect(JSONText.int64(of: ByteRange(0, text.utf8.count), in: text.utf8.span) == nil)
    }
  }
}
