import APNs
import Kafka
import MockAPNs
import Service
import Synchronization
import TestSupport
import Testing
import Transport
import Wire

/// What a test's world is made of.
struct Plan: Sendable {
  /// An APNs of its own, with faults of its own.
  struct Server: Sendable {
    var name: String
    var script = Script()
    /// How many streams a connection may have, before and after the first accepted request.
    var streams = (first: 1, later: 1000)
    /// Nobody listens at first; see `World.raise`.
    var isDown = false
  }

  struct App: Sendable {
    var name: String
    /// Apps of one team share its key.
    var team = 1
    var server: String
  }

  var servers: [Server]
  var apps: [App]
  var requestPartitions = 4
  var change: @Sendable (inout Settings) -> Void = { _ in }

  /// One app for each server, of the same name.
  init(_ servers: [Server], requestPartitions: Int = 4, change: @escaping @Sendable (inout Settings) -> Void = { _ in })
  {
    self.servers = servers
    apps = servers.map { App(name: $0.name, server: $0.name) }
    self.requestPartitions = requestPartitions
    self.change = change
  }

  /// One app, "app".
  init(_ script: Script = Script(), requestPartitions: Int = 4, change: @escaping @Sendable (inout Settings) -> Void) {
    self.init([Server(name: "app", script: script)], requestPartitions: requestPartitions, change: change)
  }
}

/// Brokers, look-alikes of APNs, keys in files, and settings that name them: all that a service needs.
final class World: Sendable {
  static let outputPartitions = 2
  static let topics = Settings().kafka.topics
  static let group = "martlet"

  let cluster: MockCluster
  let settings: Settings
  let writer: Writer
  let books: Books
  let files: TemporaryFiles
  private let servers: [String: MockServer]
  private let configurations: [String: MockServer.Configuration]
  private let running = Mutex<[RunningService]>([])

  private init(_ plan: Plan) throws {
    let cluster = try MockCluster()
    for name in Self.topics.requests { try cluster.createTopic(name, partitions: plan.requestPartitions) }
    for name in Books.topics { try cluster.createTopic(name, partitions: Self.outputPartitions) }
    let files = try TemporaryFiles()
    let keys = try (1...3).map { try ProviderKey.make(keyID: "TESTKEY00\($0)", teamID: "TESTTEAM0\($0)") }
    for key in keys {
      let text = try key.key.privatePEM()
      Planted.note(pem: text)
      try files.write("\(key.keyID).p8", text)
    }
    let authority = try CertificateAuthority(name: "APNs look-alike")
    try files.write("ca.pem", authority.pem())
    var servers: [String: MockServer] = [:]
    var configurations: [String: MockServer.Configuration] = [:]
    for server in plan.servers {
      var configuration = Self.configuration(server)
      configuration.keys = keys
      configuration.authority = authority
      let mock = try MockServer.start(configuration)
      // The port is known once it was listened on, and serves again later.
      if server.isDown { mock.stop() }
      configuration.listen.port = mock.port
      servers[server.name] = mock
      configurations[server.name] = configuration
    }
    self.cluster = cluster
    self.files = files
    self.servers = servers
    self.configurations = configurations
    settings = Self.settings(plan, cluster: cluster, files: files, keys: keys, ports: servers.mapValues(\.port))
    writer = try Writer(settings)
    books = try Books(settings)
  }

  private static func configuration(_ server: Plan.Server) -> MockServer.Configuration {
    var configuration = MockServer.Configuration()
    configuration.script = server.script
    configuration.streamsAtFirst = server.streams.first
    configuration.streamsLater = server.streams.later
    configuration.journal.requests = 10_000
    return configuration
  }

  private static func settings(
    _ plan: Plan, cluster: MockCluster, files: TemporaryFiles, keys: [ProviderKey], ports: [String: UInt16]
  ) -> Settings {
    var settings = Settings()
    settings.kafka.brokers = [cluster.bootstrapServers]
    settings.kafka.group = group
    settings.http.listen = ListenAddress(host: "127.0.0.1", port: 0)
    // The mock cluster lets nearly a session timeout pass with each rebalance but the first.
    settings.kafka.consumerProperties = [
      KafkaProperty(name: "session.timeout.ms", value: .text("4000")),
      KafkaProperty(name: "heartbeat.interval.ms", value: .text("300")),
    ]
    settings.delivery.lanes = 1
    settings.delivery.commitInterval = .milliseconds(200)
    settings.delivery.retryBackoff.initial = .milliseconds(50)
    settings.delivery.retryBackoff.lasting = .zero
    settings.apps = plan.apps.map { app in
      var result = AppSettings()
      result.name = app.name
      result.bundleID = "com.example.\(app.name)"
      var token = TokenSettings()
      token.keyFile = files.path(of: "\(keys[app.team - 1].keyID).p8")
      token.keyID = keys[app.team - 1].keyID
      token.teamID = keys[app.team - 1].teamID
      result.token = token
      var server = ServerSettings()
      server.host = "localhost"
      server.port = Int(ports[app.server] ?? 0)
      server.caFile = files.path(of: "ca.pem")
      result.server = server
      return result
    }
    plan.change(&settings)
    return settings
  }

  /// Makes a world, hands it over, and takes it down whatever happened in it.
  static func with(_ plan: Plan, _ body: (World) async throws -> Void) async throws {
    let world = try World(plan)
    do {
      try await body(world)
    } catch {
      await world.end()
      throw error
    }
    await world.end()
  }

  private func end() async {
    let left = running.withLock { exchange(&$0, with: []) }
    for service in left { service.service.drain() }
    for service in left { _ = await service.service.ended() }
    for server in servers.values { server.stop() }
  }

  // MARK: What tests do

  /// Starts a service; it is drained with the world, if it was not before.
  func start(_ change: (inout Settings) -> Void = { _ in }) throws -> RunningService {
    var settings = settings
    change(&settings)
    let service = try RunningService(settings)
    running.withLock { $0.append(service) }
    return service
  }

  /// Drains a service and waits until it has ended.
  func drain(_ service: RunningService) async -> Service.End {
    running.withLock { $0.removeAll { $0 === service } }
    service.service.drain()
    return await service.service.ended()
  }

  func apns(_ name: String = "app") throws -> MockServer { try #require(servers[name]) }
  func journal(_ name: String = "app") throws -> Journal { try apns(name).journal }

  /// Has a server that was down listen, on the port that the apps know; the caller stops it.
  func raise(_ name: String) throws -> MockServer { try MockServer.start(try #require(configurations[name])) }

  /// Waits for the results of so many notifications whose ids begin with `prefix`.
  ///
  /// - Returns: all results of such ids, repeated ones too.
  func results(_ prefix: String = "", count: Int, within limit: Duration = .seconds(60)) async throws -> [Entry] {
    try await entries(of: Self.topics.results, prefix, count: count, within: limit)
  }

  /// The same for any topic that the service writes.
  func entries(
    of topic: String, _ prefix: String, count: Int, within limit: Duration = .seconds(60)
  ) async throws -> [Entry] {
    var found: [Entry] = []
    let isComplete = await eventually(within: limit) {
      found = await books.read(topic).filter { $0.id?.hasPrefix(prefix) ?? prefix.isEmpty }
      return Set(found.map(\.name)).count >= count
    }
    if !isComplete {
      let lines = running.withLock { $0.flatMap { $0.lines.value.suffix(40) } }
      Issue.record("\(Set(found.map(\.name)).count) of \(count) on \(topic); the log ends:\n\(lines.joined())")
    }
    try #require(isComplete)
    return found
  }

  /// What the group has committed for the topic that requests come from, by partition.
  func committed(_ partitions: Int) async throws -> [CommittedOffset] {
    try await books.committed(partitions)
  }
}

/// A service at work, its numbers and its log.
final class RunningService: Sendable {
  let service: Service
  let registry: Registry
  let lines = Monitor<[String]>([])

  init(_ settings: Settings) throws {
    registry = Registry(versions: BuildVersions(martlet: "0", librdkafka: "0", nghttp2: "0", openssl: "0"))
    // All of it is kept, to be searched for secrets; the lines for each notification would hide the others.
    let log = Log(
      level: .trace, format: .text,
      sink: { [lines] line in
        Planted.keep(log: line)
        let text = String(decoding: line, as: UTF8.self)
        if !text.contains(" TRACE ") { lines.update { $0.append(text) } }
      })
    service = try Service.start(settings, log: log, registry: registry)
  }

  var snapshot: MetricSnapshot { registry.snapshot() }
}

/// Lets the tests of a suite share one world with one running service, as they share a production service: each with an
/// app, or ids, of its own.
struct InOneWorld: SuiteTrait, TestScoping {
  let plan: Plan

  @TaskLocal static var current: (world: World, service: RunningService)?

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    try await World.with(plan) { world in
      let service = try world.start()
      try await Self.$current.withValue((world, service)) { try await function() }
    }
  }
}
