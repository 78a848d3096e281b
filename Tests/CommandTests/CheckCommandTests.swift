import Glibc
import Testing
import Transport

@testable import martlet

struct CheckCommandTests {
  /// Writes a file of its own, hands its path over, and removes it.
  private func withFile<Result>(_ text: String, _ body: (String) throws -> Result) throws -> Result {
    var template = Array("/tmp/martlet-check-XXXXXX".utf8CString)
    let descriptor = unsafe mkstemp(&template)
    try #require(descriptor >= 0)
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { _ = unsafe unlink(path) }
    let bytes = Array(text.utf8)
    #expect(unsafe write(descriptor, bytes, bytes.count) == bytes.count)
    close(descriptor)
    return try body(path)
  }

  private func report(_ text: String) throws -> CheckReport {
    try withFile(text) { path in CheckReport(file: path, environment: { _ in nil }) }
  }

  private func report(keyFile: String) throws -> CheckReport {
    let token = "{ keyFile: '\(keyFile)', keyId: 'ABC123DEFG', teamId: 'DEF123GHIJ' }"
    return try report("{ kafka: { brokers: 'b:9092' }, apps: { a: { bundleId: 'com.example', token: \(token) } } }")
  }

  @Test
  func problemsAreListedWithTheirPlaces() throws {
    let report = try self.report("{\n kafka: { brokrs: 'x' },\n apps: {} }")
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
    let report = try withFile(SigningKey.generate().privatePEM()) { key in try self.report(keyFile: key) }
    #expect(report.isGood, "\(report.text)")
    #expect(report.text.contains("✓ app a: com.example, production, token, key ABC123DEFG, team DEF123GHIJ"))
    #expect(report.json.contains(#""ok":true"#) && report.json.contains(#""apps":1"#))
  }

  @Test
  func aKeyThatIsNoneIsAProblem() throws {
    // Any file that is there and is no key.
    let report = try self.report(keyFile: "/bin/sh")
    #expect(!report.isGood)
    #expect(report.text.contains("✗ apps.a.token.keyFile: the key cannot be used"), "\(report.text)")
    #expect(report.text.hasSuffix("1 error; it cannot be used"))
  }
}
