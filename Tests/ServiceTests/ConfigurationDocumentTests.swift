import Testing

@testable import Service

struct ConfigurationDocumentTests {
  private func read(_ text: String) -> (value: ConfigurationValue?, problems: [ConfigurationProblem]) {
    read(Array(text.utf8))
  }

  private func read(_ bytes: [UInt8]) -> (value: ConfigurationValue?, problems: [ConfigurationProblem]) {
    var context = ReadingContext(source: ConfigurationSource(file: "x", text: bytes))
    let value = ConfigurationDocument.read(bytes, &context)
    return (value, context.problems)
  }

  @Test
  func readsWhatTheGrammarAllows() throws {
    let text = """
      // a comment
      { bare: 'single', "double": "a\\u00e9\\x41\\n", /* between */ $x_1: [1, -2, +3, 0x1F, .5, 5.5, 1e3, ], yes: true,
        no: false, nothing: null, long: 'a\\
      b', pair: "\\ud83d\\ude00", }
      """
    let value = try #require(read(text).value)
    #expect(value.member("bare")?.value.content == .string("single"))
    #expect(value.member("double")?.value.content == .string("aéA\n"))
    let numbers: [ConfigurationValue.Content] = [
      .integer(1), .integer(-2), .integer(3), .integer(31), .number(0.5), .number(5.5), .integer(1000),
    ]
    guard case .list(let items) = value.member("$x_1")?.value.content else {
      Issue.record("no list")
      return
    }
    #expect(items.map(\.content) == numbers)
    #expect(value.member("yes")?.value.content == .bool(true))
    #expect(value.member("no")?.value.content == .bool(false))
    #expect(value.member("nothing")?.value.content == .null)
    #expect(value.member("pair")?.value.content == .string("😀"))
  }

  @Test(arguments: [
    ("", 1, 1, "value is missing"), ("{", 1, 1, "no end"), ("{a: 1", 1, 1, "no end"), ("{a: 1 b: 2}", 1, 7, "comma"),
    ("{a: x}", 1, 5, "quotes"), ("{a 1}", 1, 4, "colon"), ("{a: 'x\n'}", 1, 5, "no end"), ("[1, 2}", 1, 6, "comma"),
    ("{} {}", 1, 4, "follows"), ("{a: 01}", 1, 5, "not a valid value"), ("{a: 0x}", 1, 5, "not a valid value"),
    ("{a: 0x0x1}", 1, 5, "not a valid value"), ("{a: {b: -0X1X}", 1, 9, "not a valid value"),
    ("{a: 1.2.3}", 1, 5, "not a valid value"), ("/* open", 1, 1, "no end"),
    ("{a: \"\\u12\"}", 1, 5, "not a valid text"),
    ("{a: \"\\ud800\"}", 1, 5, "not a valid text"), ("{1: 2}", 1, 2, "not a valid key"),
    ("{a: --1}", 1, 5, "not a valid value"), ("{a: }", 1, 5, "value is missing"), ("{a: x y}", 1, 5, "quotes"),
    ("{\n  a: 'b',\n  c: tru,\n}", 3, 6, "not a valid value"), ("{a: 1, /* b */\n, b: 2}", 2, 1, "key is missing"),
    ("{a: [1, 2,\n 3}", 2, 3, "comma"),
  ])
  func tellsWhereAndWhy(text: String, line: Int, column: Int, word: String) {
    let (value, problems) = read(text)
    #expect(value == nil)
    #expect(problems.count == 1)
    #expect(problems.first?.line == line && problems.first?.column == column, "\(problems)")
    #expect(problems.first?.message.contains(word) == true, "\(problems)")
  }

  /// Of a broken text each value is read by itself: what lies behind it in memory is then what was left by longer ones.
  @Test
  func numbersOfABrokenTextEndWhereTheyEnd() {
    let numbers = (20...60).reversed().map { String(repeating: "2", count: $0) }
    let (value, problems) = read("[" + numbers.joined(separator: ",") + "}")
    #expect(value == nil)
    #expect(problems.map(\.message.isEmpty) == [false])
    #expect(problems.first?.message.contains("comma") == true, "\(problems)")
  }

  @Test
  func everyValueHasItsPlace() throws {
    let text = "\u{FEFF}{\n  // a: 1\n  'b.c': { d: [ 1,\n {'e': '}'} ] },\n  \"f\\u0067\" : /* x */ 'y',\n  é: 3 }"
    let (read, problems) = read(text)
    #expect(problems.isEmpty)
    let source = ConfigurationSource(file: "x", text: Array(text.utf8))
    func place(_ offset: Int?) -> String {
      offset.map { "\(source.position(of: $0).line):\(source.position(of: $0).column)" } ?? "none"
    }
    let root = try #require(read)
    let first = try #require(root.member("b.c"))
    #expect(place(first.keyOffset) == "3:3" && place(first.value.offset) == "3:10")
    let list = try #require(first.value.member("d"))
    guard case .list(let items) = list.value.content else {
      Issue.record("no list")
      return
    }
    #expect(items.map { place($0.offset) } == ["3:17", "4:2"])
    let inner = try #require(items[1].member("e"))
    #expect(place(inner.keyOffset) == "4:3" && place(inner.value.offset) == "4:8")
    let escaped = try #require(root.member("fg"))
    #expect(place(escaped.keyOffset) == "5:3" && place(escaped.value.offset) == "5:23")
    #expect(place(root.member("é")?.keyOffset) == "6:3")
  }

  @Test
  func membersKeepTheOrderOfTheText() throws {
    let names = ["zeta", "b", "mid", "a", "k9", "last", "c"]
    let text = "{ \(names.map { "\($0): { x: 1 }" }.joined(separator: ", ")) }"
    guard case .object(let members)? = read(text).value?.content else {
      Issue.record("no object")
      return
    }
    #expect(members.map(\.key) == names)
  }

  @Test(arguments: [
    ("{\n  a: 1,\n  a: 2 }", "a", 3, 3), ("{ a: { b: 1, c: 2, 'b': 3 } }", "a.b", 1, 20),
    (#"{ ab: 1, "a\u0062": 2 }"#, "ab", 1, 10), ("{ a: [{ b: 1 }, { b: 1, b: 2 }] }", "a[1].b", 1, 25),
  ])
  func aKeyThatStandsTwiceIsNamed(text: String, path: String, line: Int, column: Int) {
    let problems = read(text).problems
    #expect(problems.map(\.path) == [path])
    #expect(problems.first?.message.contains("second time") == true)
    #expect(problems.first?.severity == .error)
    #expect(problems.first?.line == line && problems.first?.column == column, "\(problems)")
  }

  @Test(arguments: [33, 600, 100_000])
  func refusesDeepNesting(depth: Int) {
    let text = String(repeating: "[", count: depth) + "1" + String(repeating: "]", count: depth)
    let (value, problems) = read(text)
    #expect(value == nil)
    #expect(problems.map(\.message) == ["nested too deeply"])
    #expect(read(String(repeating: "[", count: 32) + "1" + String(repeating: "]", count: 32)).value != nil)
  }

  @Test
  func whatIsBrokenIsAlwaysAProblem() {
    let text = Array("{ a: [1, 0x1F, 'b\\u00e9', \"\\ud83d\\ude00\"], /* c */ d: { e: -.5e+3 }, } // f".utf8)
    for length in 0...text.count {
      let (value, problems) = read(Array(text.prefix(length)))
      #expect((value == nil) == !problems.isEmpty)
    }
    for index in text.indices {
      for byte in [0x00, 0x22, 0x27, 0x2B, 0x2D, 0x2E, 0x5C, 0x65, 0x78, 0x7D, 0x80, 0xC2, 0xFF] as [UInt8] {
        var broken = text
        broken[index] = byte
        let (value, problems) = read(broken)
        #expect((value == nil) == !problems.isEmpty, "\(byte) at \(index)")
      }
    }
  }

  private static let noUTF8: [(bytes: [UInt8], column: Int)] = [
    ([0x7B, 0x61, 0x3A, 0x27, 0xFF, 0x27, 0x7D], 5), ([0x7B, 0xC3], 2), ([0x7B, 0x61, 0x80, 0x3A], 3),
    ([0xFF, 0xFE, 0x7B, 0x00, 0x7D, 0x00], 1), ([0x7B, 0x7D, 0x00], 3),
  ]

  @Test(arguments: noUTF8)
  func whatIsNoUTF8IsRefused(bytes: [UInt8], column: Int) {
    let (value, problems) = read(bytes)
    #expect(value == nil)
    #expect(problems.map(\.message) == ["not UTF-8 text"])
    #expect(problems.first?.line == 1 && problems.first?.column == column)
  }

  @Test
  func aBrokenTextIsNotShown() {
    let problems = read("{ password: hunter2, other: 'hunter2 }").problems
    #expect(!problems.isEmpty)
    #expect(!problems.contains { $0.text.contains("hunter2") })
  }
}
