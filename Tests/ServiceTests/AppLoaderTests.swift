import APNs
import Delivery
import Glibc
import Synchronization
import TestSupport
import Testing
import Transport
import Wire

@testable import Service

/// Keeps the lines of a log.
final class LogLines: Sendable {
  private let state = Mutex<[String]>([])

  var lines: [String] { state.withLock { $0 } }

  @Sendable
  func take(_ line: [UInt8]) { state.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }
}

struct AppLoaderTests {
  private let files: TemporaryFiles

  init() throws { files = try TemporaryFiles() }

  private func app(_ name: String, key: String, team: String = "DEF123GHIJ") -> AppSettings {
    var app = AppSettings()
    app.name = name
    app.bundleID = "com.example.\(name)"
    app.token = TokenSettings(keyFile: key, keyID: "ABC123DEFG", teamID: team)
    return app
  }

  private func contents(_ apps: [AppSettings]) -> [String: FileContent] {
    var settings = Settings()
    settings.apps = apps
    return ConfigurationImage(reading: settings).contents
  }

  private func source(_ runtime: AppRuntime) throws -> TokenSource {
    guard case .token(let source) = runtime.credentials else { throw ServiceError(description: "token") }
    return source
  }

  @Test
  func appsOfOneKeyShareItsTokenAlsoOverAReload() throws {
    let key = try SigningKey.generate().privatePEM()
    let file = try files.write("a.p8", key)
    let apps = [app("a", key: file), app("b", key: file), app("c", key: file, team: "OTHER12345")]
    var loader = AppLoader(delivery: DeliverySettings(), laneCount: 1)
    let sources = try apps.map { try source(loader.load($0, contents(apps)).get()) }
    #expect(sources[0] === sources[1] && sources[0] !== sources[2])

    // The same key under another name, as after a swap.
    let copy = [app("a", key: try files.write("copy.p8", key))]
    #expect(try source(loader.load(copy[0], contents(copy)).get()) === sources[0])
  }

  @Test
  func anotherKeyHasItsOwnTokensAndTheOldOneIsKeptForATime() throws {
    let old = try SigningKey.generate().privatePEM()
    let apps = [app("a", key: try files.write("a.p8", old))]
    var loader = AppLoader(delivery: DeliverySettings(), laneCount: 1)
    let first = try loader.load(apps[0], contents(apps)).get()
    try files.write("a.p8", SigningKey.generate().privatePEM())
    let second = try loader.load(apps[0], contents(apps)).get()
    #expect(try source(first) !== source(second))

    let now = Instant(nanoseconds: 1)
    loader.forget(unusedBy: [second], now: now)
    try files.write("a.p8", old)
    let third = try loader.load(apps[0], contents(apps)).get()
    #expect(try source(third) === source(first))
    loader.forget(unusedBy: [second], now: now + .seconds(3601))
    let fourth = try loader.load(apps[0], contents(apps)).get()
    #expect(try source(fourth) !== source(first))
  }

  @Test
  func aCopyLeavesTheLoaderAsItWas() throws {
    let apps = [app("a", key: try files.write("a.p8", SigningKey.generate().privatePEM()))]
    var loader = AppLoader(delivery: DeliverySettings(), laneCount: 1)
    var draft = loader
    let drafted = try source(draft.load(apps[0], contents(apps)).get())
    #expect(try source(loader.load(apps[0], contents(apps)).get()) !== drafted)
  }

  @Test
  func anAppThatCannotBeUsedIsNamed() throws {
    let apps = [app("a", key: try files.write("a.p8", "nothing"))]
    var loader = AppLoader(delivery: DeliverySettings(), laneCount: 1)
    let fault = try #require(loader.load(apps[0], contents(apps)).fault)
    #expect(fault.app == "a" && fault.text.contains("a.p8"))
  }

  @Test(arguments: [
    (PushCertificateScope(), AppRules.Environment.production, nil),
    (PushCertificateScope(topics: ["com.example", "com.example.voip"]), .sandbox, nil),
    (PushCertificateScope(topics: ["com.other"]), .production, "the app's bundle id"),
    (PushCertificateScope(topics: ["com.example.voip"]), .production, nil),
    (PushCertificateScope(topics: ["com.example.other", "com.example.voip.x"]), .production, "the app's bundle id"),
    (PushCertificateScope(allowsSandbox: true), .production, "another environment"),
    (PushCertificateScope(allowsProduction: true), .sandbox, "another environment"),
    (PushCertificateScope(topics: ["com.example"], allowsSandbox: true, allowsProduction: true), .sandbox, nil),
    (PushCertificateScope(allowsSandbox: true), .sandbox, nil),
  ])
  func aCertificateMustCoverItsApp(scope: PushCertificateScope, environment: AppRules.Environment, words: String?) {
    var app = AppSettings()
    app.bundleID = "com.example"
    app.environment = environment
    let fault = scope.fault(for: app)
    #expect((fault == nil) == (words == nil))
    if let words { #expect(fault?.message.contains(words) == true) }
  }
}

/// Certificates as Apple issues them, made with OpenSSL's own tool.
struct PushCertificateUseTests {
  private let files: TemporaryFiles

  init() throws { files = try TemporaryFiles() }

  /// An app with a certificate for the production environment and one topic.
  private func app(topic: String) throws -> AppSettings {
    try files.write(
      "request.cnf",
      """
      [req]
      distinguished_name = name
      x509_extensions = extensions
      prompt = no
      [name]
      CN = Apple Push Services
      [extensions]
      1.2.840.113635.100.6.3.2 = ASN1:NULL
      1.2.840.113635.100.6.3.6 = ASN1:SEQUENCE:topics
      [topics]
      a = UTF8:\(topic)
      b = SEQUENCE:tags
      [tags]
      a = UTF8:app
      """)
    let command =
      "cd \(files.path) && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 300 "
      + "-config request.cnf -keyout key.pem -out certificate.pem 2>&1"
    guard let process = unsafe popen(command, "r") else { throw SystemFailure(code: errno) }
    while unsafe fgetc(process) != EOF {}
    let status = unsafe pclose(process)
    try #require(status == 0)
    var app = AppSettings()
    app.name = "legacy"
    app.bundleID = "com.example"
    app.certificate = CertificateSettings(file: "\(files.path)/certificate.pem", keyFile: "\(files.path)/key.pem")
    return app
  }

  private func problems(_ app: AppSettings) -> [String] {
    var settings = Settings()
    settings.apps = [app]
    return CredentialCheck.findings(in: settings, file: "martlet.json5", now: ServiceClock.now().time).problems.map(
      \.message)
  }

  @Test
  func aCertificateThatCoversItsAppIsUsed() throws {
    let app = try app(topic: "com.example")
    var loader = AppLoader(delivery: DeliverySettings(), laneCount: 1)
    guard case .certificate(let validUntil, _) = try loader.load(app, [:]).get().credentials else {
      throw ServiceError(description: "certificate")
    }
    #expect(ExpiryStage(of: validUntil, at: ServiceClock.now().time) == .distant)
    #expect(problems(app).isEmpty)
  }

  @Test
  func whatItCoversIsKnownToTheRulesOfRequests() throws {
    let app = try app(topic: "com.example")
    var loader = AppLoader(delivery: DeliverySettings(), laneCount: 1)
    let runtime = try loader.load(app, [:]).get()
    #expect(AppRules(app, runtime).certificate == CertificateRules(topics: ["com.example"]))
    #expect(AppRules(app, nil).certificate == nil)
  }

  @Test
  func oneThatDoesNotIsRefusedAtTheStartAndByTheCheck() throws {
    var app = try app(topic: "com.other")
    var loader = AppLoader(delivery: DeliverySettings(), laneCount: 1)
    #expect(loader.load(app, [:]).fault?.text.contains("com.other") == true)
    #expect(problems(app) == ["the certificate does not cover the app's bundle id"])
    app.bundleID = "com.other"
    app.environment = .sandbox
    #expect(loader.load(app, [:]).fault != nil)
    #expect(problems(app) == ["the certificate is for another environment"])
  }
}
