internal import Synchronization
internal import Wire

/// An app's certificate and its end.
struct CertificateSample: Equatable, Sendable {
  var app: String
  var validUntil: UnixTime

  init(app: String, validUntil: UnixTime) {
    self.app = app
    self.validUntil = validUntil
  }

  /// `nil` for credentials without a certificate.
  init?(_ credential: CredentialSample) {
    guard let validUntil = credential.validUntil else { return nil }
    self.init(app: credential.app, validUntil: validUntil)
  }
}

/// How near the end of a certificate is, from far to past.
enum ExpiryStage: Int, Comparable, CaseIterable, Sendable {
  /// More than 30 days.
  case distant
  /// Up to 30, 7 and 1 days.
  case month, week, day
  case expired

  init(of end: UnixTime, at now: UnixTime) {
    let day: Int64 = 86_400_000
    switch end.milliseconds - now.milliseconds {
    case ...0: self = .expired
    case ...day: self = .day
    case ...(7 * day): self = .week
    case ...(30 * day): self = .month
    default: self = .distant
    }
  }

  static func < (left: ExpiryStage, right: ExpiryStage) -> Bool { left.rawValue < right.rawValue }
}

/// Which certificates are to be warned of: each at each stage once, and again when another one takes its place. Pure.
struct ExpiryWatch: Sendable {
  struct Warning: Equatable, Sendable {
    var certificate: CertificateSample
    var stage: ExpiryStage
  }

  private var told: [String: (validUntil: UnixTime, stage: ExpiryStage)] = [:]

  /// - Returns: the warnings that are due and were not given before.
  mutating func warnings(of certificates: [CertificateSample], at now: UnixTime) -> [Warning] {
    let known = told
    told = [:]
    var warnings: [Warning] = []
    for certificate in certificates {
      let stage = ExpiryStage(of: certificate.validUntil, at: now)
      let last = known[certificate.app].flatMap { $0.validUntil == certificate.validUntil ? $0.stage : nil } ?? .distant
      if stage > last { warnings.append(Warning(certificate: certificate, stage: stage)) }
      told[certificate.app] = (certificate.validUntil, max(stage, last))
    }
    return warnings
  }
}

/// Writes the warnings into the log. Any thread.
final class ExpiryReporter: Sendable {
  /// How often it should be asked.
  static let period: Duration = .seconds(3600)

  private struct State {
    var certificates: [CertificateSample] = []
    var watch = ExpiryWatch()
  }

  private let state = Mutex(State())
  private let log: Log

  init(log: Log) { self.log = log }

  /// - Parameter certificates: those of all apps; `nil`: the ones that were told last.
  func check(_ certificates: [CertificateSample]? = nil, at now: UnixTime) {
    let warnings = state.withLock { state in
      if let certificates { state.certificates = certificates }
      return state.watch.warnings(of: state.certificates, at: now)
    }
    for warning in warnings {
      let left = warning.certificate.validUntil - now
      let fields: [LogField] = [
        .app(warning.certificate.app), .validUntil(warning.certificate.validUntil), .duration(left),
      ]
      switch warning.stage {
      case .distant: break
      case .month: log.warning("certificate_expires", "a certificate expires in less than 30 days", fields)
      case .week: log.warning("certificate_expires", "a certificate expires in less than 7 days", fields)
      case .day: log.warning("certificate_expires", "a certificate expires in less than a day", fields)
      case .expired: log.error("certificate_expired", "a certificate has expired; APNs refuses it", fields)
      }
    }
  }
}
