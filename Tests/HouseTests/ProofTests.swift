import Testing

/// The pages that name the tests behind what they promise: each of them must be there.
struct ProofTests {
  static let pages = Repository.files(under: "docs").filter { $0.hasSuffix(".md") }

  /// A test as a page names it: "`APNsTests/PoolTests` `resetStreamsAreGivenBack`, `anotherOne`".
  struct Proof: Equatable {
    var file: String
    var name: String
    var line: Int
  }

  /// What stands in backticks on a line, and what stands before it since the last one.
  static func spans(of line: Substring) -> [(before: Substring, text: Substring)] {
    var spans: [(before: Substring, text: Substring)] = []
    var rest = line
    while let start = rest.firstIndex(of: "`"), let end = rest[rest.index(after: start)...].firstIndex(of: "`") {
      spans.append((rest[..<start], rest[rest.index(after: start)..<end]))
      rest = rest[rest.index(after: end)...]
    }
    return spans
  }

  /// Whether a text is the place of a test file, without `Tests/` and ending: a directory of tests, and one more name.
  static func isPlace(_ text: Substring) -> Bool {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let last = parts.last, !last.isEmpty, !last.contains(" ") else { return false }
    return parts[0] == "Interop" || parts[0] == "Chart" || (parts[0].hasSuffix("Tests") && parts[0] != "Tests")
  }

  /// The tests that a page names. Names belong to the place before them, as long as nothing but commas, "and" and line
  /// ends stand between.
  static func proofs(in text: String) -> [Proof] {
    var proofs: [Proof] = []
    var place: Substring?
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      var isFirst = true
      for (before, span) in spans(of: line) {
        let joint = before.filter { !($0 == " " || $0 == ",") }
        let isJoined = joint.isEmpty || joint == "and"
        if isPlace(span) {
          place = span
        } else if let known = place, isJoined, !isFirst || !line.hasPrefix("|") {
          proofs.append(Proof(file: String(known), name: String(span), line: index + 1))
        } else {
          place = nil
        }
        isFirst = false
      }
      // Sentences run over lines, the rows of a table do not.
      if line.hasPrefix("|") || line.isEmpty { place = nil }
    }
    return proofs
  }

  /// Whether a file of tests has one of that name.
  static func declares(_ name: String, in text: String, isPython: Bool) -> Bool {
    isPython
      ? text.contains("def \(name)(") : text.contains("func \(name)(") || text.contains("func `\(name)`(")
  }

  static func fault(_ proof: Proof) -> String? {
    for ending in ["swift", "py"] {
      let text = String(decoding: Repository.read("Tests/\(proof.file).\(ending)"), as: UTF8.self)
      guard !text.isEmpty else { continue }
      return declares(proof.name, in: text, isPython: ending == "py") ? nil : "has no test \(proof.name)"
    }
    return "is not there"
  }

  @Test(arguments: pages)
  func everyTestThatAPageNamesExists(page: String) {
    for proof in Self.proofs(in: String(decoding: Repository.read(page), as: UTF8.self)) {
      let fault = Self.fault(proof)
      #expect(fault == nil, "\(page):\(proof.line): Tests/\(proof.file) \(fault ?? "")")
    }
  }

  /// What a page says about its tests is empty if it names none.
  @Test func everyRuleOfAPNsNamesItsTests() {
    let text = String(decoding: Repository.read("docs/apns.md"), as: UTF8.self)
    #expect(Self.proofs(in: text).count > 200)
    for (line, row) in Self.rowsWithoutProof(in: text) {
      Issue.record("docs/apns.md:\(line): name a test in the last cell, or \"–\" if there is nothing to prove: \(row)")
    }
  }

  /// The rows of tables with a column "test" whose last cell names no test, and is no dash.
  static func rowsWithoutProof(in text: String) -> [(line: Int, text: String)] {
    var rows: [(Int, String)] = []
    var hasTests = false
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      guard line.hasPrefix("|") else {
        hasTests = false
        continue
      }
      let cells = line.split(separator: "|").map { $0.drop { $0 == " " } }
      guard let last = cells.last else { continue }
      if last.hasPrefix("test") { hasTests = true }
      guard hasTests, !last.hasPrefix("test"), !last.hasPrefix("---"), !last.hasPrefix("–") else { continue }
      if proofs(in: String(last)).isEmpty { rows.append((index + 1, String(line.prefix(80)))) }
    }
    return rows
  }

  @Test func testsAreFoundInRowsAndSentences() {
    let text = """
      | rule | `Service/A` | `ATests/One` `a`, `b`; `Interop/test_two` `test_c` (with `d`) |
      | `x` | `ATests/One` `e` and `f` |
      Proved by `ATests/One`
      `each rule holds`, and by nothing in `Sources/B`, `c`.
      """
    let proofs = Self.proofs(in: text).map { "\($0.line) \($0.file) \($0.name)" }
    #expect(
      proofs == [
        "1 ATests/One a", "1 ATests/One b", "1 Interop/test_two test_c", "2 ATests/One e", "2 ATests/One f",
        "4 ATests/One each rule holds",
      ])
    #expect(Self.declares("a b", in: "@Test func `a b`() {}", isPython: false))
    #expect(!Self.declares("a", in: "func ab() {}", isPython: false))
    #expect(Self.declares("test_a", in: "def test_a(world):", isPython: true))
    #expect(Self.fault(Proof(file: "HouseTests/ProofTests", name: "nobody", line: 1)) == "has no test nobody")
    #expect(Self.fault(Proof(file: "HouseTests/Nowhere", name: "nobody", line: 1)) == "is not there")
    #expect(Self.fault(Proof(file: "HouseTests/ProofTests", name: "testsAreFoundInRowsAndSentences", line: 1)) == nil)
  }

  @Test func rowsWithoutATestAreFound() {
    let text = """
      | rule | test |
      |---|---|
      | a | `ATests/One` `a` |
      | b | none |
      | c | – |

      | rule | what |
      | d | none |
      """
    #expect(Self.rowsWithoutProof(in: text).map(\.line) == [4])
  }
}
