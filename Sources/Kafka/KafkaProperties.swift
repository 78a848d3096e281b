import CRdKafka
import Synchronization

/// Checked settings for librdkafka, in the order in which they were made.
///
/// Every property of the library passes, but for the few that the service owns. One value serves the consumer, the
/// producer and the admin client: each takes what is meant for it. It starts out with `KafkaDefaults`.
package struct KafkaProperties: Sendable {
  /// A property of librdkafka, by the library's own name.
  package struct Entry: Hashable, Sendable {
    package var name: String
    package var value: String
  }

  /// All settings, defaults first. A property that is set twice keeps its last value.
  package private(set) var entries: [Entry] = []
  package let brokers: String
  /// Where the bearer token for OAUTHBEARER comes from.
  package var tokenSource: BearerTokenSource?

  /// - Parameter brokers: host:port pairs, separated by commas (`bootstrap.servers`).
  /// - Throws: `KafkaError` of origin `configuration` when there is no broker in it.
  package init(brokers: String) throws(KafkaError) {
    guard brokers.contains(where: { $0 != "," && $0 != " " }) else {
      throw .configuration("bootstrap.servers", "no broker is named")
    }
    self.brokers = brokers
    for fixed in KafkaDefaults.table where KafkaProperties.isKnown(fixed.name) {
      replace(fixed.name, fixed.value)
    }
  }

  /// Sets one property.
  ///
  /// - Throws: `KafkaError` of origin `configuration`, whose subject is the property: unknown, not the caller's to
  ///   set, or of a value that the library refuses (with the library's words).
  package mutating func set(_ name: String, to value: String) throws(KafkaError) {
    if let reason = KafkaDefaults.owned[name] {
      throw .configuration(name, "cannot be set: \(reason)")
    }
    try KafkaProperties.check(name, value)
    replace(name, value)
  }

  /// The value in force; `nil` where the library's own default holds.
  package func value(of name: String) -> String? {
    entries.last { $0.name == name }?.value
  }

  /// Whether SASL is done with a bearer token that `tokenSource` must give.
  package var needsToken: Bool {
    // The library calls both names the same.
    let mechanism = entries.last { $0.name == "sasl.mechanism" || $0.name == "sasl.mechanisms" }?.value ?? ""
    let usesSASL = value(of: "security.protocol")?.lowercased().hasPrefix("sasl") ?? false
    return usesSASL && mechanism.uppercased() == "OAUTHBEARER" && value(of: "sasl.oauthbearer.method") != "oidc"
  }

  private mutating func replace(_ name: String, _ value: String) {
    // An alias (`linger.ms` and `queue.buffering.max.ms`) needs no care: both are applied, and the later one stands.
    entries.removeAll { $0.name == name }
    entries.append(Entry(name: name, value: value))
  }

  /// Whether this version of the library has the property: some defaults are for newer ones only.
  private static func isKnown(_ name: String) -> Bool { KafkaLibrary.sides[name] != nil }

  private static func check(_ name: String, _ value: String) throws(KafkaError) {
    if name == "sasl.mechanism" || name == "sasl.mechanisms" { try checkMechanism(name, value) }
    guard !value.utf8.contains(0), !name.utf8.contains(0) else {
      throw .configuration(name, "a NUL byte is not allowed")
    }
    let scratch = Configuration()
    try scratch.set(name, value)
  }

  /// SASL mechanisms are refused here and not at the first connection, where the answer would only be a log line.
  private static func checkMechanism(_ name: String, _ value: String) throws(KafkaError) {
    let needs = [
      "PLAIN": "sasl_plain", "SCRAM-SHA-256": "sasl_scram", "SCRAM-SHA-512": "sasl_scram", "GSSAPI": "sasl_gssapi",
      "OAUTHBEARER": "sasl_oauthbearer",
    ]
    let usable = needs.filter { KafkaLibrary.features.contains($0.value) }.keys.sorted()
    guard usable.contains(value.uppercased()) else {
      throw .configuration(name, "'\(value)' is not supported; use one of \(usable.joined(separator: ", "))")
    }
  }
}

/// Owns an `rd_kafka_conf_t` until a client takes it over.
///
/// `rd_kafka_new` takes the object only when it succeeds; in all other cases this frees it.
@safe
struct Configuration: ~Copyable {
  private let conf: OpaquePointer
  private var isWatched = false

  /// Configurations that were watched and refused. The library has destroyed their interceptors, and would destroy them
  /// once more if they were freed (as of 2.0.2). There is one at most in the life of a process: it ends over that.
  private static let refused = Mutex<[UInt]>([])

  init() {
    // The library has no failure here: it stops the process when memory runs out.
    unsafe conf = rd_kafka_conf_new()
  }

  deinit { unsafe rd_kafka_conf_destroy(conf) }

  /// The settings of `properties` that are meant for this kind of client.
  ///
  /// - Parameter isReachable: whether the client is to reach the brokers.
  init(_ properties: KafkaProperties, for side: KafkaLibrary.Side, isReachable: Bool = true) throws(KafkaError) {
    self.init()
    guard !properties.needsToken || properties.tokenSource != nil else {
      throw .configuration("sasl.mechanism", "OAUTHBEARER needs a file with the token: set kafka.oauthTokenFile")
    }
    if isReachable { try set("bootstrap.servers", properties.brokers) }
    for entry in properties.entries {
      let whose = KafkaLibrary.sides[entry.name] ?? .both
      if whose == .both || whose == side { try set(entry.name, entry.value) }
    }
    // Logs come through the queue that the owner polls, and never from the library's own threads.
    try set("log.queue", "true")
  }

  func set(_ name: String, _ value: String) throws(KafkaError) {
    let problem: String? = unsafe withErrorText { (buffer, size) -> Bool in
      unsafe rd_kafka_conf_set(conf, name, value, buffer, size) == RD_KAFKA_CONF_OK
    }
    if let problem { throw .configuration(name, problem) }
  }

  /// Which kinds of event arrive as events (`RD_KAFKA_EVENT_…`).
  func enableEvents(_ kinds: Int32) { unsafe rd_kafka_conf_set_events(conf, kinds) }

  /// Has the client's joins watched. The watch must outlive the client.
  mutating func watchJoins(_ watch: JoinWatch) {
    isWatched = true
    unsafe watch.install(conf)
  }

  /// For a client whose log is of no interest (the one that hosts a mock cluster).
  func silence() { unsafe rd_kafka_conf_set_log_cb(conf, nil) }

  /// Makes the client.
  consuming func makeClient(_ type: rd_kafka_type_t) throws(KafkaError) -> OpaquePointer {
    var client: OpaquePointer?
    let problem: String? = unsafe withErrorText { (buffer, size) -> Bool in
      unsafe client = rd_kafka_new(type, conf, buffer, size)
      return unsafe client != nil
    }
    guard let client = unsafe client else {
      if isWatched {
        let address = unsafe UInt(bitPattern: conf)
        Self.refused.withLock { $0.append(address) }
        discard self
      } else {
        _ = consume self
      }
      throw .configuration("kafka", problem ?? "the client could not be made")
    }
    discard self
    return unsafe client
  }
}

/// Calls `body` with room for an error text.
///
/// - Returns: `nil` when `body` says that it went well, else the text.
func withErrorText(_ body: (UnsafeMutablePointer<CChar>?, Int) -> Bool) -> String? {
  unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
    unsafe buffer.initialize(repeating: 0)
    guard unsafe !body(buffer.baseAddress, buffer.count) else { return nil }
    return unsafe text(buffer.baseAddress) ?? ""
  }
}
