import Delivery
import TestSupport
import Testing

@testable import Service

struct SettingsLoaderTests {
  private let fixture: SettingsFixture

  init() throws { fixture = try SettingsFixture() }

  @Test
  func leastConfigurationHasAllDefaults() throws {
    let loaded = try fixture.load("{ kafka: { brokers: 'b:9092' }, apps: { \(SettingsFixture.app) } }")
    let settings = loaded.settings
    #expect(loaded.warnings.isEmpty)
    #expect(settings.kafka.brokers == ["b:9092"])
    #expect(settings.kafka.group == "martlet")
    #expect(settings.kafka.topics.requests == ["push.requests"])
    #expect(settings.kafka.topics.invalidTokens == "push.invalid-tokens")
    #expect(settings.delivery.maxInFlight == 20_000)
    #expect(settings.delivery.maxInFlightBytes == 33_554_432)
    #expect(settings.delivery.attempts == 5)
    #expect(settings.delivery.requestTimeout == .seconds(30))
    #expect(settings.delivery.retryBackoff.initial == .milliseconds(500))
    #expect(settings.http.listen == ListenAddress(host: "0.0.0.0", port: 9464))
    #expect(settings.log.level == .info)
    #expect(settings.apps.map(\.name) == ["shop"])
    #expect(settings.apps[0].environment == .production)
    #expect(settings.apps[0].token?.keyFile == "\(fixture.files.path)/key.p8")
    #expect(loaded.files == ["\(fixture.files.path)/martlet.json5", "\(fixture.files.path)/key.p8"])
  }

  @Test
  func everySettingIsRead() throws {
    try fixture.files.write("password", "secret")
    let loaded = try fixture.load(
      """
      { kafka: { brokers: ['a:1', 'b:2'], group: 'g', groupInstanceId: 'i',
          topics: { requests: ['in.1', 'in.2'], results: 'r', invalidTokens: 't', deadLetters: 'd', deferred: 'f' },
          properties: { 'security.protocol': 'SSL', 'sasl.password': { file: 'password' }, 'socket.timeout.ms': 3000, 'socket.keepalive.enable': true },
          consumerProperties: { 'fetch.wait.max.ms': 10 }, producerProperties: { 'linger.ms': 0.5 } },
        apps: { a: { bundleId: 'com.example.a', environment: 'sandbox', defaultExpiration: '1h', maxConnections: 2,
                     maxInFlight: 7, certificate: { file: 'apns.pem', keyFile: 'key.p8', passwordFile: 'password' },
                     server: { host: 'mock', port: 2197, caFile: 'apns.pem' }, proxy: { host: 'own' },
                     pushTypes: { newtype: { topicSuffix: '.x' }, 'plain-type': { topicSuffix: '' } } } },
        delivery: { maxConnectionsPerApp: 1, maxStreamsPerConnection: 2, maxInFlight: 30, maxInFlightBytes: '2MiB',
                    maxInFlightPerApp: 5, attempts: 6, requestTimeout: '7s', connectTimeout: '8s', drainTimeout: '9s',
                    commitInterval: '100ms', lanes: 3, retryBackoff: { initial: '1s', max: '2s', lasting: '0s' },
                    proxy: { host: 'proxy', port: 8080, usernameFile: 'password', passwordFile: 'password' } },
        http: { listen: '[::1]:0' }, log: { level: 'debug', format: 'text' } }
      """)
    let settings = loaded.settings
    #expect(settings.kafka.brokers == ["a:1", "b:2"])
    #expect(settings.kafka.groupInstanceID == "i")
    #expect(settings.kafka.topics.requests == ["in.1", "in.2"])
    #expect(
      settings.kafka.properties == [
        KafkaProperty(name: "security.protocol", value: .text("SSL")),
        KafkaProperty(name: "sasl.password", value: .file("\(fixture.files.path)/password")),
        KafkaProperty(name: "socket.timeout.ms", value: .text("3000")),
        KafkaProperty(name: "socket.keepalive.enable", value: .text("true")),
      ])
    #expect(settings.kafka.producerProperties == [KafkaProperty(name: "linger.ms", value: .text("0.5"))])
    let app = settings.apps[0]
    #expect(app.environment == .sandbox && app.defaultExpiration == .seconds(3600))
    #expect(app.maxConnections == 2 && app.maxInFlight == 7)
    #expect(app.certificate?.passwordFile == "\(fixture.files.path)/password")
    #expect(app.server?.host == "mock" && app.server?.port == 2197)
    #expect(AppRules(app, nil).pushTypes == ["newtype": ".x", "plain-type": ""])
    #expect(app.proxy?.host == "own" && app.proxy?.port == 3128 && app.proxy?.usernameFile == nil)
    #expect(settings.delivery.proxy?.host == "proxy" && settings.delivery.proxy?.port == 8080)
    #expect(settings.delivery.proxy?.passwordFile == "\(fixture.files.path)/password")
    #expect(settings.delivery.maxInFlightBytes == 2_097_152)
    #expect(settings.delivery.commitInterval == .milliseconds(100))
    #expect(settings.delivery.lanes == 3 && settings.delivery.maxStreamsPerConnection == 2)
    #expect(settings.delivery.retryBackoff.max == .seconds(2) && settings.delivery.retryBackoff.lasting == .zero)
    #expect(settings.http.listen == ListenAddress(host: "::1", port: 0))
    #expect(settings.log.level == .debug && settings.log.format == .text)
  }

  @Test
  func allProblemsAreToldAtOnce() {
    let problems = fixture.problems(
      """
      {
        kafka: { group: 7 },
        apps: { shop: { bundleId: 'com.example.shop', enviroment: 'sandbox', token: { keyFile: 'gone.p8', keyId: 'ABC123DEFG' } } },
        delivery: { attempts: 0, requestTimeout: 30 },
        lgo: {},
      }
      """)
    let told = problems.map { "\($0.path)|\($0.line ?? 0)" }
    #expect(
      told.sorted() == [
        "apps.shop.enviroment|3", "apps.shop.token.keyFile|3", "apps.shop.token.teamId|3", "delivery.attempts|4",
        "delivery.requestTimeout|4", "kafka.brokers|2", "kafka.group|2", "lgo|5",
      ])
  }

  @Test(arguments: [
    ("delivery: { maxInflight: 3 }", "delivery.maxInflight", "unknown key", "maxInFlight"),
    ("deliver: {}", "deliver", "unknown key", "delivery"),
    ("log: { attempts: 3 }", "log.attempts", "unknown key", "delivery.attempts"),
    ("log: { level: 'warn' }", "log.level", "unknown word", nil),
    ("log: { level: 'debgu' }", "log.level", "unknown word", "debug"),
    ("delivery: { maxInFlight: 0 }", "delivery.maxInFlight", "out of range", nil),
    ("delivery: { maxStreamsPerConnection: 0 }", "delivery.maxStreamsPerConnection", "out of range", nil),
    ("delivery: { maxConnectionsPerApp: 0 }", "delivery.maxConnectionsPerApp", "out of range", nil),
    ("delivery: { maxInFlight: -5 }", "delivery.maxInFlight", "out of range", nil),
    ("delivery: { maxInFlightBytes: '1KiB' }", "delivery.maxInFlightBytes", "out of range", nil),
    ("delivery: { maxInFlightPerApp: '5' }", "delivery.maxInFlightPerApp", "wrong type", nil),
    ("delivery: { attempts: 2.5 }", "delivery.attempts", "wrong type", nil),
    ("delivery: { drainTimeout: '30' }", "delivery.drainTimeout", "no duration", nil),
    ("delivery: { drainTimeout: '0s' }", "delivery.drainTimeout", "out of range", nil),
    ("delivery: { retryBackoff: { initial: '1m', max: '1s' } }", "delivery.retryBackoff", "longer than max", nil),
    ("delivery: []", "delivery", "wrong type", nil), ("http: { listen: '9464' }", "http.listen", "no address", nil),
    ("http: { listen: 'x:70000' }", "http.listen", "no address", nil),
  ])
  func aWrongSettingIsNamed(members: String, path: String, message: String, nearest: String?) throws {
    let problems = fixture.problems(with: members)
    #expect(problems.count == 1, "\(problems)")
    let problem = try #require(problems.first)
    #expect(problem.path == path)
    #expect(problem.message.contains(message))
    #expect(problem.nearest == nearest)
    #expect(problem.line == 1 && problem.column != nil)
  }

  @Test(arguments: [
    ("bundleId: 'c'", "apps.shop", "no credentials"),
    (
      "bundleId: 'c', token: { keyFile: 'key.p8', keyId: 'ABC123DEFG', teamId: 'DEF123GHIJ' }, certificate: { file: 'apns.pem' }",
      "apps.shop", "exclude each other"
    ),
    ("certificate: { file: 'apns.pem' }", "apps.shop.bundleId", "missing"),
    ("bundleId: 'c', certificate: { file: 'gone.pem' }", "apps.shop.certificate.file", "no such file"),
    ("bundleId: 'c', certificate: { file: './' }", "apps.shop.certificate.file", "a directory"),
    (
      "bundleId: 'c', certificate: { file: 'apns.pem', password: 'x' }", "apps.shop.certificate.password",
      "passwordFile"
    ),
    ("bundleId: 'c', certificate: { file: 'apns.pem' }, server: { host: 'a' }, port: 2197", "apps.shop", "server"),
    (
      "bundleId: 'c', certificate: { file: 'apns.pem' }, server: { host: 'https://a' }", "apps.shop.server.host",
      "not allowed"
    ),
    (
      "bundleId: 'c', certificate: { file: 'apns.pem' }, pushTypes: { alert: { topicSuffix: '.x' } }",
      "apps.shop.pushTypes.alert", "knows the push type itself"
    ),
    (
      "bundleId: 'c', certificate: { file: 'apns.pem' }, pushTypes: { New: { topicSuffix: '.x' } }",
      "apps.shop.pushTypes.New", "not allowed"
    ),
    (
      "bundleId: 'c', certificate: { file: 'apns.pem' }, pushTypes: { new: { topicSuffix: 'x y' } }",
      "apps.shop.pushTypes.new.topicSuffix", "not allowed"
    ),
    (
      "bundleId: 'c', certificate: { file: 'apns.pem' }, pushTypes: { new: {} }", "apps.shop.pushTypes.new.topicSuffix",
      "missing"
    ),
    (
      "bundleId: 'c', certificate: { file: 'apns.pem' }, proxy: { host: 'a', password: 'x' }",
      "apps.shop.proxy.password", "passwordFile"
    ),
    (
      "bundleId: 'c', certificate: { file: 'apns.pem' }, proxy: { host: 'a', passwordFile: 'key.p8' }",
      "apps.shop.proxy", "without a user name"
    ),
    ("bundleId: 'c d', certificate: { file: 'apns.pem' }", "apps.shop.bundleId", "not allowed"),
  ])
  func aWrongAppIsNamed(members: String, path: String, message: String) {
    let problems = fixture.problems(ofApp: members)
    #expect(problems.map(\.path) == [path], "\(problems)")
    #expect(problems.first?.message.contains(message) == true, "\(problems)")
  }

  @Test
  func unusualIdsAreWarnedOfAndAccepted() throws {
    let app = "s: { bundleId: 'c', token: { keyFile: 'key.p8', keyId: 'short', teamId: 'DEF123GHIJ' } }"
    let loaded = try fixture.load("{ kafka: { brokers: 'b' }, apps: { \(app) } }")
    #expect(loaded.warnings.map(\.path) == ["apps.s.token.keyId"])
    #expect(loaded.warnings.allSatisfy { $0.severity == .warning })
    #expect(loaded.settings.apps[0].token?.keyID == "short")
  }

  @Test(arguments: ["'unknown'", "'a b'", "''", "'ä'"])
  func namesThatMakeBadLabelsAreRefused(name: String) {
    let app = "{ bundleId: 'c', certificate: { file: 'apns.pem' } }"
    let problems = fixture.problems("{ kafka: { brokers: 'b' }, apps: { \(name): \(app) } }")
    #expect(problems.count == 1 && problems[0].message.contains("name of an app"))
  }

  @Test(arguments: [
    "token: { keyFile: 'gone.p8', keyId: 'ABC123DEFG', teamId: 'DEF123GHIJ' }",
    "certificate: { file: 'apns.pem', keyFile: 'gone.pem' }", "certificate: { file: 'gone.p12', passwordFile: 'gone' }",
    "token: { keyFile: 'key.p8', keyId: 'ABC123DEFG', teamId: 'DEF123GHIJ' }, server: { host: 'h', caFile: 'gone' }",
  ])
  func theServiceDoesWithoutAppsWhoseFilesCannotBeRead(members: String) throws {
    let text = "{ kafka: { brokers: 'b' }, apps: { shop: { bundleId: 'b', \(members) } } }"
    let file = try fixture.files.write("martlet.json5", text)
    #expect(throws: ConfigurationError.self) { try SettingsLoader.load(file: file) { _ in nil } }
    let loaded = try SettingsLoader.load(file: file, environment: { _ in nil }, toleratesUnreadableApps: true)
    #expect(loaded.settings.apps.map(\.name) == ["shop"])
    #expect(loaded.warnings.contains { $0.message == "no such file" && $0.severity == .warning })
    // A secret in place of a path is no file that may come.
    let secret = try fixture.files.write(
      "secret.json5", text.replacing("'gone", with: "'-----BEGIN gone"))
    #expect(throws: ConfigurationError.self) {
      try SettingsLoader.load(file: secret, environment: { _ in nil }, toleratesUnreadableApps: true)
    }
  }

  @Test
  func syntaxErrorsNameTheLine() {
    let problems = fixture.problems("{\n  kafka: { brokers: 'b:9092' },\n  apps: {},,\n}")
    #expect(problems.count == 1)
    #expect(problems.first?.line == 3 && problems.first?.column == 12)
  }

  @Test
  func aMissingFileIsOneProblem() throws {
    let path = "\(fixture.files.path)/none.json5"
    do {
      _ = try SettingsLoader.load(file: path) { _ in nil }
      Issue.record("loaded")
    } catch {
      #expect(error.problems.map(\.text) == ["\(path): no such file"])
    }
  }

  @Test
  func noSettingStandsWithoutTheRequiredOnes() {
    let problems = fixture.problems("{}")
    #expect(problems.map(\.path) == ["kafka.brokers", "apps"])
    #expect(fixture.problems("[]").map(\.message) == ["wrong type"])
  }
}

struct EnvironmentTests {
  private let fixture: SettingsFixture

  init() throws { fixture = try SettingsFixture() }

  @Test
  func variablesAreReplacedInsideTexts() throws {
    let loaded = try fixture.load(
      """
      { kafka: { brokers: '${HOST}:${PORT}', group: 'a$b $${x} ${EMPTY}',
                 properties: { 'sasl.password': '${PASSWORD}' } }, apps: { \(SettingsFixture.app) } }
      """, environment: ["HOST": "kafka", "PORT": "9092", "EMPTY": "", "PASSWORD": Planted.password])
    #expect(loaded.settings.kafka.brokers == ["kafka:9092"])
    #expect(loaded.settings.kafka.group == "a$b ${x} ")
    #expect(
      loaded.settings.kafka.properties == [KafkaProperty(name: "sasl.password", value: .text(Planted.password))])
  }

  @Test
  func eachMissingVariableIsNamedOnce() {
    let problems = fixture.problems(with: "http: { listen: '${ADDRESS}:${PORT}' }, log: { level: '${LEVEL}' }")
    #expect(problems.map(\.path) == ["http.listen", "http.listen", "log.level"])
    #expect(problems.map { $0.message.contains("is not set") } == [true, true, true])
    #expect(problems[0].message.contains("ADDRESS"))
  }

  @Test(arguments: ["'${'", "'${}'", "'${A'", "'${1A}'", "'${A-B}'"])
  func brokenReferencesAreRefused(text: String) {
    let problems = fixture.problems(with: "log: { level: \(text) }", environment: ["A": "x"])
    #expect(problems.count == 1 && problems[0].message.contains("reference"), "\(problems)")
  }

  @Test
  func valuesFromTheEnvironmentAreNotShown() {
    let problems = fixture.problems(
      with: "log: { level: '${SECRET}' }, http: { listen: '${SECRET}' }", environment: ["SECRET": Planted.password])
    #expect(problems.count == 2)
    #expect(!problems.contains { $0.text.contains(Planted.password) })
  }

  @Test
  func secretsInTheFileAreNotShown() {
    let key = "-----BEGIN PRIVATE KEY-----\\nMIGHAgEAMBMGByqGSM49"
    let problems = fixture.problems(
      """
      { kafka: { brokers: 'b', properties: { 'ssl.key.password': '\(Planted.password)' } },
        apps: { a: { bundleId: 'c', certificate: { file: 'apns.pem', passwordFile: '\(Planted.password)' } },
                b: { bundleId: 'c', token: { keyFile: '\(key)', keyId: 'ABC123DEFG', teamId: 'DEF123GHIJ' } } } }
      """)
    #expect(problems.count == 3, "\(problems)")
    #expect(!problems.contains { $0.text.contains(Planted.password) || $0.text.contains("MIGH") })
  }
}

struct AppsDirectoryTests {
  private let fixture: SettingsFixture

  init() throws {
    fixture = try SettingsFixture()
    try fixture.files.makeDirectory("apps")
  }

  private func add(_ name: String, _ text: String) throws { try fixture.files.write("apps/\(name)", text) }

  @Test
  func eachFileIsAnAppNamedByTheFile() throws {
    try add("b.json5", "{ bundleId: 'com.b', certificate: { file: '../apns.pem' } }")
    try add("a.app.json", "{ \"bundleId\": \"com.a\", \"certificate\": { \"file\": \"../apns.pem\" } }")
    try add(".hidden.json5", "broken")
    try add("README.md", "broken")
    let loaded = try fixture.load("{ kafka: { brokers: 'b' }, apps: 'apps' }")
    #expect(loaded.settings.apps.map(\.name) == ["a.app", "b"])
    #expect(loaded.settings.apps.map(\.bundleID) == ["com.a", "com.b"])
    #expect(loaded.files.contains("\(fixture.files.path)/apps"))
    #expect(loaded.files.contains("\(fixture.files.path)/apps/b.json5"))
  }

  @Test
  func problemsNameTheFileTheyAreIn() throws {
    try add("bad.json5", "{\n bundleId: 'com.b',\n tokn: {} }")
    try add("worse.json5", "{ bundleId: }")
    let problems = fixture.problems("{ kafka: { brokers: 'b' }, apps: 'apps', log: 3 }")
    let told = problems.map { "\($0.file.split(separator: "/").last ?? "") \($0.path) \($0.line ?? 0)" }
    #expect(
      told == ["martlet.json5 log 1", "bad.json5 apps.bad.tokn 3", "bad.json5 apps.bad 1", "worse.json5  1"])
  }

  @Test
  func anEmptyOrMissingDirectoryIsAProblem() {
    #expect(
      fixture.problems("{ kafka: { brokers: 'b' }, apps: 'apps' }").first?.message.contains("no app files") == true)
    #expect(fixture.problems("{ kafka: { brokers: 'b' }, apps: 'none' }").first?.message == "no such directory")
  }

  @Test
  func twoFilesForOneAppAreAProblem() throws {
    let app = "{ bundleId: 'com.b', certificate: { file: '../apns.pem' } }"
    try add("a.json", "{ \"bundleId\": \"com.a\", \"certificate\": { \"file\": \"../apns.pem\" } }")
    try add("a.json5", app)
    let problems = fixture.problems("{ kafka: { brokers: 'b' }, apps: 'apps' }")
    #expect(problems.map(\.message) == ["two files for the app a"])
  }
}
