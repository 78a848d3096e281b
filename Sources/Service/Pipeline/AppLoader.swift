import APNs
import Delivery
import Transport
import Wire

/// Makes what lanes need of the configured apps: keys, certificates, servers.
///
/// Apps of one team and key share one `TokenSource`, and so one provider token. The loader lives as long as the service:
/// where the content of a key file has not changed, a reload finds the source, and with it the token, that is in use.
/// It is a value, so that a reload that is refused leaves nothing behind: it works on a copy.
struct AppLoader: Sendable {
  /// A key that no app uses any more is kept for as long as its provider token could be sent, in case it comes back:
  /// Apple refuses tokens that are made anew too often.
  static let keyMemory: Duration = .seconds(3600)

  /// An app that cannot be used, and why.
  struct Fault: Error {
    var app: String
    var text: String
  }

  private struct KeyName: Hashable {
    var content: FileContent
    var keyID: String
    var teamID: String
  }

  private struct SharedKey: Sendable {
    var source: TokenSource
    var unusedSince: Instant?
  }

  let delivery: DeliverySettings
  let laneCount: Int
  private var sources: [KeyName: SharedKey] = [:]
  /// By the content of the file of authorities; `nil` stands for the system's.
  private var contexts: [FileContent?: TLSContext] = [:]

  init(delivery: DeliverySettings, laneCount: Int) {
    self.delivery = delivery
    self.laneCount = laneCount
  }

  /// - Parameter contents: what stood in the app's files before this.
  mutating func load(_ app: AppSettings, _ contents: [String: FileContent]) -> Result<AppRuntime, Fault> {
    do {
      return .success(try runtime(of: app, contents))
    } catch {
      return .failure(Fault(app: app.name, text: "\(error)"))
    }
  }

  /// Lets go of what no app uses any more.
  mutating func forget(unusedBy runtimes: some Sequence<AppRuntime>, now: Instant) {
    var used: Set<ObjectIdentifier> = []
    for runtime in runtimes {
      used.insert(ObjectIdentifier(runtime.tls))
      if case .token(let source) = runtime.credentials { used.insert(ObjectIdentifier(source)) }
    }
    contexts = contexts.filter { used.contains(ObjectIdentifier($0.value)) }
    for (name, key) in sources {
      let unusedSince = used.contains(ObjectIdentifier(key.source)) ? nil : key.unusedSince ?? now
      sources[name]?.unusedSince = unusedSince
      if let unusedSince, now - unusedSince > Self.keyMemory { sources[name] = nil }
    }
  }

  private mutating func runtime(of app: AppSettings, _ contents: [String: FileContent]) throws -> AppRuntime {
    let trust: Trust = app.server?.caFile.map { .file($0) } ?? .system
    let credentials: AppCredentials
    let tls: TLSContext
    if let token = app.token {
      credentials = .token(try source(of: token, contents[token.keyFile] ?? .unreadable))
      tls = try sharedContext(trust, app.server?.caFile.map { contents[$0] ?? .unreadable })
    } else if let certificate = app.certificate {
      var password: String?
      if let file = certificate.passwordFile { password = try FileProbe.line(file) }
      let identity = try Identity.load(
        certificateFile: certificate.file, keyFile: certificate.keyFile, password: password)
      if let fault = identity.pushScope.fault(for: app) {
        throw TransportError(.credential, certificate.file, fault.text)
      }
      credentials = .certificate(
        validUntil: identity.validUntil, rules: CertificateRules(topics: identity.pushScope.topics))
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

  private mutating func source(
    of token: TokenSettings, _ content: FileContent
  ) throws(TransportError) -> TokenSource {
    let name = KeyName(content: content, keyID: token.keyID, teamID: token.teamID)
    if content.isKnown, let known = sources[name] { return known.source }
    let key = try SigningKey.load(file: token.keyFile)
    let source = TokenSource(keyID: token.keyID, teamID: token.teamID, key: key)
    sources[name] = SharedKey(source: source)
    return source
  }

  /// - Parameter content: of the file of authorities; `nil`: the system's are trusted.
  private mutating func sharedContext(_ trust: Trust, _ content: FileContent?) throws(TransportError) -> TLSContext {
    if let content, !content.isKnown { return try TLSContext.client(trust: trust) }
    if let known = contexts[content] { return known }
    let context = try TLSContext.client(trust: trust)
    contexts[content] = context
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

extension Result where Failure == AppLoader.Fault {
  /// Why the app cannot be used; `nil` if it can.
  var fault: AppLoader.Fault? { if case .failure(let fault) = self { fault } else { nil } }
}
