import TestSupport
import Testing
import Transport
import Wire

@testable import Service

struct CredentialCheckTests {
  private static let day: Int64 = 86_400
  private static let now = UnixTime(seconds: 1_800_000_000)

  private let files: TemporaryFiles

  init() throws { files = try TemporaryFiles() }

  private func problems(_ apps: [AppSettings]) -> [ConfigurationProblem] {
    var settings = Settings()
    settings.apps = apps
    return CredentialCheck.findings(in: settings, file: "martlet.json5", now: Self.now).problems
  }

  private func tokenApp(_ name: String, keyFile: String) -> AppSettings {
    var app = AppSettings()
    app.name = name
    app.token = TokenSettings(keyFile: keyFile, keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
    return app
  }

  /// An app whose certificate is valid from and until a number of days from now.
  private func certificateApp(from: Int64, until: Int64, owner: String = "com.example") throws -> AppSettings {
    let validity = CertificateAuthority.Validity(
      from: UnixTime(seconds: Self.now.seconds + from * Self.day),
      until: UnixTime(seconds: Self.now.seconds + until * Self.day))
    let identity = try CertificateAuthority(name: "test").issueClient(name: "app", userID: owner, validity: validity)
    let text = try identity.certificatePEM() + identity.privateKeyPEM()
    var app = AppSettings()
    app.name = "legacy"
    app.bundleID = "com.example"
    app.certificate = CertificateSettings(file: try files.write("apns.pem", text))
    return app
  }

  @Test
  func goodCredentialsPass() throws {
    let key = try files.write("key.p8", SigningKey.generate().privatePEM())
    #expect(problems([tokenApp("shop", keyFile: key), try certificateApp(from: -1, until: 300)]).isEmpty)
  }

  @Test
  func everyAppWithABrokenKeyIsNamed() throws {
    let key = try files.write("key.p8", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0c2VjcmV0\n-----END PRIVATE KEY-----\n")
    let found = problems([tokenApp("a", keyFile: key), tokenApp("b", keyFile: key)])
    #expect(found.map(\.path) == ["apps.a.token.keyFile", "apps.b.token.keyFile"])
    #expect(!found.contains { $0.text.contains("c2VjcmV0") })
  }

  @Test(arguments: [
    (Int64(-300), Int64(-1), "expired", ConfigurationProblem.Severity.error), (1, 300, "not valid yet", .error),
    (-300, 10, "expires soon", .warning),
  ])
  func certificatesAreDated(from: Int64, until: Int64, words: String, severity: ConfigurationProblem.Severity) throws {
    let found = problems([try certificateApp(from: from, until: until)])
    #expect(found.map(\.path) == ["apps.legacy.certificate.file"])
    #expect(found.first?.message.contains(words) == true && found.first?.severity == severity, "\(found)")
  }

  @Test
  func aCertificateOfAnotherAppIsWarnedOf() throws {
    let found = problems([try certificateApp(from: -1, until: 300, owner: "com.other")])
    #expect(found.map(\.message) == ["the certificate is for another app"])
    #expect(found.first?.found == "com.other" && found.first?.allowed == "com.example")
  }

  @Test
  func unusableFilesAreNamed() throws {
    var app = AppSettings()
    app.name = "a"
    app.certificate = CertificateSettings(file: try files.write("x.pem", "nothing"))
    app.server = ServerSettings(host: "mock", port: 1, caFile: try files.write("ca.pem", "nothing"))
    #expect(problems([app]).map(\.path) == ["apps.a.certificate", "apps.a.server.caFile"])
  }
}
