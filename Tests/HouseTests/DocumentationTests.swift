import Testing

/// What other modules may use is explained where it is declared.
struct DocumentationTests {
  /// The kinds of declarations that need a comment. Properties and initialisers often say it all by their names and
  /// types; types and functions do not.
  static let kinds: Set<String> = ["struct", "class", "enum", "actor", "protocol", "typealias", "func", "subscript"]

  private static let modifiers: Set<String> = [
    "static", "final", "mutating", "nonmutating", "consuming", "borrowing", "nonisolated", "indirect", "override",
  ]

  /// The functions that protocols ask for: what they do is said there, once.
  static func requirements(of files: [SwiftFile]) -> Set<String> {
    var names: Set<String> = ["encode", "hash", "next"]
    for file in files {
      var depth = 0
      var protocolDepth: Int?
      var isProtocolAhead = false
      for (index, token) in file.tokens.enumerated() {
        switch token.text {
        case "protocol": isProtocolAhead = true
        case "{":
          depth += 1
          if isProtocolAhead {
            protocolDepth = depth
            isProtocolAhead = false
          }
        case "}":
          if protocolDepth == depth { protocolDepth = nil }
          depth -= 1
        case "func" where protocolDepth == depth: names.insert(file.tokens[index + 1].text)
        default: break
        }
      }
    }
    return names
  }

  static func findings(in file: SwiftFile, requirements: Set<String>) -> [Finding] {
    let documented = Set(file.comments.filter { $0.text.hasPrefix("///") }.map(\.line))
    return file.tokens.indices.compactMap { index in
      guard file.tokens[index].text == "package" else { return nil }
      var at = index + 1
      while at < file.tokens.count, modifiers.contains(file.tokens[at].text) { at += 1 }
      guard at + 1 < file.tokens.count, kinds.contains(file.tokens[at].text) else { return nil }
      let name = file.tokens[at + 1].text
      let isOperator = name.first.map { !($0.isLetter || $0 == "_" || $0 == "`" || $0 == "(") } ?? false
      if isOperator || (file.tokens[at].text == "func" && requirements.contains(name)) { return nil }
      // Attributes may stand between the comment and the declaration.
      var above = file.tokens[index].line - 1
      while above >= 1, file.lines[above - 1].drop(while: { $0 == " " }).hasPrefix("@") { above -= 1 }
      return documented.contains(above)
        ? nil
        : file.finding(file.tokens[index].line, "\(file.tokens[at].text) \(name): say in a /// comment what it is for")
    }
  }

  @Test func whatOtherModulesUseIsExplained() {
    let requirements = Self.requirements(of: Repository.sources)
    let findings = Repository.sources.flatMap { Self.findings(in: $0, requirements: requirements) }
    #expect(findings.isEmpty, "\(findings.list)")
  }

  @Test(arguments: [
    ("package struct A {}", 1), ("/// An A.\npackage struct A {}", 0),
    ("/// An A.\n@safe\npackage final class A {}", 0),
    ("// An A.\npackage enum A {}", 1), ("struct A {\n  package var b = 1\n}", 0),
    ("package func asked() {}", 0), ("package static func < (a: A, b: A) -> Bool { true }", 0),
    ("package import Wire", 0), ("/// An A.\nstruct A {}\npackage func b() {}", 1),
  ])
  func theRuleTellsGoodFromBad(text: String, count: Int) {
    let asking = SwiftFile("Sources/Wire/P.swift", "protocol P {\n  func asked()\n}")
    let requirements = Self.requirements(of: [asking])
    #expect(Self.findings(in: SwiftFile("Sources/Wire/A.swift", text), requirements: requirements).count == count)
  }
}
