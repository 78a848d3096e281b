import Testing

/// Sizes, names and white space.
struct ShapeTests {
  static let longestFile = 400
  static let longestFunction = 60

  /// A function, initialiser, subscript or computed property with its lines, from its name to its last brace.
  struct Function: Equatable {
    var name: String
    var line: Int
    var length: Int
  }

  /// The functions of a file. What has no body (a requirement of a protocol, a stored property) is left out.
  static func functions(in file: SwiftFile) -> [Function] {
    file.tokens.indices.compactMap { start in
      let token = file.tokens[start]
      guard ["func", "init", "deinit", "subscript", "var"].contains(token.text),
        start == 0 || ![".", "("].contains(file.tokens[start - 1].text), let body = body(in: file, after: start)
      else { return nil }
      let isNamed = token.text == "func" || token.text == "var"
      let name = isNamed ? file.tokens[start + 1].text : token.text
      return Function(name: name, line: token.line, length: body.end - token.line + 1)
    }
  }

  /// The lines of the body that belongs to the declaration at `start`.
  private static func body(in file: SwiftFile, after start: Int) -> (start: Int, end: Int)? {
    let goesOn: Set<String> = ["{", "where", "-", ">", "throws", "rethrows", "async", ")", "]"]
    let isProperty = file.tokens[start].text == "var"
    var depth = 0
    var index = start + 1
    while index < file.tokens.count {
      let token = file.tokens[index]
      if depth == 0 {
        if token.text == "{" { break }
        if token.text == "}" || (token.isFirst && !goesOn.contains(token.text)) { return nil }
        if isProperty && token.text == "=" { return nil }
      }
      if token.text == "(" || token.text == "[" { depth += 1 }
      if token.text == ")" || token.text == "]" { depth -= 1 }
      index += 1
    }
    guard index < file.tokens.count else { return nil }
    let first = file.tokens[index].line
    var braces = 0
    for token in file.tokens[index...] {
      if token.text == "{" { braces += 1 }
      if token.text == "}" { braces -= 1 }
      if braces == 0 { return (first, token.line) }
    }
    return nil
  }

  static func lengths(in file: SwiftFile) -> [Finding] {
    var findings = functions(in: file).filter { $0.length > longestFunction }.map {
      file.finding(
        $0.line, "\($0.name) has \($0.length) lines; give a part of it a name, so that it has \(longestFunction)")
    }
    if file.lines.count > longestFile {
      findings.append(
        file.finding(longestFile, "\(file.lines.count) lines; split the file at a seam of its subject"))
    }
    return findings
  }

  /// Files and types that are named for nothing: what is in them belongs to what it is about.
  static func vagueNames(in file: SwiftFile) -> [Finding] {
    let vague = ["Util", "Helper", "Manager", "Misc"]
    let advice = "name it for what it is, or put what is in it beside what it is about"
    var findings: [Finding] = []
    if vague.contains(where: file.name.contains) { findings.append(file.finding(1, "\(file.name): \(advice)")) }
    for (keyword, name) in zip(file.tokens, file.tokens.dropFirst())
    where ["struct", "class", "enum", "actor", "protocol", "typealias"].contains(keyword.text)
      && vague.contains(where: name.text.contains)
    {
      findings.append(file.finding(name.line, "\(name.text): \(advice)"))
    }
    return findings
  }

  @Test func filesAndFunctionsAreShort() {
    let findings = Repository.swiftFiles.flatMap(Self.lengths)
    #expect(findings.isEmpty, "\(findings.list)")
  }

  @Test func namesSayWhatThingsAre() {
    let findings = Repository.swiftFiles.flatMap(Self.vagueNames)
    #expect(findings.isEmpty, "\(findings.list)")
  }

  @Test func noLineEndsInWhiteSpace() {
    let kinds = [".swift", ".md", ".py", ".bash", ".yaml", ".yml", ".json", ".toml", ".h", ".modulemap", ".proto"]
    let files = Repository.allFiles.filter { path in
      kinds.contains(where: path.hasSuffix) || path.hasPrefix("scripts/") || path == "Dockerfile"
    }
    #expect(files.count > 200)
    var findings: [Finding] = []
    for path in files where !path.contains("FailCases") {
      let text = Repository.read(path)
      var line = 1
      for (index, byte) in text.enumerated() where byte == 0x0a {
        if index > 0, text[index - 1] == 0x20 || text[index - 1] == 0x09 {
          findings.append(Finding(path: path, line: line, text: "white space at the end"))
        }
        line += 1
      }
      if let last = text.last, last != 0x0a { findings.append(Finding(path: path, line: line, text: "no line end")) }
    }
    #expect(findings.isEmpty, "\(findings.list)")
  }

  @Test func scriptsCanBeRun() {
    let scripts = (Repository.files(under: "scripts") + Repository.files(under: ".ci")).filter {
      !$0.hasSuffix(".bash")
    }
    #expect(scripts.count > 4)
    for path in scripts {
      #expect(Repository.read(path).starts(with: "#!/".utf8), "\(path): begin with #!/usr/bin/env bash")
      #expect(Repository.isExecutable(path), "\(path): chmod +x; a file that is only sourced ends with .bash")
    }
  }

  @Test func functionsAreMeasured() {
    let sample = """
      protocol P {
        func required(a: Int)
        var value: Int { get }
      }
      struct S {
        var stored = [1, 2].map { $0 }
        let text = "{ \\(stored.map { "}" }) {"
        func long(
          _ body: () -> Void = {}
        ) -> Int {
          // }
          if true { return 1 }
          return 2
        }
        init?(x: Int) { self.init() }
        var computed: Int {
          1
        }
      }
      """
    let found = ShapeTests.functions(in: SwiftFile("Sources/Wire/A.swift", sample))
    #expect(
      found == [
        Function(name: "value", line: 3, length: 1), Function(name: "long", line: 8, length: 7),
        Function(name: "init", line: 15, length: 1), Function(name: "computed", line: 16, length: 3),
      ])
  }

  @Test func lengthsAndNamesCanBeWrong() {
    let body = String(repeating: "  f()\n", count: 60)
    let long = SwiftFile("Sources/Wire/A.swift", "func f() {\n\(body)}\n")
    #expect(Self.lengths(in: long).map(\.line) == [1])
    let file = SwiftFile("Sources/Wire/A.swift", String(repeating: "// a\n", count: 401))
    #expect(Self.lengths(in: file).map(\.line) == [400])
    #expect(Self.vagueNames(in: SwiftFile("Sources/Wire/ByteUtils.swift", "enum KeyHelper {}")).count == 2)
  }
}
