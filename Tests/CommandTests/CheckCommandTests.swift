import Glibc
import Testing

@testable import martlet

struct CheckCommandTests {
  /// Writes a configuration, checks it, and removes it.
  private func report(_ text: String) throws -> CheckReport {
    var template = Array("/tmp/martlet-check-XXXXXX".utf8CString)
    let descriptor = unsafe mkstemp(&template)
    try #require(descriptor >= 0)
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { _ = unsafe unlink(path) }
    let bytes = Array(text.utf8)
    #expect(unsafe write(descriptor, bytes, bytes.count) == bytes.count)
    close(descriptor)
    return CheckReport(file: path) { _ in nil }
  }

  @Test
  func problemsAreListedWithTheirPlaces() throws {
    let report = try report("{\n kafka: { brokrs: 'x' },\n apps: {} }")
    #expect(!report.isGood)
    #expect(report.text.contains("✗ kafka.brokrs: unknown key\n    at       \(report.file):2:11\n    nearest  brokers"))
    #expect(report.text.contains("✗ apps: out of range"))
    #expect(report.text.hasSuffix("3 errors; it cannot be used"))
    #expect(
      report.json.contains(#""line":2,"column":11,"path":"kafka.brokrs","message":"unknown key","nearest":"brokers""#))
    #expect(report.json.hasPrefix(#"{"ok":false,"#))
  }

  @Test
  func aGoodConfigurationIsSummed() throws {
    // Any file that is there serves as the certificate: what is in it is not looked at here.
    let report = try report(
      "{ kafka: { brokers: 'b:9092' }, apps: { a: { bundleId: 'com.example', certificate: { file: '/bin/sh' } } } }"
    )
    #expect(report.isGood, "\(report.text)")
    #expect(report.text.contains("✓ app a: com.example, production, certificate /bin/sh"))
    #expect(report.json.contains(#""ok":true"#) && report.json.contains(#""apps":1"#))
  }
}
