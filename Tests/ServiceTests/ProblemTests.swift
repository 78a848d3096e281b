import TestSupport
import Testing
import Wire

@testable import Service

struct ProblemTests {
  private func log(_ level: LogLevel = .info) -> Log {
    Log(
      level: level,
      now: { Moment(instant: Instant(nanoseconds: 0), time: UnixTime(seconds: 1_790_000_000)) }, sink: { _ in })
  }

  @Test
  func warningsAndErrorsAreKeptByKindAndApp() {
    let log = log()
    for _ in 0..<100 { log.warning("connection_failed", "a connection failed", [.app("a"), .cause(CauseText("one"))]) }
    log.warning("connection_failed", "a connection failed", [.app("b")])
    log.error("connection_failed", "a connection failed", [.app("a"), .cause(CauseText("two"))])
    log.info("started", "the service has started")
    let problems = log.problems.recent()
    #expect(problems.map(\.app) == ["a", "b"])
    #expect(problems[0].count == 101 && problems[0].level == .error && problems[0].cause == "two")
  }

  @Test
  func theLevelOfTheLogHidesNone() {
    let log = log(.error)
    log.warning("commit_failed", "offsets were not committed")
    log.kafka(severity: 4, facility: "FAIL", message: "password=\(Planted.password)")
    #expect(log.problems.recent().map(\.code) == ["commit_failed", "kafka.fail"])
    #expect(log.problems.recent().allSatisfy { $0.cause?.contains(Planted.password) != true })
  }

  @Test
  func theBookIsBounded() {
    let book = ProblemBook()
    for number in 0..<1_000 {
      book.note(
        .warning, code: "x", message: "m", [.app("app-\(number)")], at: UnixTime(seconds: Int64(number)))
    }
    #expect(book.recent().count == ProblemBook.most)
    #expect(book.recent().first?.app == "app-999")
  }

  /// Every code that a warning or an error of the sources has is explained.
  @Test
  func everyProblemHasAMeaningAndAMend() throws {
    let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/Sources"
    var codes: Set<String> = []
    for file in try Self.swiftFiles(below: root) {
      let text = String(decoding: try FileProbe.read(file, atMost: 1_048_576), as: UTF8.self)
      for part in text.split(separator: "log.", omittingEmptySubsequences: false).dropFirst()
      where part.hasPrefix("warning(") || part.hasPrefix("error(") {
        let code = part.drop { $0 != "\"" }.dropFirst().prefix { $0 != "\"" }
        if !code.contains(" ") { codes.insert(String(code)) }
      }
    }
    #expect(codes.count > 15)
    for code in codes.sorted() {
      #expect(ProblemGuide.entries[code] != nil, "\(code): add it to ProblemGuide, with its meaning and its mend")
    }
    #expect(ProblemGuide.entry(for: "kafka.fail") != nil && ProblemGuide.entry(for: "nonsense") == nil)
  }

  private static func swiftFiles(below directory: String) throws -> [String] {
    try FileProbe.list(directory: directory).filter { !$0.hasPrefix(".") }.flatMap { name -> [String] in
      let path = "\(directory)/\(name)"
      if name.hasSuffix(".swift") { return [path] }
      return name.contains(".") ? [] : try swiftFiles(below: path)
    }
  }
}
