import APNs
import Delivery
import Synchronization
import Transport
import Wire

/// What a lane needs to send an app's notifications; made anew by each reload, and never changed.
final class AppRuntime: Sendable {
  let name: String
  let bundleID: String
  let endpoint: Endpoint
  /// What connections go through; `nil`: straight.
  let proxy: Proxy?
  /// The value of `:authority`.
  let authority: [UInt8]
  let tls: TLSContext
  /// Of this app alone, and gone with its credentials.
  let sessions = TLSSessionCache()
  let credentials: AppCredentials
  let limits: PoolLimits

  init(
    name: String, bundleID: String, endpoint: Endpoint, proxy: Proxy?, authority: String, tls: TLSContext,
    credentials: AppCredentials, limits: PoolLimits
  ) {
    self.name = name
    self.bundleID = bundleID
    self.endpoint = endpoint
    self.proxy = proxy
    self.authority = Array(authority.utf8)
    self.tls = tls
    self.credentials = credentials
    self.limits = limits
  }
}

/// How an app shows who it is.
enum AppCredentials: Sendable {
  case token(TokenSource)
  /// The certificate itself is part of the TLS context; here is when it expires, and what may be sent with it.
  case certificate(validUntil: UnixTime, rules: CertificateRules)

  var authentication: Authentication {
    switch self {
    case .token: .token
    case .certificate: .certificate
    }
  }
}

/// The provider token of one team and key: shared by all apps, lanes and connections that use the key.
///
/// One mutex guards the token's clock; signing happens under it, once in three quarters of an hour, so that no two
/// threads sign at once.
final class TokenSource: Sendable {
  private let state: Mutex<ProviderToken>
  private let key: SigningKey
  /// What the metrics show of its tokens.
  let gauge = TokenGauge()

  init(keyID: String, teamID: String, key: SigningKey) {
    self.key = key
    self.state = Mutex(ProviderToken(keyID: keyID, teamID: teamID))
  }

  /// The token to use now, signed if need be; `nil` if there is none that may be sent (signing failed).
  func current(at now: Moment) -> ProviderToken.Signed? {
    state.withLock { state in
      if state.needsSigning(at: now) {
        // A failure leaves the old token in place, which may still be good; `isUsable` says so.
        let before = state.current?.version
        try? state.sign(at: now) { try key.sign($0) }
        if let signed = state.current, signed.version != before { gauge.note(issuedAt: signed.issuedAt) }
      }
      return state.isUsable(at: now) ? state.current : nil
    }
  }

  /// The token of that version, while it is one of the last two.
  func signed(_ version: TokenVersion) -> ProviderToken.Signed? {
    state.withLock { $0.signed(version) }
  }

  func reportedExpired(_ version: TokenVersion, at now: Moment) -> ProviderToken.ExpiryReport {
    state.withLock { $0.reportedExpired(version, at: now) }
  }

  func reportedAccepted(_ version: TokenVersion) {
    state.withLock { $0.reportedAccepted(version) }
  }
}
