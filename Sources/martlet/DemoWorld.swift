import Kafka
import MockAPNs
import Service
import Transport

/// What the service of the demo runs in: brokers, APNs, keys in files, and a configuration that names them.
struct DemoWorld {
  struct App: Sendable {
    var name: String
    var bundleID: String
  }

  static let requestPartitions = 16
  static let outputPartitions = 8

  let kafka: MockCluster
  let apns: MockServer
  let apps: [App]
  private(set) var settings = Settings()
  private let directory: String
  private var files: [String] = []

  init(_ options: DemoOptions) throws {
    apps = (1...options.apps).map { App(name: "app-\($0)", bundleID: "com.example.app\($0)") }
    directory = try LocalFile.makeTemporaryDirectory()
    kafka = try MockCluster()
    // Three teams, so that apps share provider tokens as they do in real life.
    let keys = try (1...min(3, options.apps)).map {
      try ProviderKey.make(keyID: "DEMOKEY00\($0)", teamID: "DEMOTEAM0\($0)")
    }
    var configuration = MockServer.Configuration()
    configuration.keys = keys
    configuration.seed = options.seed
    configuration.script = Script.wellKnown
    if options.hasFaults { configuration.script = .wellKnown + .faults(strength: Double(options.faultStrength)) }
    apns = try MockServer.start(configuration)
    try makeTopics()
    try write("ca.pem", apns.authorityPEM)
    for key in keys { try write("AuthKey_\(key.keyID).p8", key.key.privatePEM()) }
    configure(options, keys)
  }

  private func makeTopics() throws {
    let topics = settings.kafka.topics
    for name in topics.requests { try kafka.createTopic(name, partitions: Self.requestPartitions) }
    for name in [topics.results, topics.invalidTokens, topics.deadLetters, topics.deferred] {
      try kafka.createTopic(name, partitions: Self.outputPartitions)
    }
  }

  private mutating func configure(_ options: DemoOptions, _ keys: [ProviderKey]) {
    settings.kafka.brokers = [kafka.bootstrapServers]
    settings.http.listen = options.listen
    // Silence should show within a demo's time.
    settings.delivery.requestTimeout = .seconds(3)
    // And so should the end of trouble that lasts.
    settings.delivery.retryBackoff.lasting = .zero
    settings.apps = apps.enumerated().map { index, app in
      var result = AppSettings()
      result.name = app.name
      result.bundleID = app.bundleID
      let key = keys[index % keys.count]
      var token = TokenSettings()
      token.keyFile = "\(directory)/AuthKey_\(key.keyID).p8"
      token.keyID = key.keyID
      token.teamID = key.teamID
      result.token = token
      var server = ServerSettings()
      server.host = "localhost"
      server.port = Int(apns.port)
      server.caFile = "\(directory)/ca.pem"
      result.server = server
      return result
    }
  }

  private mutating func write(_ name: String, _ text: String) throws {
    let path = "\(directory)/\(name)"
    try LocalFile.write(Array(text.utf8), to: path, isSecret: true)
    files.append(path)
  }

  /// Removes the files that were made.
  func remove() {
    for file in files { LocalFile.remove(file: file, directory: directory) }
  }
}
