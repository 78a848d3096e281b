import Glibc
import Testing

@testable import martlet

struct LineReaderTests {
  /// What a reader makes of a text that comes through a pipe.
  private func lines(_ text: String, longest: Int = 1000, chunkSize: Int = 7) throws -> [String] {
    var ends: [Int32] = [-1, -1]
    try #require(unsafe pipe(&ends) == 0)
    defer { close(ends[0]) }
    let bytes = Array(text.utf8)
    // Small enough for the pipe to take it whole.
    try #require(unsafe write(ends[1], bytes, bytes.count) == bytes.count)
    close(ends[1])
    var reader = LineReader(descriptor: ends[0], name: "x", longest: longest, chunkSize: chunkSize)
    var found: [String] = []
    while true {
      switch try reader.next() {
      case .line(let line, let number): found.append("\(number):\(String(decoding: line, as: UTF8.self))")
      case .tooLong(let number): found.append("\(number) too long")
      case .pause: continue
      case .end:
        #expect(reader.bytes == bytes.count)
        return found
      }
    }
  }

  @Test(
    arguments: [
      ("", []), ("a", ["1:a"]), ("a\n", ["1:a"]), ("a\nb", ["1:a", "2:b"]), ("a\r\n\r\nb\n", ["1:a", "3:b"]),
      ("\n \n\t\nx\n", ["4:x"]), ("0123456789abcdef\nz", ["1:0123456789abcdef", "2:z"]),
    ] as [(String, [String])])
  func linesAreNumberedAndEmptyOnesPassedOver(_ text: String, _ expected: [String]) throws {
    for chunkSize in [1, 2, 7, 100] { #expect(try lines(text, chunkSize: chunkSize) == expected) }
  }

  @Test func aLineThatIsTooLongSpoilsNoOther() throws {
    for chunkSize in [1, 3, 100] {
      #expect(
        try lines("12345\n123456\nok\n1234567890123", longest: 5, chunkSize: chunkSize)
          == ["1:12345", "2 too long", "3:ok", "4 too long"])
    }
  }

  @Test func aSlowPipeIsAPause() throws {
    var ends: [Int32] = [-1, -1]
    try #require(unsafe pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    var reader = LineReader(descriptor: ends[0], name: "x", longest: 10)
    guard case .pause = try reader.next() else {
      Issue.record("no pause")
      return
    }
    #expect(unsafe write(ends[1], "a\n", 2) == 2)
    guard case .line([0x61], number: 1) = try reader.next() else {
      Issue.record("no line")
      return
    }
  }

  @Test func whatCannotBeReadIsNamed() {
    // A directory cannot be read.
    let descriptor = unsafe open("/", O_RDONLY)
    defer { close(descriptor) }
    var reader = LineReader(descriptor: descriptor, name: "requests.jsonl", longest: 10)
    #expect { try reader.next() } throws: { "\($0)".hasPrefix("requests.jsonl: ") }
  }

  @Test func theBarShowsHowFarReadingIs() {
    let bar = ProgressBar(total: 300)
    #expect(
      bar.line(bytes: 100, done: 99, refused: 1, after: .seconds(2))
        == "[##########--------------------]  33%  100 read, 1 refused, 50/s")
    #expect(bar.line(bytes: 400, done: 1, refused: 0, after: .zero).hasPrefix("[##############################] 100%"))
    #expect(ProgressBar(total: nil).line(bytes: 5, done: 3, refused: 0, after: .seconds(1)) == "3 read, 0 refused, 3/s")
  }
}
