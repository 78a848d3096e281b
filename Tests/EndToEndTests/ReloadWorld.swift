import Glibc
import Kafka
import MockAPNs
import Service
import Synchronization
import TestSupport
import Testing
import Transport
import Wire

/// A service that runs from files, as in production, with all that it needs around it.
final class ReloadWorld: Sendable {
  static let requests = "push.requests"

  let cluster: MockCluster
  let apns: MockServer
  let files: TemporaryFiles
  let registry: Registry
  let service: Service
  let watcher: ConfigurationWatcher
  let traffic: ReloadTraffic
  private let logged: LogCopy

  /// What the service logged.
  private final class LogCopy: Sendable {
    let lines = Mutex<[String]>([])
  }

  /// The keys as they stand in their files.
  let keys: [String]

  /// - Parameters:
  ///   - apps: with the number of the key that each one uses.
  ///   - change: of the files, before the service starts.
  init(apps: [String: Int], script: Script, change: (TemporaryFiles) throws -> Void = { _ in }) throws {
    cluster = try MockCluster()
    try cluster.createTopic(Self.requests, partitions: 2)
    for topic in ["push.results", "push.invalid-tokens", "push.dead-letters", "push.deferred"] {
      try cluster.createTopic(topic, partitions: 1)
    }
    var configuration = MockServer.Configuration()
    // Keys of two teams: one connection may not change from one to the other.
    configuration.keys = try (1...2).map { try ProviderKey.make(keyID: "TESTKEY00\($0)", teamID: "TESTTEAM0\($0)") }
    configuration.script = script
    configuration.journal.requests = 100_000
    apns = try MockServer.start(configuration)
    files = try TemporaryFiles()
    try files.replace("ca.pem", apns.authorityPEM)
    keys = try configuration.keys.map { try $0.key.privatePEM() }
    for (key, text) in zip(configuration.keys, keys) {
      Planted.note(pem: text)
      try files.replace("\(key.keyID).p8", text)
    }
    try files.makeDirectory("apps")
    for (name, key) in apps { try files.replace("apps/\(name).json5", Self.app(name, key: key, port: apns.port)) }
    let main = try files.replace(
      "martlet.json5",
      """
      { kafka: { brokers: "\(cluster.bootstrapServers)", group: "reload" }, apps: "apps",
        http: { listen: "127.0.0.1:0" },
        delivery: { lanes: 2, maxConnectionsPerApp: 2, commitInterval: "200ms", retryBackoff: { initial: "50ms" } } }
      """)
    try change(files)
    let loaded = try SettingsLoader.load(file: main, toleratesUnreadableApps: true)
    let logged = LogCopy()
    self.logged = logged
    registry = Registry(
      versions: BuildVersions(martlet: "test", librdkafka: "test", nghttp2: "test", openssl: "test"))
    let log = Log(
      format: .text,
      sink: { line in
        Planted.keep(log: line)
        logged.lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
      })
    service = try Service.start(loaded.settings, log: log, registry: registry)
    watcher = ConfigurationWatcher(file: main, files: loaded.files, service: service)
    traffic = try ReloadTraffic(cluster.bootstrapServers)
  }

  static func app(_ name: String, key: Int, port: UInt16) -> String {
    """
    { bundleId: "com.example.\(name)", server: { host: "localhost", port: \(port), caFile: "../ca.pem" },
      token: { keyFile: "../TESTKEY00\(key).p8", keyId: "TESTKEY00\(key)", teamId: "TESTTEAM0\(key)" } }
    """
  }

  func writeApp(_ name: String, key: Int) throws {
    try files.replace("apps/\(name).json5", Self.app(name, key: key, port: apns.port))
  }

  /// What two looks of the watcher do, which is what a change takes.
  func look() async {
    await watcher.look()
    await watcher.look()
  }

  var log: String { logged.lines.withLock { $0.joined() } }

  /// Drains and ends the service, and the world with it.
  func end() async -> Service.End {
    service.drain()
    let end = await service.ended()
    apns.stop()
    return end
  }
}

/// Writes requests and reads their results.
actor ReloadTraffic {
  struct Result: Sendable {
    var status: String
    var reason: String
  }

  private let producer: Producer
  private let topic: TopicHandle
  private let consumer: Consumer
  private var reports: [DeliveryReport] = []
  private var batch: [Record] = []
  /// By id.
  private(set) var results: [String: [Result]] = [:]
  /// The ids of all that was produced, by app.
  private(set) var produced: [String: [String]] = [:]

  init(_ brokers: String) throws {
    let properties = try KafkaProperties(brokers: brokers)
    producer = try Producer(properties: properties, log: { _ in })
    topic = try producer.topic(ReloadWorld.requests)
    consumer = try Consumer(
      properties: properties, group: "reader", topics: ["push.results"], membership: .manual, log: { _ in })
    try consumer.assign([StartingPoint(partition: PartitionID(topic: 0, partition: 0), offset: 0)])
  }

  /// Produces one request of each app, `count` times.
  func produce(_ apps: [String], _ count: Int) throws {
    for _ in 0..<count {
      for app in apps {
        let id = "\(app)-\(produced[app, default: []].count)"
        let value = #"{"id":"\#(id)","app":"\#(app)","token":"\#(Planted.token)","payload":\#(Planted.payload)}"#
        _ = try producer.produce(
          topic: topic, key: Bytes(id), value: Bytes(value), headerStorage: [], headers: [], ticket: 1)
        produced[app, default: []].append(id)
      }
    }
    _ = producer.takeReports(into: &reports, limit: .max)
    reports.removeAll()
  }

  var count: Int { produced.values.reduce(0) { $0 + $1.count } }

  /// Waits until so many requests have a result.
  func wait(for count: Int, within limit: Duration = .seconds(60)) async -> Bool {
    _ = producer.flush(into: &reports, timeout: .seconds(30))
    reports.removeAll()
    return await eventually(within: limit) {
      read()
      return results.count >= count
    }
  }

  func status(_ app: String) -> [String: Int] {
    var counts: [String: Int] = [:]
    for id in produced[app] ?? [] { for result in results[id] ?? [] { counts[result.status, default: 0] += 1 } }
    return counts
  }

  private func read() {
    repeat {
      _ = consumer.poll(into: &batch, limit: 1000)
      for record in batch {
        guard let value = record.body.value else { continue }
        let fields = Self.fields(Bytes(record.body.storage, value).array)
        results[fields["id"] ?? "", default: []].append(
          Result(status: fields["status"] ?? "", reason: fields["reason"] ?? ""))
      }
      batch.removeAll()
    } while consumer.hasRecords
  }

  /// The texts of an object that has no escapes in what is asked for here.
  private static func fields(_ text: [UInt8]) -> [String: String] {
    var fields: [String: String] = [:]
    do {
      var scanner = JSONScanner(text.span)
      try scanner.beginObject()
      while let key = try scanner.nextKey() {
        guard case .string(let value) = try scanner.value() else { continue }
        fields[Bytes(text, key.range).text] = Bytes(text, value.range).text
      }
    } catch {
      return [:]
    }
    return fields
  }
}
