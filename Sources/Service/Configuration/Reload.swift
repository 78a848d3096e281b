internal import Delivery

/// A configuration with what stood in the files that its apps and its Kafka clients are made from: all that decides
/// whether anything has to be made anew.
struct ConfigurationImage: Sendable {
  var settings: Settings
  /// By path.
  var contents: [String: FileContent]

  /// Reads the files. Do it before they are used: should one change in between, the next look finds it changed.
  ///
  /// - Parameter others: files that stand in other settings, and are in use.
  init(reading settings: Settings, and others: [String] = []) {
    self.settings = settings
    contents = [:]
    let files = settings.apps.flatMap(\.files) + settings.kafka.files + (settings.delivery.proxy?.files ?? []) + others
    for file in files where contents[file] == nil {
      contents[file] = FileContent.read(file)
    }
  }

  init(settings: Settings, contents: [String: FileContent]) {
    self.settings = settings
    self.contents = contents
  }
}

/// What a reload has to do: the difference between the configuration that is in effect and another one. Pure.
package struct ReloadPlan: Equatable, Sendable {
  /// Apps by name, in the order of the new configuration; removed ones in the order of the old.
  package var added: [String] = []
  /// Their credentials, server, topics or limits changed: they need new connections.
  package var changed: [String] = []
  /// Only how requests are judged has changed; connections stay.
  package var adjusted: [String] = []
  package var removed: [String] = []
  package var logLevel: LogLevel?
  /// Settings that differ and take effect with the next start only.
  package var needsRestart: [String] = []

  package init() {}

  /// Whether nothing that can take effect differs.
  package var isEmpty: Bool {
    added.isEmpty && changed.isEmpty && adjusted.isEmpty && removed.isEmpty && logLevel == nil
  }

  init(from running: ConfigurationImage, to next: ConfigurationImage) {
    // The proxy that is in use until the next start.
    let shared = running.settings.delivery.proxy?.files ?? []
    let before = Dictionary(running.settings.apps.map { ($0.name, $0) }, uniquingKeysWith: { _, last in last })
    for app in next.settings.apps {
      guard let known = before[app.name] else {
        added.append(app.name)
        continue
      }
      let files = app.files + (app.proxy == nil ? shared : [])
      let hasSameFiles = files.allSatisfy { running.contents[$0] == next.contents[$0] }
      if !hasSameFiles || app.connectionSettings != known.connectionSettings {
        changed.append(app.name)
      } else if app != known {
        adjusted.append(app.name)
      }
    }
    let names = Set(next.settings.apps.map(\.name))
    removed = running.settings.apps.map(\.name).filter { !names.contains($0) }
    if running.settings.log.level != next.settings.log.level { logLevel = next.settings.log.level }
    needsRestart = FixedSettings.differing(running, next)
  }
}

extension AppSettings {
  /// The same without what only the judging of requests depends on.
  fileprivate var connectionSettings: AppSettings {
    var settings = self
    settings.defaultExpiration = nil
    settings.maxInFlight = nil
    settings.pushTypes = []
    return settings
  }
}

extension KafkaSettings {
  /// The files that the clients read once: secrets, certificates.
  var files: [String] { (properties + consumerProperties + producerProperties).compactMap(\.file) }
}

extension KafkaProperty {
  /// The file that it stands in, or names.
  var file: String? {
    switch value {
    case .text: nil
    case .file(let path), .path(let path): path
    }
  }
}

/// The settings that are read once, at the start.
enum FixedSettings {
  struct Setting: Sendable {
    /// As in the configuration.
    var path: String
    var differs: @Sendable (Settings, Settings) -> Bool
  }

  static let all: [Setting] = [
    setting("kafka.brokers", \.kafka.brokers), setting("kafka.group", \.kafka.group),
    setting("kafka.groupInstanceId", \.kafka.groupInstanceID),
    setting("kafka.topics.requests", \.kafka.topics.requests),
    setting("kafka.topics.results", \.kafka.topics.results),
    setting("kafka.topics.invalidTokens", \.kafka.topics.invalidTokens),
    setting("kafka.topics.deadLetters", \.kafka.topics.deadLetters),
    setting("kafka.topics.deferred", \.kafka.topics.deferred), setting("kafka.properties", \.kafka.properties),
    setting("kafka.consumerProperties", \.kafka.consumerProperties),
    setting("kafka.producerProperties", \.kafka.producerProperties),
    setting("kafka.oauthTokenFile", \.kafka.oauthTokenFile),
    setting("delivery.maxConnectionsPerApp", \.delivery.maxConnectionsPerApp),
    setting("delivery.maxStreamsPerConnection", \.delivery.maxStreamsPerConnection),
    setting("delivery.maxInFlight", \.delivery.maxInFlight),
    setting("delivery.maxInFlightBytes", \.delivery.maxInFlightBytes),
    setting("delivery.maxInFlightPerApp", \.delivery.maxInFlightPerApp),
    setting("delivery.attempts", \.delivery.attempts), setting("delivery.requestTimeout", \.delivery.requestTimeout),
    setting("delivery.connectTimeout", \.delivery.connectTimeout),
    setting("delivery.drainTimeout", \.delivery.drainTimeout),
    setting("delivery.commitInterval", \.delivery.commitInterval), setting("delivery.lanes", \.delivery.lanes),
    setting("delivery.retryBackoff.initial", \.delivery.retryBackoff.initial),
    setting("delivery.retryBackoff.max", \.delivery.retryBackoff.max),
    setting("delivery.retryBackoff.lasting", \.delivery.retryBackoff.lasting),
    setting("delivery.giveUpAfter", \.delivery.giveUpAfter), setting("delivery.ordering", \.delivery.ordering),
    setting("delivery.proxy.host", \.delivery.proxy?.host), setting("delivery.proxy.port", \.delivery.proxy?.port),
    setting("delivery.proxy.usernameFile", \.delivery.proxy?.usernameFile),
    setting("delivery.proxy.passwordFile", \.delivery.proxy?.passwordFile),
    setting("output.format", \.output.format), setting("output.cloudEvents", \.output.cloudEvents),
    setting("output.source", \.output.source), setting("http.listen", \.http.listen),
    setting("http.statusPage", \.http.statusPage), setting("http.healthDetails", \.http.healthDetails),
    setting("log.format", \.log.format),
  ]

  private static func setting<Value: Equatable & Sendable>(
    _ path: String, _ place: any KeyPath<Settings, Value> & Sendable
  ) -> Setting {
    Setting(path: path) { $0[keyPath: place] != $1[keyPath: place] }
  }

  /// The paths of those that differ, properties whose file has another content among them.
  static func differing(_ running: ConfigurationImage, _ next: ConfigurationImage) -> [String] {
    var paths = all.filter { $0.differs(running.settings, next.settings) }.map(\.path)
    let changed = { (file: String) in running.contents[file] != nil && running.contents[file] != next.contents[file] }
    let kafka = next.settings.kafka
    for (path, properties) in [
      ("kafka.properties", kafka.properties), ("kafka.consumerProperties", kafka.consumerProperties),
      ("kafka.producerProperties", kafka.producerProperties),
    ] {
      for property in properties {
        guard let file = property.file, changed(file) else { continue }
        paths.append(SettingPath.join(path, property.name))
      }
    }
    return paths
  }
}
