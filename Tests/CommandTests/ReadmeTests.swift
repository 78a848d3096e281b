import Service
import Testing
import Transport

@testable import martlet

/// What the pages for users show is what the program does.
struct ReadmeTests {
  private static let root = #filePath.split(separator: "/").dropLast(3).reduce(into: "") { $0 += "/\($1)" }

  private static func page(_ name: String) throws -> String {
    String(decoding: try LocalFile.read("\(root)/\(name)"), as: UTF8.self)
  }

  /// The first fenced block of that language.
  private static func block(_ language: String, in page: String) -> String? {
    let lines = page.split(separator: "\n", omittingEmptySubsequences: false)
    guard let start = lines.firstIndex(of: "```\(language)") else { return nil }
    let end = lines[(start + 1)...].firstIndex(of: "```") ?? lines.endIndex
    return lines[(start + 1)..<end].joined(separator: "\n")
  }

  @Test
  func theFirstConfigurationPassesTheCheck() throws {
    let text = try #require(Self.block("json5", in: try Self.page("README.md")))
    let directory = try LocalFile.makeTemporaryDirectory()
    let keyFile = "\(directory)/AuthKey_ABC123DEFG.p8"
    let file = "\(directory)/martlet.json5"
    defer {
      LocalFile.remove(file: keyFile, directory: directory)
      LocalFile.remove(file: file, directory: directory)
    }
    try LocalFile.write(Array(SigningKey.generate().privatePEM().utf8), to: keyFile, isSecret: true)
    let placed = text.split(separator: "/secrets/", omittingEmptySubsequences: false).joined(separator: "\(directory)/")
    #expect(placed != text)
    try LocalFile.write(Array(placed.utf8), to: file)
    let report = CheckReport(file: file, environment: { _ in nil })
    #expect(report.isGood && report.problems.isEmpty, "\(report.text)")
    #expect(report.settings?.apps.map(\.name) == ["shop-ios"])
  }
}
