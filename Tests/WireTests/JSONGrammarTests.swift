import TestSupport
import Testing
import Wire

/// What the grammar of RFC 8259 allows and what it does not, each with the kind and the place of the error.
@Suite struct JSONGrammarTests {
  @Test(arguments: [
    "0", "-0", "10", "1234567890123456789012345678901234567890", "0.0", "-0.5", "1e1", "1E1", "1e+1", "1e-1", "0e0",
    "1.25e-007", "1e999999", "-1e-999999", "true", "false", "null", " null ", "\t\r\n 1 \n",
  ])
  func numbersAndLiteralsAreAccepted(text: String) {
    #expect(throws: Never.self) { try read(text).get() }
    #expect(walkError(Array(text.utf8)) == nil)
  }

  @Test(arguments: [
    "[]", "{}", "[ ]", "{ }", "[[]]", "[{}]", "{\"\":{}}", "[1,2]", "[ 1 , 2 ]", "{\"a\":1,\"a\":2}",
    "{ \"a\" : [ ] , \"b\" : { } }", "[[],[],{},{}]", "[{\"a\":[]},[{\"b\":{}}],0]", "{\"a\":{\"b\":{\"c\":[null]}}}",
    "[\n1\r,\t2 ]", "[true,false,null,\"\",0,[],{}]",
  ])
  func structuresAreAccepted(text: String) {
    #expect(throws: Never.self) { try read(text).get() }
    #expect(walkError(Array(text.utf8)) == nil)
  }

  @Test(arguments: [
    "", "a", "\\\"", "\\\\", "\\/", "/", "\\b\\f\\n\\r\\t", "\\u0000", "\\u001F", "\\uabCD", "\\uD83D\\uDE00", "\u{7f}",
    "\\uD800", "\\uDFFF", "\\uD800\\u0041", "\\uDE00\\uD83D", "é", "€", "\u{fffe}\u{ffff}", "😀", "\u{80}", "\u{7ff}",
    "\u{800}", "\u{d7ff}", "\u{e000}", "\u{10000}", "\u{10ffff}", "\u{feff}", "\u{2028}\u{2029}", "'", "//", "/* */",
    "\\u005C\\u0022", "\\\\u0041", "\\\\\\\"",
  ])
  func stringsAreAccepted(inside: String) throws {
    let value = try read("\"\(inside)\"").get()
    let range = ByteRange(1, 1 + inside.utf8.count)
    #expect(value == .string(JSONString(range: range, hasEscapes: inside.contains("\\"))))
  }

  struct Refusal: Sendable, CustomTestStringConvertible {
    var text: [UInt8]
    var kind: JSONError.Kind
    var offset: Int
    var testDescription: String { String(decoding: text, as: UTF8.self).debugDescription }

    init(_ text: String, _ kind: JSONError.Kind, _ offset: Int) { self.init(Array(text.utf8), kind, offset) }

    init(_ text: [UInt8], _ kind: JSONError.Kind, _ offset: Int) {
      (self.text, self.kind, self.offset) = (text, kind, offset)
    }

    /// The byte at `offset` is the one that cannot stand there.
    init(unexpected text: String, _ offset: Int) {
      self.init(text, .unexpectedByte(Array(text.utf8)[offset]), offset)
    }
  }

  static let structures = [
    Refusal("", .unexpectedEnd, 0), Refusal(" \n", .unexpectedEnd, 2), Refusal("[", .unexpectedEnd, 1),
    Refusal("{", .unexpectedEnd, 1), Refusal("[1", .unexpectedEnd, 2), Refusal("{\"a\":1", .unexpectedEnd, 6),
    Refusal(unexpected: "[1,]", 3), Refusal(unexpected: "[,1]", 1), Refusal(unexpected: "[1,,2]", 3),
    Refusal(unexpected: "[,]", 1), Refusal(unexpected: "{,}", 1), Refusal(unexpected: "{\"a\":1,}", 7),
    Refusal(unexpected: "{\"a\"}", 4), Refusal(unexpected: "{\"a\":}", 5), Refusal(unexpected: "{:1}", 1),
    Refusal(unexpected: "{\"a\",1}", 4), Refusal(unexpected: "{a:1}", 1), Refusal(unexpected: "{'a':1}", 1),
    Refusal(unexpected: "{1:1}", 1), Refusal(unexpected: "{null:1}", 1), Refusal(unexpected: "{[]:1}", 1),
    Refusal(unexpected: "[1 2]", 3), Refusal(unexpected: "[\"a\" \"b\"]", 5), Refusal(unexpected: "[\"a\":1]", 4),
    Refusal(unexpected: "{\"a\":1 \"b\":2}", 7), Refusal(unexpected: "{\"a\"::1}", 5), Refusal(unexpected: "[1}", 2),
    Refusal(unexpected: "{\"a\":1]", 6), Refusal(unexpected: "{\"a\":[1}", 7), Refusal(unexpected: "[{\"a\":1]", 7),
    Refusal(unexpected: "[[1]}", 4), Refusal(unexpected: "[}", 1), Refusal(unexpected: "{]", 1),
    Refusal(unexpected: "]", 0), Refusal(unexpected: "}", 0), Refusal(unexpected: ",", 0), Refusal(unexpected: ":", 0),
    Refusal("[1]]", .trailingBytes, 3), Refusal("{}}", .trailingBytes, 2), Refusal("1 2", .trailingBytes, 2),
    Refusal("[][]", .trailingBytes, 2), Refusal("{},", .trailingBytes, 2), Refusal("\"a\"b", .trailingBytes, 3),
    Refusal("[]// end", .trailingBytes, 2), Refusal("1#", .trailingBytes, 1), Refusal("1\u{0}", .trailingBytes, 1),
    Refusal(unexpected: "/* */1", 0), Refusal(unexpected: "[1/**/]", 2), Refusal(unexpected: "\u{feff}1", 0),
    Refusal(unexpected: "\u{a0}1", 0), Refusal(unexpected: "[\u{c}1]", 1), Refusal(unexpected: "[\u{2060}1]", 1),
    Refusal([0xff, 0xfe, 0x31, 0x00], .unexpectedByte(0xff), 0), Refusal([0x00, 0x31], .unexpectedByte(0), 0),
    Refusal([0x31, 0x00], .trailingBytes, 1),
  ]

  static let literalsAndNumbers = [
    Refusal("nul", .unexpectedEnd, 3), Refusal("t", .unexpectedEnd, 1), Refusal("fals", .unexpectedEnd, 4),
    Refusal(unexpected: "nulL", 3), Refusal(unexpected: "True", 0), Refusal(unexpected: "FALSE", 0),
    Refusal(unexpected: "[tru]", 4), Refusal("truex", .trailingBytes, 4), Refusal("true1", .trailingBytes, 4),
    Refusal(unexpected: "undefined", 0), Refusal(unexpected: "nan", 1), Refusal(unexpected: "NaN", 0),
    Refusal(unexpected: "Infinity", 0), Refusal("-Infinity", .badNumber, 1), Refusal("-NaN", .badNumber, 1),
    Refusal("-", .unexpectedEnd, 1), Refusal("1.", .unexpectedEnd, 2), Refusal("1e", .unexpectedEnd, 2),
    Refusal("1e+", .unexpectedEnd, 3), Refusal("0E-", .unexpectedEnd, 3), Refusal("01", .badNumber, 1),
    Refusal("-01", .badNumber, 2), Refusal("00", .badNumber, 1), Refusal("-00.1", .badNumber, 2),
    Refusal("[012]", .badNumber, 2), Refusal(unexpected: "+1", 0), Refusal(unexpected: ".5", 0),
    Refusal("-.5", .badNumber, 1), Refusal("- 1", .badNumber, 1), Refusal("--1", .badNumber, 1),
    Refusal("1.e1", .badNumber, 2), Refusal("[1.]", .badNumber, 3), Refusal("[1e]", .badNumber, 3),
    Refusal("1e+x", .badNumber, 3), Refusal("1e+-1", .badNumber, 3), Refusal("[-]", .badNumber, 2),
    Refusal("1.5.2", .trailingBytes, 3), Refusal("1e1.5", .trailingBytes, 3), Refusal("1e1e1", .trailingBytes, 3),
    Refusal("0x10", .trailingBytes, 1), Refusal("1_000", .trailingBytes, 1), Refusal("1f", .trailingBytes, 1),
    Refusal(unexpected: "[1a]", 2), Refusal(unexpected: "[1 000]", 3), Refusal(unexpected: "\u{ff11}", 0),
    Refusal(unexpected: "[1-2]", 2), Refusal(unexpected: "[1+2]", 2),
  ]

  static let strings = [
    Refusal("\"", .unexpectedEnd, 1), Refusal("\"a", .unexpectedEnd, 2), Refusal("\"\\", .unexpectedEnd, 2),
    Refusal("\"\\\"", .unexpectedEnd, 3), Refusal("\"\\u", .unexpectedEnd, 3), Refusal("\"\\u00", .unexpectedEnd, 5),
    Refusal("\"\\u0041", .unexpectedEnd, 7), Refusal("\"\\u00\"", .badEscape, 1), Refusal("\"\\x41\"", .badEscape, 1),
    Refusal("\"a\\a\"", .badEscape, 2), Refusal("\"\\'\"", .badEscape, 1), Refusal("\"\\0\"", .badEscape, 1),
    Refusal("\"\\u00g0\"", .badEscape, 1), Refusal("\"\\U0041\"", .badEscape, 1), Refusal("\"\\u{41}\"", .badEscape, 1),
    Refusal("\"\\u+041\"", .badEscape, 1), Refusal("\"\\\n\"", .badEscape, 1), Refusal("\"\\é\"", .badEscape, 1),
    Refusal("\"\\uD800\\u00g\"", .badEscape, 7), Refusal("\"\\uD800\\x\"", .badEscape, 7),
    Refusal("\"\n\"", .controlCharacter(0x0a), 1), Refusal("\"a\t\"", .controlCharacter(0x09), 2),
    Refusal("\"\u{0}\"", .controlCharacter(0), 1), Refusal("\"\u{1f}\"", .controlCharacter(0x1f), 1),
    Refusal("{\"a\u{1}\":1}", .controlCharacter(1), 3), Refusal(unexpected: "'a'", 0), Refusal(unexpected: "`a`", 0),
    Refusal(unexpected: "\u{201c}a\u{201d}", 0), Refusal("{\"\\q\":1}", .badEscape, 2),
  ]

  @Test(arguments: structures + literalsAndNumbers + strings)
  func whatBreaksTheGrammarIsRefused(refusal: Refusal) {
    let error = JSONError(refusal.kind, at: refusal.offset)
    #expect(read(refusal.text) == .failure(error))
    #expect(walkError(refusal.text) == error)
  }

  @Test func controlCharactersAreRefusedInStringsAndOtherwiseOnlyWhiteSpaceStands() {
    for byte in UInt8(0)..<0x20 {
      #expect(read([0x22, byte, 0x22]) == .failure(JSONError(.controlCharacter(byte), at: 1)))
      let isSpace = [0x09, 0x0a, 0x0d].contains(byte)
      #expect((walkError([byte, 0x5b, byte, 0x5d, byte]) == nil) == isSpace)
    }
  }

  @Test(
    arguments: [
      [0xc0, 0x80], [0xc1, 0xbf], [0xe0, 0x80, 0x80], [0xe0, 0x9f, 0xbf], [0xed, 0xa0, 0x80], [0xed, 0xbf, 0xbf],
      [0xf0, 0x80, 0x80, 0x80], [0xf0, 0x8f, 0xbf, 0xbf], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80],
      [0xf8, 0x88, 0x80, 0x80, 0x80], [0xfe], [0xff], [0x80], [0xbf], [0xc2, 0x20], [0xc3, 0x28], [0xe1, 0x80, 0x20],
      [0xe2, 0x82], [0xf1, 0x80, 0x80, 0x20], [0xf0, 0x9f, 0x98], [0xe9],
    ] as [[UInt8]])
  func invalidUTF8IsRefused(sequence: [UInt8]) {
    let error = JSONError(.badUTF8, at: 1)
    #expect(read([0x22] + sequence + [0x22]) == .failure(error))
    #expect(walkError([0x22] + sequence + [0x22]) == error)
  }

  @Test func utf8IsJudgedAsTheStandardLibraryJudgesIt() {
    let seconds: [UInt8] = [0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff]
    let thirds: [UInt8] = [0x7f, 0x80, 0xbf, 0xc0]
    var wrong: [[UInt8]] = []
    for first in UInt8(0x80)...0xff {
      for second in seconds {
        for third in thirds {
          for bytes in [
            [first, second], [first, second, third], [first, second, third, 0x80], [first, third, 0x7f],
          ] {
            let expected = String(validating: bytes, as: UTF8.self) != nil
            if UTF8Text.isValid(bytes.span) != expected { wrong.append(bytes) }
          }
        }
      }
    }
    #expect(wrong == [])
  }

  /// Strings are looked at in blocks; what ends or breaks one must be seen at every place of a block.
  @Test func noPlaceInALongStringIsOverlooked() {
    for length in 0..<70 {
      let plain = [UInt8](repeating: 0x61, count: length)
      let end = 1 + length
      let after = plain + [0x22]
      func string(_ range: ByteRange, _ hasEscapes: Bool) -> Result<JSONValue, JSONError> {
        .success(.string(JSONString(range: range, hasEscapes: hasEscapes)))
      }
      #expect(read([0x22] + after) == string(ByteRange(1, end), false))
      #expect(read([0x22] + after + after) == .failure(JSONError(.trailingBytes, at: end + 1)))
      #expect(read([0x22] + plain + [0x5c, 0x22] + after) == string(ByteRange(1, end + 2 + length), true))
      #expect(read([0x22] + plain + [0xc3, 0xa9] + after) == string(ByteRange(1, end + 2 + length), false))
      #expect(read([0x22] + plain + [0x5c] + [0x78] + after) == .failure(JSONError(.badEscape, at: end)))
      #expect(read([0x22] + plain + [0x1f] + after) == .failure(JSONError(.controlCharacter(0x1f), at: end)))
      #expect(read([0x22] + plain + [0xc3] + after) == .failure(JSONError(.badUTF8, at: end)))
      #expect(read([0x22] + plain) == .failure(JSONError(.unexpectedEnd, at: end)))
    }
  }

  @Test func depthIsBoundedWithoutRecursion() {
    func nested(_ depth: Int) -> [UInt8] {
      Array((String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
    }
    #expect(read(nested(64)) == .success(.array(ByteRange(0, 128))))
    #expect(read(nested(65)) == .failure(JSONError(.tooDeep, at: 64)))
    #expect(walkError(nested(64)) == nil)
    #expect(walkError(nested(65)) == JSONError(.tooDeep, at: 64))
    #expect(read(nested(1000), maxDepth: 1000) == .failure(JSONError(.tooDeep, at: 64)))
    #expect(read(nested(3), maxDepth: 3) == .success(.array(ByteRange(0, 6))))
    #expect(read(nested(3), maxDepth: 2) == .failure(JSONError(.tooDeep, at: 2)))
    #expect(read(Array("[]".utf8), maxDepth: 0) == .failure(JSONError(.tooDeep, at: 0)))
    #expect(read([UInt8](repeating: 0x5b, count: 100_000)) == .failure(JSONError(.tooDeep, at: 64)))
    let objects = Array(String(repeating: "{\"a\":", count: 65).utf8)
    #expect(read(objects) == .failure(JSONError(.tooDeep, at: 320)))
    let siblings = Array(("[" + String(repeating: "[[]],", count: 200) + "0]").utf8)
    #expect(walkError(siblings) == nil)
    #expect(throws: Never.self) { try read(siblings, maxDepth: 3).get() }
  }

  @Test(arguments: [
    "{\"id\":\"5f0c\",\"app\":\"shop\",\"n\":-12.5e+3,\"payload\":{\"aps\":{\"alert\":\"a\\u20ac\\n😀é\"},\"l\":[1,[true]]}}",
    " [ \"\\uD83D\\uDE00\" , null , false , { \"k\" : [ ] , \"\" : { } } , 0 , -1 , 1.5 ]",
    "\"é\\\\\u{10ffff}\\u0000\"", "[[[[[[[[[[{\"a\":[{}]}]]]]]]]]]]",
  ])
  func everyProperPrefixEndsTooEarly(text: String) {
    let bytes = Array(text.utf8)
    #expect(walkError(bytes) == nil)
    for length in 0..<bytes.count {
      let error = JSONError(.unexpectedEnd, at: length)
      #expect(read(Array(bytes[..<length])) == .failure(error))
      #expect(walkError(Array(bytes[..<length])) == error)
    }
  }

  @Test func wholeValuesAndTokensAreJudgedAlike() {
    var documents = JSONDocuments(seed: 7)
    for _ in 0..<1500 {
      let text = documents.mutated(documents.document())
      let whole: JSONError? = if case .failure(let error) = read(text) { error } else { nil }
      #expect(whole == walkError(text), "\(String(decoding: text, as: UTF8.self))")
    }
  }

  @Test func errorsTellPeopleWhatAndWhere() {
    #expect(JSONError(.unexpectedByte(0x7d), at: 12).description == "unexpected '}' at byte 12")
    #expect(JSONError(.unexpectedByte(0x0a), at: 0).description == "unexpected 0x0a at byte 0")
    #expect(JSONError(.unexpectedEnd, at: 3).description == "the text ends too early at byte 3")
  }
}
