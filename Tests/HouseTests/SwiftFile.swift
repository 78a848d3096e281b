/// A Swift file as the rules see it: its tokens, apart from its comments and the text of its strings.
struct SwiftFile: Sendable {
  /// A name, a number or one character of anything else.
  struct Token: Sendable {
    var text: String
    /// Counted from 1.
    var line: Int
    /// Whether it is the first on its line.
    var isFirst: Bool
    /// Whether nothing stands between it and the one before.
    var isAdjacent: Bool
  }

  struct Comment: Sendable {
    var text: String
    var line: Int
  }

  /// From the root on.
  let path: String
  let lines: [String]
  let tokens: [Token]
  let comments: [Comment]

  init(path: String, text: [UInt8]) {
    self.path = path
    var lines = text.split(separator: 0x0a, omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self)
    }
    if lines.last == "" { lines.removeLast() }
    self.lines = lines
    var lexer = SwiftLexer(text)
    lexer.run()
    tokens = lexer.tokens
    comments = lexer.comments
  }

  /// A sample, as if it stood in a file of that path.
  init(_ path: String, _ text: String) { self.init(path: path, text: Array(text.utf8)) }

  /// The target that it belongs to.
  var module: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }
  var isSource: Bool { path.hasPrefix("Sources/") }
  /// Without the directory and `.swift`.
  var name: String { path.split(separator: "/").last.map { String($0.dropLast(6)) } ?? "" }

  func finding(_ line: Int, _ text: String) -> Finding { Finding(path: path, line: line, text: text) }

  /// The line numbers of each place where these tokens follow one another, written together.
  ///
  /// - Parameter words: the first one stands alone: not behind a dot, nor part of a longer name.
  func lines(of words: [String]) -> [Int] {
    tokens.indices.compactMap { start in
      guard start + words.count <= tokens.count, start == 0 || tokens[start - 1].text != "." else { return nil }
      for (offset, word) in words.enumerated() {
        let token = tokens[start + offset]
        guard token.text == word, offset == 0 || token.isAdjacent else { return nil }
      }
      return tokens[start].line
    }
  }
}

/// Tells code, comments and strings apart. What is interpolated into a string is code.
struct SwiftLexer {
  private let text: [UInt8]
  private var at = 0
  private var line = 1
  private var isFirst = true
  private var isAdjacent = false
  private(set) var tokens: [SwiftFile.Token] = []
  private(set) var comments: [SwiftFile.Comment] = []

  init(_ text: [UInt8]) { self.text = text }

  mutating func run() {
    while at < text.count { step() }
  }

  private func peek(_ distance: Int) -> UInt8 { at + distance < text.count ? text[at + distance] : 0 }

  private mutating func step() {
    let byte = text[at]
    switch byte {
    case 0x0a: newLine()
    case 0x20, 0x09, 0x0d:
      at += 1
      isAdjacent = false
    case UInt8(ascii: "/") where peek(1) == byte: lineComment()
    case UInt8(ascii: "/") where peek(1) == UInt8(ascii: "*"): blockComment()
    case UInt8(ascii: "\""): string(hashes: 0)
    case UInt8(ascii: "#") where hashesBeforeQuote > 0: string(hashes: hashesBeforeQuote)
    case UInt8(ascii: "`"):
      let start = at
      at += 1
      while at < text.count, text[at] != byte, text[at] != 0x0a { at += 1 }
      at += 1
      token(start)
    case _ where Self.isWord(byte):
      let start = at
      while at < text.count, Self.isWord(text[at]) { at += 1 }
      token(start)
    default:
      at += 1
      token(at - 1)
    }
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x5f, 0x80...: true
    default: false
    }
  }

  private mutating func token(_ start: Int) {
    tokens.append(
      SwiftFile.Token(
        text: String(decoding: text[start..<min(at, text.count)], as: UTF8.self), line: line, isFirst: isFirst,
        isAdjacent: isAdjacent))
    isFirst = false
    isAdjacent = true
  }

  private mutating func newLine() {
    at += 1
    line += 1
    isFirst = true
    isAdjacent = false
  }

  private mutating func lineComment() {
    let start = at
    while at < text.count, text[at] != 0x0a { at += 1 }
    comments.append(SwiftFile.Comment(text: String(decoding: text[start..<at], as: UTF8.self), line: line))
  }

  private mutating func blockComment() {
    let (start, first) = (at, line)
    var depth = 0
    repeat {
      if text[at] == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "*") {
        depth += 1
        at += 2
      } else if text[at] == UInt8(ascii: "*"), peek(1) == UInt8(ascii: "/") {
        depth -= 1
        at += 2
      } else if text[at] == 0x0a {
        newLine()
      } else {
        at += 1
      }
    } while depth > 0 && at < text.count
    comments.append(
      SwiftFile.Comment(text: String(decoding: text[start..<min(at, text.count)], as: UTF8.self), line: first))
  }

  private var hashesBeforeQuote: Int {
    var count = 0
    while peek(count) == UInt8(ascii: "#") { count += 1 }
    return peek(count) == UInt8(ascii: "\"") ? count : 0
  }

  private mutating func string(hashes: Int) {
    at += hashes
    let isLong = peek(1) == UInt8(ascii: "\"") && peek(2) == UInt8(ascii: "\"")
    at += isLong ? 3 : 1
    while at < text.count {
      let byte = text[at]
      if byte == 0x0a {
        newLine()
        if !isLong { return }
      } else if byte == UInt8(ascii: "\\"), hasHashes(hashes, from: 1) {
        at += 1 + hashes
        if peek(0) == UInt8(ascii: "(") { interpolation() } else { at += 1 }
      } else if byte == UInt8(ascii: "\""), !isLong || (peek(1) == byte && peek(2) == byte),
        hasHashes(hashes, from: isLong ? 3 : 1)
      {
        at += (isLong ? 3 : 1) + hashes
        break
      } else {
        at += 1
      }
    }
    isFirst = false
    isAdjacent = false
  }

  private func hasHashes(_ count: Int, from distance: Int) -> Bool {
    (0..<count).allSatisfy { peek(distance + $0) == UInt8(ascii: "#") }
  }

  private mutating func interpolation() {
    var depth = 0
    repeat {
      if text[at] == UInt8(ascii: "(") { depth += 1 }
      if text[at] == UInt8(ascii: ")") { depth -= 1 }
      step()
    } while depth > 0 && at < text.count
  }
}
