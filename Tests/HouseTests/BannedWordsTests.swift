import Testing

/// Words that do not stand in this code, each with what to write instead.
struct BannedWordsTests {
  struct Rule: Sendable {
    /// What follows one another, written together.
    var words: [String]
    var instead: String
    /// Where it holds.
    var scope: Scope
  }

  enum Scope: Sendable {
    case everywhere
    /// All modules of the program but `martlet`, which talks to people.
    case libraries
    /// Wire, APNs, Delivery: no I/O, clock, thread or randomness of their own, so that a run can be repeated.
    case pure

    func contains(_ file: SwiftFile) -> Bool {
      switch self {
      case .everywhere: true
      case .libraries: file.isSource && file.module != "martlet"
      case .pure: file.isSource && ["Wire", "APNs", "Delivery"].contains(file.module)
      }
    }
  }

  private static let wait = "wait for a condition (Monitor.wait, waitUntil) or set a timer of the loop"
  private static let time = "take an Instant, UnixTime or Moment as an argument"
  private static let thread = "a machine is a value on one thread; its shell in Service owns threads and locks"

  static let rules: [Rule] = [
    Rule(words: ["try", "!"], instead: "throw, or catch and say what happened", scope: .everywhere),
    Rule(words: ["as", "!"], instead: "as?, or a type that needs no cast", scope: .everywhere),
    Rule(words: ["fatalError", "("], instead: "throw; for a fault of the caller, precondition", scope: .everywhere),
    Rule(words: ["print", "("], instead: "Log", scope: .libraries),
    Rule(words: ["Task", ".", "sleep"], instead: wait, scope: .everywhere),
    Rule(words: ["Thread", ".", "sleep"], instead: wait, scope: .everywhere),
    Rule(words: ["usleep", "("], instead: wait, scope: .everywhere),
    Rule(words: ["nanosleep", "("], instead: wait, scope: .everywhere),
    Rule(words: ["sleep", "("], instead: wait, scope: .everywhere),
    Rule(words: ["unsafe"], instead: "Span, or a method of Transport or Kafka", scope: .pure),
    Rule(words: ["ContinuousClock"], instead: time, scope: .pure),
    Rule(words: ["SuspendingClock"], instead: time, scope: .pure),
    Rule(words: ["clock_gettime"], instead: time, scope: .pure),
    Rule(words: ["Date", "("], instead: time, scope: .pure),
    Rule(words: ["Thread"], instead: thread, scope: .pure),
    Rule(words: ["pthread_create"], instead: thread, scope: .pure),
    Rule(words: ["Task"], instead: thread, scope: .pure),
    Rule(words: ["async"], instead: thread, scope: .pure),
    Rule(words: ["await"], instead: thread, scope: .pure),
    Rule(words: ["actor"], instead: thread, scope: .pure),
    Rule(words: ["Mutex"], instead: thread, scope: .pure),
    Rule(words: ["Atomic"], instead: thread, scope: .pure),
    Rule(words: ["SystemRandomNumberGenerator"], instead: "SeededRandom, passed in", scope: .pure),
  ]

  /// Where a rule does not hold, and why.
  static let exceptions: [(path: String, word: String, reason: String)] = [
    ("Sources/Wire/Words.swift", "unsafe", "copies and loads of several bytes, each behind a check of its bounds"),
    ("Tests/TestSupport/WaitUntil.swift", "usleep", "the one place that looks again and again, for all tests"),
    ("Tests/TestSupport/Eventually.swift", "Task", "the same for tests that may hold no thread meanwhile"),
  ]

  static func findings(in file: SwiftFile) -> [Finding] {
    rules.filter { $0.scope.contains(file) }.flatMap { rule in
      if exceptions.contains(where: { $0.path == file.path && $0.word == rule.words[0] }) { return [Finding]() }
      return file.lines(of: rule.words).map { file.finding($0, "\(rule.words.joined()): \(rule.instead)") }
    }
  }

  /// Random numbers of the system's generator: calls that name no other one.
  static func randomness(in file: SwiftFile) -> [Finding] {
    guard Scope.pure.contains(file) else { return [] }
    return file.tokens.indices.compactMap { index in
      guard ["random", "shuffled", "randomElement", "shuffle"].contains(file.tokens[index].text), index > 0,
        file.tokens[index - 1].text == ".", index + 1 < file.tokens.count, file.tokens[index + 1].text == "("
      else { return nil }
      var depth = 0
      for token in file.tokens[(index + 1)...] {
        if token.text == "(" { depth += 1 }
        if token.text == ")" { depth -= 1 }
        if depth == 1, token.text == "using" { return nil }
        if depth == 0 { break }
      }
      return file.finding(file.tokens[index].line, "\(file.tokens[index].text): say `using:` a SeededRandom")
    }
  }

  /// Notes to oneself; what is to be done belongs into a change, or an issue.
  static func notes(in file: SwiftFile) -> [Finding] {
    file.comments.flatMap { comment in
      let words = comment.text.split { !($0.isLetter || $0.isNumber || $0 == "_") }
      return words.filter { ["TO" + "DO", "FIX" + "ME", "XX" + "X"].contains($0) }
        .map { file.finding(comment.line, "\($0): do it now, or say what is so and why") }
    }
  }

  /// `@unchecked Sendable` and `nonisolated(unsafe)` switch a check off, so people must be able to check.
  static func promises(in file: SwiftFile) -> [Finding] {
    let places =
      zip(file.tokens, file.tokens.dropFirst()).filter { $0.text == "@" && $1.text == "unchecked" }.map(\.0.line)
      + file.lines(of: ["nonisolated", "(", "unsafe", ")"])
    return places.compactMap { line in
      let isExplained = file.comments.contains { comment in
        (line - 12...line).contains(comment.line)
          && (comment.text.contains("Sendable") || comment.text.contains("holds because"))
      }
      return isExplained ? nil : file.finding(line, "say in a comment above why it holds (\"… holds because …\")")
    }
  }

  @Test func nothingBannedStandsInTheCode() {
    let findings = Repository.swiftFiles.flatMap(Self.findings)
    #expect(findings.isEmpty, "\(findings.list)")
  }

  @Test func pureModulesDrawFromTheGeneratorThatTheyAreGiven() {
    let findings = Repository.swiftFiles.flatMap(Self.randomness)
    #expect(findings.isEmpty, "\(findings.list)")
  }

  @Test func nobodyLeavesNotes() {
    let findings = Repository.swiftFiles.flatMap(Self.notes)
    #expect(findings.isEmpty, "\(findings.list)")
  }

  @Test func uncheckedPromisesAreExplained() {
    let findings = Repository.swiftFiles.flatMap(Self.promises)
    #expect(findings.isEmpty, "\(findings.list)")
  }

  @Test func exceptionsAreStillNeeded() {
    for exception in Self.exceptions {
      let file = Repository.swiftFiles.first { $0.path == exception.path }
      #expect(file?.tokens.contains { $0.text == exception.word } == true, "\(exception.path): \(exception.word)")
    }
  }

  @Test(arguments: [
    ("Sources/Kafka/A.swift", "let a = try! b()", 1), ("Sources/Kafka/A.swift", "let a = try !b()", 0),
    ("Sources/Kafka/A.swift", "let a = b as! C", 1), ("Sources/Kafka/A.swift", "fatalError(\"x\")", 1),
    ("Sources/Kafka/A.swift", "if let e = client.fatalError { }", 0), ("Sources/Kafka/A.swift", "print(1)", 1),
    ("Sources/martlet/A.swift", "print(1)", 0), ("Sources/Kafka/A.swift", "a.print(1)", 0),
    ("Sources/Kafka/A.swift", "let text = \"print(1) \\(print(2)) \"", 1),
    ("Tests/KafkaTests/A.swift", "usleep(3)", 1), ("Tests/KafkaTests/A.swift", "try await Task.sleep(for: .zero)", 1),
    ("Sources/Wire/A.swift", "unsafe f()", 1), ("Sources/Transport/A.swift", "unsafe f()", 0),
    ("Sources/Delivery/A.swift", "Task { f() }", 1),
    ("Sources/Delivery/A.swift", "/* Task { } */ let a = #\"Mutex\"#", 0),
    ("Sources/Delivery/A.swift", "let text = \"\"\"\n  say \"try!\"\n  \"\"\"\nlet m = Mutex(0)", 1),
  ])
  func theRulesTellGoodFromBad(path: String, text: String, count: Int) {
    #expect(Self.findings(in: SwiftFile(path, text)).count == count)
  }

  @Test func theOtherRulesCanFail() {
    let note = SwiftFile("Sources/Wire/A.swift", "let a = 1  // TO" + "DO later")
    #expect(Self.notes(in: note) == [note.finding(1, "TO" + "DO: do it now, or say what is so and why")])
    let lone = SwiftFile("Sources/Kafka/A.swift", "final class A: @unchecked Sendable {}")
    #expect(Self.promises(in: lone).count == 1)
    let explained = SwiftFile(
      "Sources/Kafka/A.swift", "/// It holds because of B.\nfinal class A: @unchecked Sendable {}")
    #expect(Self.promises(in: explained).isEmpty)
    let drawn = SwiftFile(
      "Sources/APNs/A.swift", "let a = Int.random(in: 0...1)\nlet b = Int.random(in: 0...1, using: &r)")
    #expect(Self.randomness(in: drawn).map(\.line) == [1])
  }
}
