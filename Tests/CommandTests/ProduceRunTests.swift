import Glibc
import Service
import Testing
import Wire

@testable import martlet

struct ProduceRunTests {
  private var judge: RequestJudge {
    var app = AppSettings()
    app.name = "shop"
    app.bundleID = "com.example.shop"
    return RequestJudge(apps: [app])
  }

  /// A trial run over lines.
  private func run(_ text: String) throws -> ProduceRun {
    var ends: [Int32] = [-1, -1]
    try #require(unsafe pipe(&ends) == 0)
    defer { close(ends[0]) }
    let bytes = Array(text.utf8)
    try #require(unsafe write(ends[1], bytes, bytes.count) == bytes.count)
    close(ends[1])
    var run = ProduceRun(judge: judge, publisher: nil)
    try run.take(LineReader(descriptor: ends[0], name: "in", longest: 1000), named: "in", progress: nil)
    run.finish()
    return run
  }

  @Test func goodLinesAreCounted() throws {
    let line = #"{"app":"shop","token":"ab12","payload":{}}"#
    let run = try run("\(line)\n\n\(line)\n")
    #expect(run.good == 2 && run.refused == 0 && run.exitCode == .ok)
    #expect(run.summary(topic: "t") == "2 requests good, 0 refused; nothing was published")
  }

  @Test func refusalsAreToldByTheirRule() throws {
    let good = #"{"app":"shop","token":"ab12","payload":{},"odd":1}"#
    let run = try run(
      """
      \(good)
      {"app":"shop","token":"ab12","payload":{},"priority":7}
      {"app":"shop","token":"ab12","payload":{},"priority":8}
      not json
      """)
    #expect(run.good == 1 && run.refused == 3 && run.exitCode == .badData)
    let summary = run.summary(topic: "t")
    #expect(summary.contains("  2 refused: priority: must be 10, 5 or 1"), "\(summary)")
    #expect(summary.hasSuffix("1 request with fields that the contract does not know"))
    #expect(run.json(topic: "t").hasPrefix(#"{"ok":false,"topic":"t","good":1,"published":0,"refused":3,"failed":0,"#))
  }

  @Test func theKeyIsTheTokenOrTheChannelAndNoneForABatch() {
    var judge = judge
    func key(_ value: String) -> String? {
      guard case .good(let storage, let range, let key, _) = judge.judge(RecordBody(key: nil, value: Array(value.utf8)))
      else { return "refused" }
      #expect(Bytes(storage, range).text == value)
      return key.map { Bytes(storage, $0).text }
    }
    #expect(key(#"{"app":"shop","token":"ab12","payload":{}}"#) == "ab12")
    #expect(key(#"{"app":"shop","token":"\u0061b12","payload":{}}"#) == "ab12")
    #expect(key(#"{"app":"shop","tokens":["ab12","cd34"],"payload":{}}"#) == nil)
    #expect(key(#"{"app":"shop","tokens":["ab12","xyz"],"payload":{}}"#) == "refused")
    #expect(key(#"{"app":"shop","payload":{}}"#) == "refused")
  }

  @Test func aMistypedNameIsTold() {
    var judge = judge
    func message(_ value: String) -> String? { judge.fault(of: Array(value.utf8)) }
    #expect(
      message(#"{"app":"shpo","token":"ab12","payload":{}}"#)?.hasSuffix(#"found "shpo", did you mean shop?"#) == true)
    #expect(message(#"{"app":"elsewhere","token":"ab12","payload":{}}"#)?.hasSuffix(#"found "elsewhere""#) == true)
    #expect(
      message(#"{"app":"shop","token":"ab12","payload":{},"push_type":"alrt"}"#)?.hasSuffix("did you mean alert?")
        == true)
  }
}
