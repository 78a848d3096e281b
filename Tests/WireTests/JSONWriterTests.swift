import Foundation
import TestSupport
import Testing
import Wire

@Suite struct JSONWriterTests {
  private func text(_ writer: JSONWriter) -> String { String(decoding: writer.bytes, as: UTF8.self) }

  @Test func commasComeByThemselves() {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("a")
    writer.integer(1)
    writer.key("b")
    writer.beginArray()
    writer.beginObject()
    writer.endObject()
    writer.beginArray()
    writer.endArray()
    writer.string("x")
    writer.bool(true)
    writer.bool(false)
    writer.null()
    writer.raw("{\"r\":[1,2]}".utf8.span)
    writer.endArray()
    writer.key("c")
    writer.beginObject()
    writer.key("d")
    writer.integer(UInt64.max)
    writer.key("e")
    writer.integer(Int64.min)
    writer.endObject()
    writer.key("u")
    writer.string(UUID(high: 0x0123_4567_89ab_cdef, low: 0xfedc_ba98_7654_3210))
    writer.endObject()
    #expect(
      text(writer) == """
        {"a":1,"b":[{},[],"x",true,false,null,{"r":[1,2]}],"c":{"d":18446744073709551615,"e":-9223372036854775808},\
        "u":"01234567-89ab-cdef-fedc-ba9876543210"}
        """)
    #expect(throws: Never.self) { try read(writer.bytes).get() }
  }

  @Test func oneBufferHoldsSeveralDocuments() {
    var writer = JSONWriter(appendingTo: Array("x".utf8))
    #expect(writer.beginDocument() == 1)
    writer.integer(1)
    #expect(writer.beginDocument() == 2)
    writer.beginArray()
    writer.endArray()
    #expect(text(writer) == "x1[]")
    #expect(writer.take() == Array("x1[]".utf8))
    writer.string("a")
    #expect(text(writer) == "\"a\"")
    writer.reset()
    writer.null()
    #expect(text(writer) == "null")
  }

  @Test(arguments: [
    ("", ""), ("plain", "plain"), ("\"", #"\""#), ("\\", #"\\"#), ("a\"b\\c", #"a\"b\\c"#), ("/", "/"),
    ("\u{8}\t\n\u{c}\r", #"\b\t\n\f\r"#), ("\u{0}\u{1}\u{1f}\u{7f}", "\\u0000\\u0001\\u001f\u{7f}"),
    ("é€😀\u{10ffff}", "é€😀\u{10ffff}"), ("\u{2028}", "\u{2028}"), ("é\né", #"é\né"#), ("\n", #"\n"#),
  ])
  func stringsAreEscaped(plain: String, expected: String) {
    var writer = JSONWriter()
    writer.string(plain)
    #expect(text(writer) == "\"\(expected)\"")
  }

  @Test func invalidUTF8IsReplacedAsTheStandardLibraryReplacesIt() {
    var random = SeededRandom(seed: 3)
    let interesting: [UInt8] = [
      0x22, 0x5c, 0x0a, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xee, 0xef,
      0xf0, 0xf1, 0xf4, 0xf5, 0xff,
    ]
    for _ in 0..<3000 {
      let bytes = (0..<random.uniform(below: 9)).map { _ in interesting[random.uniform(below: interesting.count)] }
      var writer = JSONWriter()
      writer.string(bytes.span)
      var plain: [UInt8] = []
      guard case .success(.string(let string)) = read(writer.bytes),
        (try? JSONText.unescape(string, in: writer.bytes.span, into: &plain)) != nil
      else {
        Issue.record("\(bytes) is written as \(writer.bytes)")
        return
      }
      #expect(plain == Array(String(decoding: bytes, as: UTF8.self).utf8), "\(bytes)")
    }
  }

  @Test func noPlaceInALongStringIsOverlooked() {
    for length in 0..<40 {
      let plain = String(repeating: "a", count: length)
      for (special, expected) in [("\"", #"\""#), ("\\", #"\\"#), ("\u{1f}", #"\u001f"#), ("é", "é")] {
        var writer = JSONWriter()
        writer.string(plain + special + plain)
        #expect(text(writer) == "\"\(plain)\(expected)\(plain)\"")
      }
    }
  }

  @Test func allScalarsSurviveARoundTrip() throws {
    var plain: [UInt8] = []
    for value in Array(0..<0x900) + Array(stride(from: 0x900, to: 0x110000, by: 97)) + [0xd7ff, 0xe000, 0x10ffff] {
      if let scalar = Unicode.Scalar(UInt32(value)) { plain.append(scalar: scalar) }
    }
    var writer = JSONWriter()
    writer.string(plain.span)
    guard case .string(let string) = try read(writer.bytes).get() else {
      Issue.record("not a string")
      return
    }
    var output: [UInt8] = []
    try JSONText.unescape(string, in: writer.bytes.span, into: &output)
    #expect(output == plain)
  }

  @Test func treesSurviveARoundTripAndFoundationReadsThemToo() throws {
    var documents = JSONDocuments(seed: 11)
    var writer = JSONWriter()
    for _ in 0..<500 {
      let tree = try JSONTree(reading: documents.document())
      writer.reset()
      write(tree, to: &writer)
      let bytes = writer.bytes
      #expect(try JSONTree(reading: bytes) == tree)
      #expect(try JSONDecoder().decode(JSONTree.self, from: Data(bytes)) == tree)
    }
  }

  private func write(_ tree: JSONTree, to writer: inout JSONWriter) {
    switch tree {
    case .object(let fields):
      writer.beginObject()
      for (name, value) in fields {
        writer.key(name)
        write(value, to: &writer)
      }
      writer.endObject()
    case .array(let elements):
      writer.beginArray()
      for element in elements { write(element, to: &writer) }
      writer.endArray()
    case .string(let text): writer.string(text)
    case .number(let number):
      if let integer = Int64(exactly: number) {
        writer.integer(integer)
      } else {
        writer.raw("\(number)".utf8.span)
      }
    case .boolean(let boolean): writer.bool(boolean)
    case .null: writer.null()
    }
  }

  @Test func numbersAreWrittenInDecimal() {
    let powers = (0..<19).flatMap { power in
      let ten = (0..<power).reduce(Int64(1)) { result, _ in result * 10 }
      return [ten - 1, ten, ten + 1, -ten]
    }
    for number in powers + [.max, .min, 0, -1, 255, 65536] {
      var bytes: [UInt8] = []
      bytes.append(decimal: number)
      #expect(bytes == Array(String(number).utf8))
    }
    var bytes: [UInt8] = []
    bytes.append(decimal: UInt64.max)
    bytes.append(decimal: 7 as Int)
    #expect(bytes == Array("184467440737095516157".utf8))
  }
}
