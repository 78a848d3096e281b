import APNs
import Service
import Transport
import Wire

/// Who speaks to APNs, and with which of its servers: the options that `martlet send` and `martlet channels` share.
///
/// Either an app of a configuration, or a key or certificate named on the command line.
struct DirectOptions: Sendable {
  /// The app that the options name, or that is made of them.
  var app: AppSettings
  var delivery: DeliverySettings
  /// Whether the app comes from a configuration file.
  var isConfigured: Bool
  /// What is odd about the options, but not wrong.
  var warnings: [String] = []

  static let options: [Option] = [
    Option("config", value: "FILE", "Take the app from this configuration."),
    Option("app", value: "NAME", "Which one; not needed where there is only one."),
    Option("p8", value: "FILE", "Without a configuration: the team's signing key."),
    Option("key-id", value: "ID", "Its id; read from the name where the file is called AuthKey_ID.p8."),
    Option("team-id", value: "ID", "The team's id."),
    Option("certificate", value: "FILE", "In place of a signing key: a push certificate (.p12 or PEM)."),
    Option("key", value: "FILE", "The certificate's private key, where it is in a file of its own."),
    Option("password-file", value: "FILE", "The file that has the password of the .p12 or of the key."),
    Option(flag: "sandbox", "Apple's development environment."),
    Option("host", value: "NAME", "Another server than Apple's, such as 'martlet mock-apns'."),
    Option("port", value: "N", "Its port, or 2197 at Apple's where 443 is blocked (default 443)."),
    Option("ca", value: "FILE", "Whose certificates to trust, in place of the system's authorities (PEM)."),
    Option("proxy", value: "HOST:PORT", "Go through this HTTP proxy."),
    Option("proxy-username-file", value: "FILE", "The file that has the user name for it (basic authentication)."),
    Option("proxy-password-file", value: "FILE", "The file that has the password."),
    Option("timeout", value: "TIME", "The longest to wait for a connection (default 10s), and for an answer (30s)."),
  ]

  /// - Throws: `UsageError` for options that are wrong, `ConfigurationError` for a configuration that is.
  init(_ arguments: Arguments) throws {
    if let file = arguments.value("config") {
      for name in ["p8", "key-id", "team-id", "certificate", "key", "password-file", "sandbox"]
      where arguments.has(name) {
        throw UsageError(message: "'--config' says who sends, and so does '--\(name)'; give one of them")
      }
      let settings = try SettingsLoader.load(file: file).settings
      app = try Self.app(arguments.value("app"), of: settings.apps, in: file)
      delivery = settings.delivery
      isConfigured = true
    } else {
      guard !arguments.has("app") else {
        throw UsageError(message: "'--app' names an app of a configuration; '--config FILE' is missing")
      }
      app = AppSettings()
      app.name = "app"
      app.isSandbox = arguments.has("sandbox")
      delivery = DeliverySettings()
      isConfigured = false
      try readCredentials(arguments)
    }
    try readServer(arguments)
    if arguments.has("timeout") {
      let timeout = try arguments.duration("timeout", default: .seconds(30))
      guard timeout >= .milliseconds(1) else { throw UsageError(message: "'--timeout' must be longer than 0") }
      delivery.connectTimeout = timeout
      delivery.requestTimeout = timeout
    }
  }

  private static func app(_ name: String?, of apps: [AppSettings], in file: String) throws(UsageError) -> AppSettings {
    let names = apps.map(\.name)
    guard let name else {
      guard apps.count == 1 else {
        throw UsageError(message: "'--app NAME' is missing; \(file) has \(Self.list(names))")
      }
      return apps[0]
    }
    guard let app = apps.first(where: { $0.name == name }) else {
      let nearest = NearestName.find(name, in: names).map { "; did you mean '\($0)'?" } ?? ""
      throw UsageError(message: "'--app' must be one of \(Self.list(names)), not '\(name)'\(nearest)")
    }
    return app
  }

  private static func list(_ names: [String]) -> String {
    names.count <= 10 ? names.joined(separator: ", ") : "\(names.prefix(10).joined(separator: ", ")) …"
  }
}

// MARK: Credentials

extension DirectOptions {
  private mutating func readCredentials(_ arguments: Arguments) throws {
    switch (arguments.value("p8"), arguments.value("certificate")) {
    case (let file?, nil): try readKey(file, arguments)
    case (nil, let file?): try readCertificate(file, arguments)
    case (nil, nil):
      throw UsageError(
        message: "who sends? give '--p8 FILE' with '--key-id' and '--team-id', '--certificate FILE', or '--config FILE'"
      )
    default: throw UsageError(message: "'--p8' and '--certificate' both say who sends; give one of them")
    }
  }

  private mutating func readKey(_ file: String, _ arguments: Arguments) throws(UsageError) {
    for name in ["key", "password-file"] where arguments.has(name) {
      throw UsageError(message: "'--\(name)' belongs to '--certificate', not to '--p8'")
    }
    guard let keyID = arguments.value("key-id") ?? Self.keyID(ofFile: file) else {
      throw UsageError(message: "'--key-id ID' is missing: the 10 characters that Apple shows beside the key")
    }
    let teamID = try given("team-id", "the 10 characters that Apple shows under Membership", arguments)
    app.bundleID = try given("topic", "the app's bundle id", arguments)
    for (name, id) in [("key-id", keyID), ("team-id", teamID)] where !Self.isAppleID(id) {
      warnings.append("'--\(name)' is odd: Apple's are 10 capital letters and digits, not '\(id)'")
    }
    app.token = TokenSettings(keyFile: file, keyID: keyID, teamID: teamID)
  }

  private mutating func readCertificate(_ file: String, _ arguments: Arguments) throws {
    for name in ["key-id", "team-id"] where arguments.has(name) {
      throw UsageError(message: "'--\(name)' belongs to '--p8', not to '--certificate'")
    }
    let password = arguments.value("password-file")
    let settings = CertificateSettings(file: file, keyFile: arguments.value("key"), passwordFile: password)
    app.certificate = settings
    if let topic = arguments.value("topic") {
      app.bundleID = topic
      return
    }
    // Apple writes the bundle id into the certificate.
    guard let topic = try DirectIdentity.topic(of: settings) else {
      throw UsageError(message: "'--topic TOPIC' is missing, and \(file) names none: the app's bundle id")
    }
    app.bundleID = topic
  }

  private func given(_ name: String, _ what: String, _ arguments: Arguments) throws(UsageError) -> String {
    guard let value = arguments.value(name), !value.isEmpty else {
      throw UsageError(message: "'--\(name)' is missing: \(what)")
    }
    return value
  }

  /// Apple names the file that it lets people download once `AuthKey_` and the key's id.
  private static func keyID(ofFile path: String) -> String? {
    let name = path.split(separator: "/").last ?? ""
    guard name.hasPrefix("AuthKey_"), name.hasSuffix(".p8") else { return nil }
    let id = String(name.dropFirst(8).dropLast(3))
    return isAppleID(id) ? id : nil
  }

  private static func isAppleID(_ text: String) -> Bool {
    text.utf8.count == 10 && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
  }
}

// MARK: Server

extension DirectOptions {
  private mutating func readServer(_ arguments: Arguments) throws(UsageError) {
    if ["host", "port", "ca"].contains(where: arguments.has) {
      let apple = APNsEndpoint(app.isSandbox ? .sandbox : .production, port: UInt16(clamping: app.port))
      var server = app.server ?? ServerSettings(host: apple.host, port: Int(apple.port))
      if let host = arguments.value("host") { server.host = host }
      server.port = try arguments.integer("port", in: 1...65_535, default: server.port)
      if let file = arguments.value("ca") { server.caFile = file }
      app.server = server
    }
    let (username, password) = (arguments.value("proxy-username-file"), arguments.value("proxy-password-file"))
    guard let text = arguments.value("proxy") else {
      guard username == nil, password == nil else {
        throw UsageError(message: "'--proxy HOST:PORT' is missing: whom the user name and the password are for")
      }
      return
    }
    guard password == nil || username != nil else {
      throw UsageError(message: "'--proxy-username-file FILE' is missing: whose the password is")
    }
    guard let endpoint = Endpoint(parsing: text), endpoint.path == nil, !endpoint.host.isEmpty, endpoint.port > 0 else {
      throw UsageError(message: "'--proxy' must be host:port, not '\(text)'")
    }
    var proxy = ProxySettings()
    proxy.host = endpoint.host
    proxy.port = Int(endpoint.port)
    proxy.usernameFile = username
    proxy.passwordFile = password
    app.proxy = proxy
  }
}
