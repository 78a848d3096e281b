import Testing

/// Who may import what. The compiler keeps the dependencies between our own modules; a C module that some dependency
/// brings along it would let anybody import, and the standard libraries anyway.
struct ImportTests {
  /// Beside themselves, the modules may import this and nothing else.
  static let allowed: [String: Set<String>] = [
    "Wire": [],
    "APNs": ["Wire"],
    "Delivery": ["APNs", "Wire"],
    "Kafka": ["CRdKafka", "Wire", "Glibc", "Synchronization"],
    "Transport": ["CLinux", "CNGHTTP2", "COpenSSL", "Wire", "Glibc", "Synchronization"],
    "Service": [
      "Delivery", "APNs", "Kafka", "Transport", "Wire", "Glibc", "Synchronization", "FoundationEssentials",
    ],
    "MockAPNs": ["Transport", "APNs", "Wire", "Synchronization"],
    "martlet": [
      "Service", "MockAPNs", "Kafka", "Transport", "APNs", "Wire", "Glibc", "Synchronization", "FoundationEssentials",
    ],
  ]

  /// The home of each C module, tests included.
  static let homes = ["CRdKafka": "Kafka", "CNGHTTP2": "Transport", "COpenSSL": "Transport", "CLinux": "Transport"]

  /// What to do instead, by what is imported.
  static func advice(_ imported: String, in module: String) -> String {
    switch imported {
    case "Foundation":
      "it brings ICU along; the standard library, Wire or FoundationEssentials (Service, martlet) will do"
    case "FoundationEssentials": "only Service and martlet may; use Wire"
    case "Glibc": "\(module) does no I/O; Transport and Kafka do it, and Service passes values on"
    case "Synchronization": "\(module) has no threads; the shells in Service and Transport own the locks"
    case _ where homes[imported] != nil: "only \(homes[imported] ?? "") may; give it a method for what you need"
    default: "\(module) does not stand above it; move the code, or the value that both need into a lower module"
    }
  }

  static func imports(of file: SwiftFile) -> [(name: String, line: Int)] {
    file.tokens.indices.dropLast().compactMap { index in
      guard file.tokens[index].text == "import" else { return nil }
      return (file.tokens[index + 1].text, file.tokens[index].line)
    }
  }

  static func findings(in file: SwiftFile) -> [Finding] {
    guard file.isSource, let allowed = allowed[file.module] else {
      return imports(of: file).compactMap { name, line in
        homes[name] == nil ? nil : file.finding(line, "import \(name): \(advice(name, in: file.module))")
      }
    }
    return imports(of: file).filter { !allowed.contains($0.name) }
      .map { file.finding($0.line, "import \($0.name): \(advice($0.name, in: file.module))") }
  }

  @Test func modulesImportOnlyWhatTheyMay() {
    let findings = Repository.swiftFiles.flatMap(Self.findings)
    #expect(findings.isEmpty, "\(findings.list)")
  }

  @Test func everyModuleHasItsRow() {
    let modules = Set(Repository.sources.map(\.module))
    #expect(modules == Set(Self.allowed.keys))
  }

  @Test(arguments: homes.keys.sorted())
  func eachCModuleHasOneHome(name: String) {
    let importers = Set(
      Repository.swiftFiles.filter { Self.imports(of: $0).contains { $0.name == name } }.map(\.module))
    #expect(importers == [Self.homes[name]], "\(name) is imported by \(importers.sorted())")
  }

  @Test(arguments: [
    ("Sources/Wire/A.swift", "import Glibc", 1), ("Sources/APNs/A.swift", "package import Wire", 0),
    ("Sources/Service/A.swift", "internal import CRdKafka", 1), ("Sources/Kafka/A.swift", "import CRdKafka", 0),
    ("Sources/Service/A.swift", "import Foundation", 1), ("Sources/Service/A.swift", "import FoundationEssentials", 0),
    ("Tests/KafkaTests/A.swift", "import CRdKafka", 1), ("Tests/WireTests/A.swift", "import Foundation", 0),
    ("Sources/Delivery/A.swift", "// import Glibc\nlet text = \"import Glibc\"", 0),
  ])
  func theRuleTellsGoodFromBad(path: String, text: String, count: Int) {
    #expect(Self.findings(in: SwiftFile(path, text)).count == count)
  }
}
