import Testing

@testable import Service

struct JSON5ParserTests {
  @Test
  func readsWhatTheGrammarAllows() throws {
    let text = """
      // a comment
      { bare: 'single', "double": "a\\u00e9\\x41\\n", /* between */ $x_1: [1, -2, +3, 0x1F, .5, 5., 1e3, ], yes: true,
        no: false, nothing: null, long: 'a\\
      b', pair: "\\ud83d\\ude00", }
      """
    let value = try JSON5Parser.parse(Array(text.utf8))
    #expect(value.member("bare")?.value.content == .string("single"))
    #expect(value.member("double")?.value.content == .string("aéA\n"))
    let numbers: [ConfigurationValue.Content] = [
      .integer(1), .integer(-2), .integer(3), .integer(31), .number(0.5), .number(5), .number(1000),
    ]
    guard case .list(let items) = value.member("$x_1")?.value.content else {
      Issue.record("no list")
      return
    }
    #expect(items.map(\.content) == numbers)
    #expect(value.member("yes")?.value.content == .bool(true))
    #expect(value.member("no")?.value.content == .bool(false))
    #expect(value.member("nothing")?.value.content == .null)
    #expect(value.member("long")?.value.content == .string("ab"))
    #expect(value.member("pair")?.value.content == .string("😀"))
  }

  @Test(arguments: [
    ("", 1, 1, "value is missing"), ("{", 1, 1, "no end"), ("{a: 1", 1, 1, "no end"), ("{a: 1 b: 2}", 1, 7, "comma"),
    ("{\n  a: 1,\n  a: 2 }", 3, 3, "second time"), ("{a: x}", 1, 5, "quotes"), ("{a 1}", 1, 4, "colon"),
    ("{a: 'x\n'}", 1, 5, "its line"), ("[1, 2}", 1, 6, "comma"), ("{} {}", 1, 4, "follow"),
    ("{a: 01}", 1, 5, "no number"),
    ("{a: 0x}", 1, 5, "no number"), ("{a: 1.2.3}", 1, 5, "no number"), ("/* open", 1, 1, "no end"),
    ("{a: \"\\u12\"}", 1, 6, "hexadecimal"), ("{a: \"\\ud800\"}", 1, 6, "surrogate"),
    ("{1: 2}", 1, 2, "key is missing"),
    ("{a: --1}", 1, 5, "no number"), ("{a: }", 1, 5, "value is missing"),
  ])
  func tellsWhereAndWhy(text: String, line: Int, column: Int, word: String) {
    let bytes = Array(text.utf8)
    do {
      let value = try JSON5Parser.parse(bytes)
      Issue.record("read as \(value)")
    } catch {
      let position = ConfigurationSource(file: "x", text: bytes).position(of: error.offset)
      #expect(position.line == line && position.column == column, "\(position)")
      #expect(error.message.contains(word), "\(error.message)")
    }
  }

  @Test
  func refusesDeepNesting() {
    let deep = Array(String(repeating: "[", count: 100_000).utf8)
    #expect(throws: JSON5Parser.Failure.self) { try JSON5Parser.parse(deep) }
  }

  @Test
  func neverTrapsOnBrokenInput() {
    let text = Array("{ a: [1, 0x1F, 'b\\u00e9', \"\\ud83d\\ude00\"], /* c */ d: { e: -.5e+3 }, } // f".utf8)
    for length in 0...text.count { _ = try? JSON5Parser.parse(Array(text.prefix(length))) }
    for index in text.indices {
      for byte in [0x00, 0x22, 0x27, 0x2B, 0x2D, 0x2E, 0x5C, 0x65, 0x78, 0x7D, 0x80, 0xC2, 0xFF] as [UInt8] {
        var broken = text
        broken[index] = byte
        _ = try? JSON5Parser.parse(broken)
      }
    }
  }

  @Test(arguments: [
    ("30s", Duration.seconds(30)), ("250ms", .milliseconds(250)), ("5m", .seconds(300)), ("1h", .seconds(3600)),
    ("1.5s", .milliseconds(1500)), ("0s", .zero), ("2d", .seconds(172_800)), ("10us", .microseconds(10)),
  ])
  func readsDurations(text: String, duration: Duration) {
    #expect(Quantity.duration(text) == duration)
    #expect(Quantity.duration(Quantity.text(duration)) == duration)
  }

  @Test(arguments: ["", "30", "s", "-1s", "1e3s", "1.s", ".5s", "1 0s", "30sec", "999999999999d", "1..5s"])
  func refusesWhatIsNoDuration(text: String) { #expect(Quantity.duration(text) == nil) }

  @Test(arguments: [("32MiB", 33_554_432), ("1GB", 1_000_000_000), ("512", 512), ("1.5KiB", 1536), ("7B", 7)])
  func readsSizes(text: String, bytes: Int) { #expect(Quantity.size(text) == bytes) }

  @Test(arguments: ["", "MiB", "-1", "1TiB", "99999999999GiB", "x"])
  func refusesWhatIsNoSize(text: String) { #expect(Quantity.size(text) == nil) }

  @Test(arguments: [
    ("maxInflight", "maxInFlight"), ("brokres", "brokers"), ("bundleID", "bundleId"), ("token", "token"),
  ])
  func findsTheNearestName(typed: String, meant: String) {
    #expect(NearestName.find(typed, in: ["maxInFlight", "maxInFlightPerApp", "brokers", "bundleId", "token"]) == meant)
  }

  @Test
  func offersNoNameThatIsFar() { #expect(NearestName.find("zzzzzz", in: ["brokers", "group", "log"]) == nil) }
}
