package import Delivery

/// The whole configuration, typed and checked. The initial values are the defaults.
package struct Settings: Sendable {
  package var kafka = KafkaSettings()
  /// In the order of the file, or of the file names.
  package var apps: [AppSettings] = []
  package var delivery = DeliverySettings()
  /// `output`: how results and invalid-token events are written.
  package var output = OutputForm()
  package var http = HTTPSettings()
  package var log = LogSettings()

  package init() {}
}

/// `kafka`: brokers, group, topics and properties of the clients.
package struct KafkaSettings: Sendable {
  /// `host:port` of one or more brokers.
  package var brokers: [String] = []
  package var group = "martlet"
  package var groupInstanceID: String?
  package var topics = TopicSettings()
  /// Properties of librdkafka, for both clients, then for one of them.
  package var properties: [KafkaProperty] = []
  package var consumerProperties: [KafkaProperty] = []
  package var producerProperties: [KafkaProperty] = []
  /// Holds the bearer token for SASL OAUTHBEARER; read again before the token ends.
  package var oauthTokenFile: String?
}

/// `kafka.topics`: the names of the topics that are read and written.
package struct TopicSettings: Sendable {
  package var requests = ["push.requests"]
  package var results = "push.results"
  package var invalidTokens = "push.invalid-tokens"
  package var deadLetters = "push.dead-letters"
  package var deferred = "push.deferred"
}

/// One property of librdkafka. A secret comes from a file or from the environment, never from the configuration.
package struct KafkaProperty: Sendable, Equatable, CustomStringConvertible {
  /// What the property is set to, or where that stands.
  package enum Value: Sendable, Equatable {
    case text(String)
    /// The file's content without the line end, read when a client is made.
    case file(String)
    /// The path of a file, or of a directory, that librdkafka reads itself.
    case path(String)
  }

  package var name: String
  package var value: Value

  package init(name: String, value: Value) {
    self.name = name
    self.value = value
  }

  /// The name alone: the value may be a secret.
  package var description: String { name }
}

/// `apps.<name>`: one app, its credentials, and what differs from `delivery`.
package struct AppSettings: Sendable, Equatable {
  package var name = ""
  package var bundleID = ""
  package var environment = AppRules.Environment.production
  package var token: TokenSettings?
  package var certificate: CertificateSettings?
  package var server: ServerSettings?
  /// `nil`: as `delivery` says.
  package var proxy: ProxySettings?
  /// Of Apple's hosts: 443 or 2197.
  package var port = 443
  package var defaultExpiration: Duration?
  /// Those that this version does not know.
  package var pushTypes: [PushTypeSettings] = []
  /// `nil`: as `delivery` says.
  package var maxConnections: Int?
  package var maxInFlight: Int?

  /// The files that hold its credentials, and whom it trusts: what is read when the app is started.
  package var files: [String] {
    let named = [token?.keyFile, certificate?.file, certificate?.keyFile, certificate?.passwordFile, server?.caFile]
    return named.compactMap(\.self) + (proxy?.files ?? [])
  }

  /// The environment's word in the configuration and in records.
  package var environmentName: String { environment.rawValue }
  /// Whether its device tokens are of Apple's development environment.
  package var isSandbox: Bool {
    get { environment == .sandbox }
    set { environment = newValue ? .sandbox : .production }
  }

  package init() {}
}

/// A push type that Apple has added after this version.
package struct PushTypeSettings: Sendable, Equatable {
  /// Its key.
  package var name = ""
  /// Behind the bundle id; may be empty.
  package var topicSuffix = ""

  package init() {}
}

/// `apps.<name>.token`: the key that provider tokens are signed with.
package struct TokenSettings: Sendable, Equatable {
  package var keyFile = ""
  package var keyID = ""
  package var teamID = ""

  package init(keyFile: String = "", keyID: String = "", teamID: String = "") {
    self.keyFile = keyFile
    self.keyID = keyID
    self.teamID = teamID
  }
}

/// `apps.<name>.certificate`: the TLS client certificate that takes the place of tokens.
package struct CertificateSettings: Sendable, Equatable {
  /// PKCS#12 or PEM.
  package var file = ""
  /// Where the key is not in `file`.
  package var keyFile: String?
  package var passwordFile: String?

  package init(file: String = "", keyFile: String? = nil, passwordFile: String? = nil) {
    self.file = file
    self.keyFile = keyFile
    self.passwordFile = passwordFile
  }
}

/// Where an app's notifications go in place of Apple's hosts.
package struct ServerSettings: Sendable, Equatable {
  package var host = ""
  package var port = 443
  /// `nil`: the system's certificate authorities.
  package var caFile: String?

  package init(host: String = "", port: Int = 443, caFile: String? = nil) {
    self.host = host
    self.port = port
    self.caFile = caFile
  }
}

/// The HTTP proxy that connections to APNs go through.
package struct ProxySettings: Sendable, Equatable {
  package var host = ""
  package var port = 3128
  package var usernameFile: String?
  package var passwordFile: String?

  /// The files that hold its secrets.
  package var files: [String] { [usernameFile, passwordFile].compactMap(\.self) }

  package init() {}
}

/// `delivery`: the bounds of connections, flight, attempts and time.
package struct DeliverySettings: Sendable {
  /// Whether requests of one record key go out one after the other.
  package enum Ordering: String, CaseIterable, Sendable { case none, key }

  package var maxConnectionsPerApp = 4
  package var maxStreamsPerConnection = 500
  package var maxInFlight = 20_000
  package var maxInFlightBytes = 33_554_432
  package var maxInFlightPerApp = 5_000
  package var attempts = 5
  package var requestTimeout = Duration.seconds(30)
  package var connectTimeout = Duration.seconds(10)
  package var drainTimeout = Duration.seconds(25)
  package var commitInterval = Duration.seconds(1)
  /// 0: one for each processor core.
  package var lanes = 0
  package var retryBackoff = BackoffSettings()
  /// How long after its request was first taken up a notification that cannot be sent at all is given up.
  package var giveUpAfter = Duration.seconds(3600)
  package var ordering = Ordering.none
  /// `nil`: connections go straight to APNs.
  package var proxy: ProxySettings?

  package init() {}
}

/// `delivery.retryBackoff`: the waits between attempts.
package struct BackoffSettings: Sendable {
  package var initial = Duration.milliseconds(500)
  package var max = Duration.seconds(30)
  package var lasting = Duration.seconds(900)
}

/// `http`: where metrics, health and the status page are served, and what is shown.
package struct HTTPSettings: Sendable {
  package var listen = ListenAddress(host: "0.0.0.0", port: 9464)
  package var statusPage = true
  package var healthDetails = true
}

/// `log`: what is written to standard error, and how.
package struct LogSettings: Sendable {
  /// One JSON object a line, or text for people; `auto` is text on a terminal and JSON elsewhere.
  package enum Format: String, CaseIterable, Sendable { case auto, json, text }

  package var level = LogLevel.info
  package var format = Format.auto
}

/// A host and port to listen on, or the path of a Unix socket.
package struct ListenAddress: Sendable, Equatable {
  package var host: String
  package var port: UInt16
  /// Of a Unix socket; host and port then mean nothing.
  package var path: String?

  package init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }

  /// From `host:port`, `[IPv6]:port`, `:port` (all interfaces) or `unix:/path`.
  package init?(_ text: String) {
    if text.hasPrefix("unix:") {
      let path = String(text.dropFirst("unix:".count))
      // The kernel's bound for the path of a socket, its end included (unix(7)).
      guard path.hasPrefix("/"), path.utf8.count < 108, !path.utf8.contains(0) else { return nil }
      self.init(host: "", port: 0)
      self.path = path
      return
    }
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
    var host = String(text[..<colon])
    if host.hasPrefix("[") && host.hasSuffix("]") {
      host = String(host.dropFirst().dropLast())
    } else if host.contains(":") {
      return nil
    }
    self.init(host: host.isEmpty ? "0.0.0.0" : host, port: port)
  }

  package var text: String {
    if let path { return "unix:\(path)" }
    return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }
}
