import Testing

/// The pages for people: what they point to is there.
struct PageTests {
  static let pages = Repository.allFiles.filter { $0.hasSuffix(".md") }

  /// The targets of the links within the repository, and the line each stands in.
  static func links(in text: String) -> [(target: String, line: Int)] {
    var found: [(String, Int)] = []
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      var rest = line[...]
      while let start = rest.firstRange(of: "](") {
        rest = rest[start.upperBound...]
        let target = rest.prefix { $0 != ")" && $0 != "#" }
        if !target.isEmpty, !target.contains("://"), !target.hasPrefix("mailto:") {
          found.append((String(target), index + 1))
        }
      }
    }
    return found
  }

  /// `../b.md` seen from `docs/a.md`.
  static func resolve(_ target: String, from page: String) -> String {
    var parts = page.split(separator: "/").dropLast().map(String.init)
    for part in target.split(separator: "/") where part != "." {
      if part == ".." { _ = parts.popLast() } else { parts.append(String(part)) }
    }
    return parts.joined(separator: "/")
  }

  @Test(arguments: pages)
  func linksLeadSomewhere(page: String) {
    for (target, line) in Self.links(in: String(decoding: Repository.read(page), as: UTF8.self)) {
      let path = Self.resolve(target, from: page)
      #expect(!Repository.read(path).isEmpty || Repository.isDirectory(path), "\(page):\(line): no \(path)")
    }
  }

  /// The map of ARCHITECTURE.md names files as `Module/File`; each must be there.
  @Test func theMapNamesFilesThatExist() {
    let text = String(decoding: Repository.read("ARCHITECTURE.md"), as: UTF8.self)
    let modules = Set(Repository.sources.map(\.module))
    let names = text.split(separator: "`").filter { name in
      name.hasSuffix(".swift") && modules.contains(name.split(separator: "/").first.map(String.init) ?? "")
    }
    #expect(names.count > 30)
    for name in names {
      #expect(!Repository.read("Sources/\(name)").isEmpty, "ARCHITECTURE.md names Sources/\(name)")
    }
  }

  @Test func linksAreFoundAndResolved() {
    let found = Self.links(in: "a [b](c.md) and [d](../e/f.md#g)\n[h](https://example.com) [i](#j)")
    #expect(found.map(\.target) == ["c.md", "../e/f.md"] && found.map(\.line) == [1, 1])
    #expect(Self.resolve("../e/f.md", from: "docs/a.md") == "e/f.md")
    #expect(Self.resolve("c.md", from: "README.md") == "c.md")
  }
}
