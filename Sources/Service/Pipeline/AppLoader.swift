import APNs
import Delivery
import Transport
import Wire

/// Makes what lanes need of the configured apps: keys, certificates, servers.
///
/// Apps of one team and key share one `TokenSource`, and so one provider token.
struct AppLoader {
  /// An app that cannot be used, and why.
  struct Fault: Sendable {
    var app: String
    var text: String
  }

  private struct KeyName: Hashable {
    var file: String
    var keyID: String
    var teamID: String
  }

  let delivery: DeliverySettings
  let laneCount: Int
  private var sources: [KeyName: TokenSource] = [:]
  private var contexts: [String: TLSContext] = [:]
  /// Counts the keys and certificates that were loaded, so that each load has a version of its own.
  private var lastVersion: UInt32 = 0
  private(set) var faults: [Fault] = []

  init(delivery: DeliverySettings, laneCount: Int) {
    self.delivery = delivery
    self.laneCount = laneCount
  }

  /// - Returns: `nil` for an app that cannot be used; `faults` says why.
  mutating func load(_ app: AppSettings) -> AppRuntime? {
    do {
      return try runtime(of: app)
    } catch {
      faults.append(Fault(app: app.name, text: "\(error)"))
      return nil
    }
  }

  private mutating func runtime(of app: AppSettings) throws -> AppRuntime {
    let trust: Trust = app.server?.caFile.map { .file($0) } ?? .system
    let credentials: AppCredentials
    let tls: TLSContext
    if let token = app.token {
      credentials = .token(try source(of: token))
      tls = try sharedContext(trust, name: app.server?.caFile ?? "")
    } else if let certificate = app.certificate {
      var password: String?
      if let file = certificate.passwordFile { password = try FileProbe.line(file) }
      let identity = try Identity.load(
        certificateFile: certificate.file, keyFile: certificate.keyFile, password: password)
      lastVersion += 1
      credentials = .certificate(CredentialVersion(key: lastVersion))
      tls = try TLSContext.client(trust: trust, identity: identity)
    } else {
      throw TransportError(.credential, app.name, "neither a token nor a certificate is configured")
    }
    let server = endpoint(of: app)
    return AppRuntime(
      name: app.name, bundleID: app.bundleID,
      endpoint: Endpoint(host: server.host, port: server.port), proxy: try proxy(of: app),
      authority: server.authority, tls: tls, credentials: credentials, limits: limits(of: app))
  }

  private mutating func source(of token: TokenSettings) throws(TransportError) -> TokenSource {
    let name = KeyName(file: token.keyFile, keyID: token.keyID, teamID: token.teamID)
    if let known = sources[name] { return known }
    let key = try SigningKey.load(file: token.keyFile)
    lastVersion += 1
    let source = TokenSource(keyID: token.keyID, teamID: token.teamID, key: key, version: lastVersion)
    sources[name] = source
    return source
  }

  private mutating func sharedContext(_ trust: Trust, name: String) throws(TransportError) -> TLSContext {
    if let known = contexts[name] { return known }
    let context = try TLSContext.client(trust: trust)
    contexts[name] = context
    return context
  }

  private func endpoint(of app: AppSettings) -> APNsEndpoint {
    if let server = app.server {
      return APNsEndpoint(host: server.host, port: UInt16(clamping: server.port))
    }
    return APNsEndpoint(
      app.environment == .production ? .production : .sandbox, port: UInt16(clamping: app.port))
  }

  /// The app's own proxy, or that of all apps.
  private func proxy(of app: AppSettings) throws -> Proxy? {
    guard let settings = app.proxy ?? delivery.proxy else { return nil }
    return Proxy(
      Endpoint(host: settings.host, port: UInt16(clamping: settings.port)),
      username: try settings.usernameFile.map { try FileProbe.line($0) },
      password: try settings.passwordFile.map { try FileProbe.line($0) } ?? "")
  }

  /// An app's connections are shared out among the lanes that it may use, never more than it may have in all.
  private func limits(of app: AppSettings) -> PoolLimits {
    var limits = PoolLimits()
    let connections = app.maxConnections ?? delivery.maxConnectionsPerApp
    limits.maxConnections = max(1, connections / min(laneCount, connections))
    limits.maxStreamsPerConnection = delivery.maxStreamsPerConnection
    limits.connectTimeout = delivery.connectTimeout
    limits.requestTimeout = delivery.requestTimeout
    return limits
  }
}
