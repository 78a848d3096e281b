package import Wire

/// The provider token of one key: when a new one must be signed, and which one is sent (Apple, "Establishing a
/// token-based connection to APNs").
///
/// All connections of all apps of one key share it. It signs nothing and reads no clock: both are passed in. Ages are
/// counted from signing, on both clocks, and the older age counts: the wall clock sees a suspended machine, the
/// monotonic one sees a wall clock that was set back. The intervals between tokens are kept on the monotonic clock
/// alone, since that is what bounds how many Apple sees.
package struct ProviderToken: Sendable {
  /// Apple's limits, and how far within them we stay.
  package struct Rules: Sendable {
    /// The age at which a successor is signed. A connection that takes a token up just before that keeps it for
    /// `minimumInterval`, and then it must still be usable.
    package var refreshAge: Duration = .seconds(39 * 60)
    /// The age up to which a token may be sent. Apple refuses it at 60 minutes; the last one is for the way.
    package var usableAge: Duration = .seconds(59 * 60)
    /// Apple wants no change of token sooner than this.
    package var minimumInterval: Duration = .seconds(20 * 60)
    /// How far ahead of the clock a token may be before the clock counts as set back.
    package var futureTolerance: Duration = .seconds(60)
    /// After signing failed, it is not tried again before this.
    package var signingPause: Duration = .seconds(5)

    package init() {}
  }

  /// What a report of `ExpiredProviderToken` leads to.
  package enum ExpiryReport: Equatable, Sendable {
    /// It is about a token that has been replaced already, or that is being replaced: one refresh serves all reports.
    case ignored
    /// The token is old enough that it may be so: `needsSigning` is now true.
    case refresh
    /// The token is young and was accepted elsewhere: the connection is wedged, the token is good.
    case connectionAtFault
    /// The token is young and was never accepted: our clock, or the key's owner's idea of time, is wrong. A new one
    /// would fare no better and is signed only after `minimumInterval`.
    case clockSkew
  }

  /// What can be wrong with a signature.
  package enum SigningError: Error, Equatable {
    /// The signer gave this many bytes; an ES256 signature has 64 (RFC 7518, section 3.4).
    case badSignatureLength(Int)
  }

  /// A token as it was signed.
  package struct Signed: Sendable {
    /// The whole value of the `authorization` header: "bearer " and the token.
    package let authorization: [UInt8]
    package let version: TokenVersion
    /// `iat`.
    package let issuedAt: UnixTime
    package let signedAt: Instant
    /// Whether the one before it was called expired by APNs.
    package let replacesRefused: Bool
  }

  package let keyID: String
  package let teamID: String
  package let rules: Rules
  /// What is sent now; `nil` until the first one was signed.
  package private(set) var current: Signed?
  /// The one before, for connections that may not change yet.
  package private(set) var previous: Signed?

  private var next = TokenVersion(1)
  private var isCondemned = false
  private var isAccepted = false
  private var lastEarly: Instant?
  private var failedAt: Instant?

  /// - Parameters:
  ///   - keyID: `kid`, 10 characters.
  ///   - teamID: `iss`, 10 characters.
  ///   - rules: Apple's times, unless a test needs others.
  package init(keyID: String, teamID: String, rules: Rules = Rules()) {
    self.keyID = keyID
    self.teamID = teamID
    self.rules = rules
  }

  /// Whether `sign` should be called now.
  package func needsSigning(at now: Moment) -> Bool {
    if let failedAt, now.instant - failedAt < rules.signingPause { return false }
    guard let current else { return true }
    let clockIsOff = isFromFuture(current, now) || age(of: current, now) >= rules.usableAge
    guard clockIsOff || isCondemned || age(of: current, now) >= rules.refreshAge else { return false }
    if now.instant - current.signedAt >= rules.minimumInterval { return true }
    // Younger than Apple's interval: only a clock that jumped excuses a new token, and only once in an interval, so that
    // a clock that jumps to and fro does not bring forth one token a jump.
    guard clockIsOff else { return false }
    return lastEarly.map { now.instant - $0 >= rules.minimumInterval } ?? true
  }

  /// Whether the current token may be sent: neither too old nor further ahead of the clock than Apple accepts.
  package func isUsable(at now: Moment) -> Bool {
    guard let current else { return false }
    return age(of: current, now) < rules.usableAge && wallAge(of: current, now) > .zero - rules.usableAge
  }

  /// Signs a token and makes it the current one.
  /// - Parameter signer: gives the 64 bytes of an ES256 signature, r and s, of the bytes it is given.
  /// - Throws: what the signer throws, or `SigningError`; then the current token stays.
  package mutating func sign(at now: Moment, signer: (Span<UInt8>) throws -> [UInt8]) throws {
    let text: [UInt8]
    do {
      text = try ProviderToken.text(keyID: keyID, teamID: teamID, issuedAt: now.time, signer: signer)
    } catch {
      failedAt = now.instant
      throw error
    }
    if let current, now.instant - current.signedAt < rules.minimumInterval { lastEarly = now.instant }
    previous = current
    current = Signed(
      authorization: Array("bearer ".utf8) + text, version: next,
      issuedAt: UnixTime(seconds: now.time.seconds), signedAt: now.instant, replacesRefused: isCondemned)
    next.number &+= 1
    failedAt = nil
    isCondemned = false
    isAccepted = false
  }

  /// APNs called the token of this version expired.
  package mutating func reportedExpired(_ version: TokenVersion, at now: Moment) -> ExpiryReport {
    guard let current, current.version == version, !isCondemned else { return .ignored }
    if now.instant - current.signedAt >= rules.minimumInterval || wallAge(of: current, now) >= rules.usableAge {
      isCondemned = true
      return .refresh
    }
    if isAccepted { return .connectionAtFault }
    isCondemned = true
    return .clockSkew
  }

  /// APNs answered a request with the token of this version with anything that shows that it took the token.
  package mutating func reportedAccepted(_ version: TokenVersion) {
    guard current?.version == version, !isAccepted else { return }
    isAccepted = true
    isCondemned = false
  }

  /// The token of that version, as long as it is one of the last two.
  package func signed(_ version: TokenVersion) -> Signed? {
    if let current, current.version == version { return current }
    if let previous, previous.version == version { return previous }
    return nil
  }

  // MARK: Ages

  private func wallAge(of token: Signed, _ now: Moment) -> Duration {
    now.time - token.issuedAt
  }

  private func age(of token: Signed, _ now: Moment) -> Duration {
    max(wallAge(of: token, now), now.instant - token.signedAt)
  }

  private func isFromFuture(_ token: Signed, _ now: Moment) -> Bool {
    wallAge(of: token, now) < .zero - rules.futureTolerance
  }
}

// MARK: Text

extension ProviderToken {
  /// The JWT (RFC 7519) as Apple wants it: `alg` and `kid` in the header, `iss` and `iat` in the claims.
  package static func text(
    keyID: String, teamID: String, issuedAt: UnixTime, signer: (Span<UInt8>) throws -> [UInt8]
  ) throws -> [UInt8] {
    var header = JSONWriter()
    header.beginObject()
    header.key("alg")
    header.string("ES256")
    header.key("kid")
    header.string(keyID)
    header.endObject()
    var claims = JSONWriter()
    claims.beginObject()
    claims.key("iss")
    claims.string(teamID)
    claims.key("iat")
    claims.integer(issuedAt.seconds)
    claims.endObject()

    var text: [UInt8] = []
    Base64URL.encode(header.take().span, into: &text)
    text.append(0x2e)
    Base64URL.encode(claims.take().span, into: &text)
    let signature = try signer(text.span)
    guard signature.count == 64 else { throw SigningError.badSignatureLength(signature.count) }
    text.append(0x2e)
    Base64URL.encode(signature.span, into: &text)
    return text
  }
}
