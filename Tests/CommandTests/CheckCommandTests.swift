import Glibc
import Service
import TestSupport
import Testing
import Transport

@testable import martlet

struct CheckCommandTests {
  /// Writes a file of its own, hands its path over, and removes it.
  private func withFile<Result>(_ text: String, _ body: (String) throws -> Result) throws -> Result {
    let files = try TemporaryFiles()
    return try withExtendedLifetime(files) { try body(files.write("file", text)) }
  }

  private func report(_ text: String) throws -> CheckReport {
    try withFile(text) { path in CheckReport(file: path, environment: { _ in nil }) }
  }

  private func report(keyFile: String, kafka members: String = "") throws -> CheckReport {
    let token = "{ keyFile: '\(keyFile)', keyId: 'ABC123DEFG', teamId: 'DEF123GHIJ' }"
    return try report(
      "{ kafka: { brokers: 'b:9092', \(members) }, apps: { a: { bundleId: 'com.example', token: \(token) } } }")
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

  @Test(arguments: [
    ("properties: { 'security.protocol': 'sasl_ssl', 'sasl.mechanism': 'PLAIN' }", "of the clients: sasl.username"),
    ("properties: { 'session.timeout.ms': 400000 }", "of the consumer: `max.poll.interval.ms`"),
    ("producerProperties: { 'max.in.flight': 6 }", "of the producer: `max.in.flight`"),
  ])
  func whatKafkasClientsWouldRefuseIsTold(members: String, words: String) throws {
    let report = try withFile(SigningKey.generate().privatePEM()) { key in
      try self.report(keyFile: key, kafka: members)
    }
    #expect(report.exitCode == .configuration)
    #expect(report.text.contains("✗ kafka: librdkafka refuses the properties \(words)"), "\(report.text)")
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

  @Test
  func connectionsAreListedAndDecideTheExitCode() throws {
    var report = try withFile(SigningKey.generate().privatePEM()) { key in try self.report(keyFile: key) }
    #expect(report.exitCode == .ok)
    report.connections = [
      .init(kind: .brokers, name: "b:9092", isGood: true, message: "reached"),
      .init(kind: .topic, name: "push.requests", isGood: true, message: "3 partitions"),
    ]
    #expect(report.exitCode == .ok)
    #expect(report.text.hasSuffix("✓ reaching kafka b:9092: reached\n✓ topic push.requests: 3 partitions"))
    report.connections?.append(
      .init(
        kind: .apns, name: "api.push.apple.com:443", apps: ["a", "b", "c", "d", "e", "f", "g"], isGood: false,
        message: "connect: Connection refused"))
    #expect(report.exitCode == .unavailable)
    #expect(
      report.text.hasSuffix(
        "✗ reaching APNs at api.push.apple.com:443 for a, b, c, d, e and 2 more apps: connect: Connection refused"))
    #expect(report.json.hasPrefix(#"{"ok":false,"#))
    #expect(
      report.json.hasSuffix(
        #""apps":["a","b","c","d","e","f","g"],"ok":false,"state":"bad","message":"connect: Connection refused"}]}"#))
  }

  @Test
  func nothingIsTriedWithABrokenConfiguration() async throws {
    var report = try report("{ kafka: { brokers: '127.0.0.1:1' } }")
    await report.connect(within: .seconds(1))
    #expect(report.connections == nil && report.exitCode == .configuration)
    #expect(!report.json.contains("connections"))
  }

  @Test
  func problemsReadAsTextWhereverTheyArePrinted() throws {
    try withFile("{\n kafka: { brokrs: 'x' },\n apps: {} }") { file in
      do throws(ConfigurationError) {
        _ = try SettingsLoader.load(file: file, environment: { _ in nil })
        Issue.record("loaded")
      } catch {
        let lines = "\(error)".split(separator: "\n").map(String.init)
        #expect(lines.first == "\(file):2:11: kafka.brokrs: unknown key (did you mean brokers?)", "\(lines)")
        #expect(lines.count == error.problems.count)
        #expect(lines.last == error.problems.last.map { "\($0)" })
      }
    }
  }
}
