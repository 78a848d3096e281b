internal import APNs
internal import Delivery
internal import Transport
package import Wire

/// Looks into the keys and certificates that a configuration names, as the service would at its start.
///
/// Loading the settings only tells that the files are there; the running service goes on without an app whose
/// credentials cannot be used. Here each such app is a problem.
package struct CredentialCheck {
  /// What was found.
  package struct Findings: Sendable {
    package var problems: [ConfigurationProblem]
    /// When the certificate of each app that has one expires, by the app's name.
    package var expiries: [String: UnixTime]
  }

  private let file: String
  private let now: UnixTime
  private var problems: [ConfigurationProblem] = []
  private var expiries: [String: UnixTime] = [:]
  /// What is wrong with each key file, so that a key that many apps share is read once.
  private var keyFaults: [String: String?] = [:]

  private init(file: String, now: UnixTime) {
    self.file = file
    self.now = now
  }

  /// - Parameter file: the configuration that the settings were read from.
  package static func findings(in settings: Settings, file: String, now: UnixTime) -> Findings {
    var check = CredentialCheck(file: file, now: now)
    for app in settings.apps {
      let path = SettingPath.join("apps", app.name)
      if let token = app.token { check.check(token, at: "\(path).token") }
      if let certificate = app.certificate { check.check(certificate, of: app, at: "\(path).certificate") }
      if let authorities = app.server?.caFile { check.check(authorities: authorities, at: "\(path).server.caFile") }
    }
    return Findings(problems: check.problems, expiries: check.expiries)
  }

  private mutating func check(_ token: TokenSettings, at path: String) {
    let fault =
      keyFaults[token.keyFile]
      ?? Self.fault { () throws(TransportError) in
        _ = try SigningKey.load(file: token.keyFile)
      }
    keyFaults[token.keyFile] = .some(fault)
    if let fault { report("the key cannot be used: \(fault)", at: "\(path).keyFile", found: token.keyFile) }
  }

  private mutating func check(_ certificate: CertificateSettings, of app: AppSettings, at path: String) {
    let identity: Identity
    do {
      let password = try certificate.passwordFile.map { try FileProbe.line($0) }
      identity = try Identity.load(
        certificateFile: certificate.file, keyFile: certificate.keyFile, password: password)
    } catch {
      report("the certificate cannot be used: \(Self.text(of: error))", at: path, found: certificate.file)
      return
    }
    expiries[app.name] = identity.validUntil
    let stage = ExpiryStage(of: identity.validUntil, at: now)
    let end = RFC3339.text(identity.validUntil)
    if stage == .expired {
      report("the certificate has expired", at: "\(path).file", found: end)
    } else if identity.validFrom > now {
      report("the certificate is not valid yet", at: "\(path).file", found: RFC3339.text(identity.validFrom))
    } else if stage > .distant {
      report("the certificate expires soon", at: "\(path).file", found: end, severity: .warning)
    }
    let scope = identity.pushScope
    if let fault = scope.fault(for: app) {
      report(fault.message, at: "\(path).file", found: fault.found, allowed: fault.allowed)
    } else if scope.topics == nil, let owner = identity.userID, owner != app.bundleID {
      report(
        "the certificate is for another app", at: "\(path).file", found: owner, allowed: app.bundleID,
        severity: .warning)
    }
  }

  private mutating func check(authorities: String, at path: String) {
    let fault = Self.fault { () throws(TransportError) in _ = try TLSContext.client(trust: .file(authorities)) }
    if let fault { report("the authorities cannot be used: \(fault)", at: path, found: authorities) }
  }

  private static func fault(of attempt: () throws(TransportError) -> Void) -> String? {
    do {
      try attempt()
      return nil
    } catch {
      return error.cause
    }
  }

  private static func text(of error: any Error) -> String { (error as? TransportError)?.cause ?? "\(error)" }

  private mutating func report(
    _ message: String, at path: String, found: String, allowed: String? = nil,
    severity: ConfigurationProblem.Severity = .error
  ) {
    problems.append(
      ConfigurationProblem(
        severity: severity, file: file, path: path, message: message, found: found, allowed: allowed))
  }
}

/// What a certificate is not good for though its app needs it.
struct PushScopeFault: Equatable {
  var message: String
  var found: String
  var allowed: String

  /// In one line.
  var text: String { "\(message), found \(found), allowed: \(allowed)" }
}

extension PushCertificateScope {
  /// Apple answers each request that its certificate does not cover with an error; it is better told at the start. One
  /// topic of the app's is enough: a certificate may be for calls alone, say. Which push types it is good for is looked
  /// at for each request.
  ///
  /// - Returns: `nil` if the certificate covers the app, or does not say what it covers.
  func fault(for app: AppSettings) -> PushScopeFault? {
    let wanted = Set(PushType.allCases.map { $0.topic(bundleID: app.bundleID) })
    if let topics, wanted.isDisjoint(with: topics) {
      let shown = topics.prefix(8).joined(separator: ", ") + (topics.count > 8 ? ", …" : "")
      return PushScopeFault(
        message: "the certificate does not cover the app's bundle id", found: shown, allowed: app.bundleID)
    }
    guard namesEnvironment, !(app.environment == .production ? allowsProduction : allowsSandbox) else { return nil }
    return PushScopeFault(
      message: "the certificate is for another environment",
      found: allowsProduction ? "production" : "sandbox", allowed: app.environmentName)
  }
}
