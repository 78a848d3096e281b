package import Wire

/// A connection's name within its pool; never used twice while the pool lives.
package struct ConnectionID: Hashable, Sendable {
  package var value: UInt32
  package init(_ value: UInt32) { self.value = value }
}

/// How a connection, or the attempt to make one, ended.
package enum ConnectionFailure: UInt8, CaseIterable, Sendable {
  /// Name resolution, refused, no route, timeout.
  case unreachable
  /// The handshake: certificate, host name, protocol.
  case tls
  /// The app's own key or certificate cannot be used.
  case credentials
  /// The peer closed or reset it, or broke the protocol.
  case closed
  /// It did not answer a PING.
  case silent
}

/// Why the pool ends a connection that the peer would keep.
package enum EndReason: UInt8, CaseIterable, Sendable {
  /// It was not made in time.
  case notMade
  /// It answered no PING.
  case unresponsive
  /// Another one takes its place: it is old, gave errors in a row or no streams, or carries a token that was refused.
  case replaced
  /// There is nothing left for it to do.
  case unneeded
}

/// One connection to APNs: how many streams it may carry, whether it is alive, when it is over.
///
/// Each stream that was opened ends in exactly one of `answered`, `streamEnded` and `requestTimedOut`, or with the
/// connection. Methods are named for events and return what must now be done with the connection.
package struct ConnectionState: Sendable {
  /// Where in its life it is.
  package enum Phase: Equatable, Sendable {
    case connecting(deadline: Instant)
    case open
    /// No new streams; those that are open may finish until the deadline.
    case draining(deadline: Instant)
    /// It has been told to close, and its end is awaited.
    case closing
  }

  /// What must now be done with the connection.
  package enum Step: Equatable, Sendable {
    case none, ping
    /// Send GOAWAY and let the streams finish.
    case drain
    /// End it now; `close` comes once for each connection.
    case close
  }

  package let id: ConnectionID
  package let authentication: Authentication
  /// What its requests are to carry.
  package private(set) var token: TokenVersion
  package private(set) var phase: Phase
  /// Set when the pool gives it up: the first reason, or that it answers no PING.
  package private(set) var endReason: EndReason?
  /// Open streams.
  package private(set) var streams = 0
  /// The peer's MAX_CONCURRENT_STREAMS, once it has named one.
  package private(set) var peerLimit: Int?
  /// Whether an answer has come that was not a refusal of the credentials: from then on the peer's limit holds.
  package private(set) var isUnlocked = false
  /// Whether `peerLimit` is what the peer means to give. The limit of 1 before the first answer is not, and the SETTINGS
  /// that lift it may come a little after that answer.
  package private(set) var isSettled = false
  /// Answers that show that the connection does its work.
  package private(set) var goodAnswers = 0
  /// Set when `retireAt` has passed; the pool replaces such a connection at its leisure.
  package private(set) var isAged = false
  /// Its output is full: nothing is put on it until that has drained, or something else has happened on it.
  package private(set) var isBlocked = false
  package private(set) var openedAt: Instant
  package private(set) var lastTaken: Instant

  private let ownLimit: Int
  private var retireAt: Instant
  private var lastHeard: Instant
  private var lastPing: Instant?
  private var pingDeadline: Instant?
  private var starvedUntil: Instant?
  private var faults = 0
  /// When a refused stream last counted among them.
  private var lastRefusedStream: Instant?
  /// Refusals of the credentials in a row.
  private var refusals = 0
  /// Whether it had idled before the streams that are open, and no good answer has come since.
  private var hasRested = false
  /// Since when its requests carry `token`.
  private var tokenSince: Instant?

  package init(
    id: ConnectionID, authentication: Authentication, token: TokenVersion, limits: PoolLimits, now: Instant
  ) {
    self.id = id
    self.authentication = authentication
    self.token = token
    phase = .connecting(deadline: now + limits.connectTimeout)
    ownLimit = limits.maxStreamsPerConnection
    openedAt = now
    lastTaken = now
    lastHeard = now
    retireAt = .distantFuture
  }

  // MARK: Questions

  package var isConnecting: Bool { if case .connecting = phase { true } else { false } }
  package var isOpen: Bool { phase == .open }
  /// Whether a PING is out, so that other connections are better.
  package var isSuspect: Bool { pingDeadline != nil }

  /// How many streams may be open at once. APNs lets a token-authenticated connection have one until a request with a
  /// valid token has been answered; after that, and for certificates at once, SETTINGS say it, up, down and 0 (Apple,
  /// "Sending notification requests to APNs"). Before any SETTINGS, RFC 9113 would allow any number and advises 100.
  package var limit: Int {
    switch authentication {
    case .certificate: min(ownLimit, peerLimit ?? 100)
    case .token: min(ownLimit, isUnlocked ? peerLimit ?? 1 : min(1, peerLimit ?? 1))
    }
  }

  /// Whether it was worth making, so that its end says nothing against the next one.
  package func hasLasted(_ limits: PoolLimits, now: Instant) -> Bool {
    let age = now - openedAt
    guard goodAnswers > 0 else { return age >= limits.shortLife }
    return age >= limits.shortUsefulLife || goodAnswers >= limits.worthwhileAnswers
  }

  /// Streams that may be opened now.
  package var free: Int { isOpen && !isBlocked ? max(0, limit - streams) : 0 }

  /// Streams that it will probably have to give, once it is open and unlocked.
  /// - Parameter typical: what others of its kind came to allow.
  package func expectedFree(typical: Int) -> Int {
    switch phase {
    case .connecting: return min(ownLimit, typical)
    case .open:
      // A full output is a matter of moments, no reason for another connection.
      guard authentication == .token, !isSettled, peerLimit != 0 else { return max(0, limit - streams) }
      return max(0, min(ownLimit, max(typical, peerLimit ?? 0)) - streams)
    case .draining, .closing: return 0
    }
  }

  /// When `tick` should be called next.
  package func deadline(_ limits: PoolLimits) -> Instant {
    switch phase {
    case .connecting(let deadline): return deadline
    case .draining(let deadline): return min(deadline, pingDeadline ?? .distantFuture)
    case .closing: return .distantFuture
    case .open:
      let life = pingDeadline ?? (lastHeard + limits.idlePing)
      return min(life, min(isAged ? .distantFuture : retireAt, starvedUntil ?? .distantFuture))
    }
  }

  // MARK: The connection's life

  /// The handshake is over.
  package mutating func connected(retireAt: Instant, now: Instant) {
    guard isConnecting else { return }
    phase = .open
    openedAt = now
    lastHeard = now
    lastTaken = now
    self.retireAt = retireAt
  }

  /// SETTINGS named a limit for streams. Open streams beyond a lower one go on; new ones wait.
  package mutating func settings(limit: Int, limits: PoolLimits, now: Instant) {
    heard(now)
    peerLimit = max(0, limit)
    isSettled = isUnlocked
    starvedUntil = limit > 0 ? nil : starvedUntil ?? now + limits.requestTimeout
  }

  /// GOAWAY came: nothing new goes onto this connection (RFC 9113, section 6.8). The streams that it names as
  /// unprocessed are reported by `streamReset`.
  package mutating func goAway(limits: PoolLimits, now: Instant) -> Step {
    heard(now)
    return beginDrain(until: now + limits.requestTimeout) == .close ? .close : .none
  }

  /// No new streams; end when the open ones have.
  package mutating func retire(until deadline: Instant, _ reason: EndReason) -> Step {
    endReason = endReason ?? reason
    return beginDrain(until: deadline)
  }

  package mutating func pingAcknowledged(now: Instant) {
    heard(now)
  }

  /// Time has passed.
  package mutating func tick(limits: PoolLimits, now: Instant) -> Step {
    isBlocked = false
    switch phase {
    case .closing: return .none
    case .connecting(let deadline): return now < deadline ? .none : close(.notMade)
    case .draining(let deadline):
      if let pingDeadline, now >= pingDeadline { return close(.unresponsive) }
      return now < deadline ? .none : close()
    case .open:
      if let pingDeadline, now >= pingDeadline { return close(.unresponsive) }
      if now >= retireAt { isAged = true }
      if let starvedUntil, now >= starvedUntil { return retire(until: now + limits.requestTimeout, .replaced) }
      guard pingDeadline == nil, now >= lastHeard + limits.idlePing else { return .none }
      return ping(within: limits.pingTimeout, now: now)
    }
  }

  // MARK: Streams

  /// - Precondition: `free` is not 0.
  package mutating func streamOpened(limits: PoolLimits, now: Instant) -> Step {
    precondition(free > 0)
    if now - lastTaken >= limits.restAfter { hasRested = true }
    streams += 1
    tokenSince = tokenSince ?? now
    lastTaken = now
    return now < lastHeard + limits.probeAfter ? .none : probe(limits: limits, now: now)
  }

  /// An answer has ended a stream.
  package mutating func answered(_ verdict: Verdict, status: UInt16, limits: PoolLimits, now: Instant) -> Step {
    heard(now)
    isSettled = isUnlocked
    if status != 403 { isUnlocked = true }
    if ConnectionState.showsGoodHealth(verdict) {
      faults = 0
      hasRested = false
      goodAnswers += 1
      refusals = verdict == .credentialFault ? refusals + 1 : 0
      return isStale(limits: limits, now: now) ? releaseAndRetire(limits: limits, now: now) : release()
    }
    // What idled for long may be dead behind the server's back: its trouble says nothing about a fresh connection.
    guard verdict != .retry || hasRested else { return faulted(limits: limits, now: now) }
    return releaseAndRetire(limits: limits, now: now)
  }

  /// Whether the credentials may be good for another connection: APNs ties each one to the team and the apps that it
  /// finds with its first push (Apple, "Establishing a token-based connection to APNs").
  private func isStale(limits: PoolLimits, now: Instant) -> Bool {
    refusals >= limits.faultsInARow && now - openedAt >= limits.refusalAge
  }

  private mutating func releaseAndRetire(limits: PoolLimits, now: Instant) -> Step {
    let step = release()
    return step == .none ? retire(until: now + limits.requestTimeout, .replaced) : step
  }

  /// Whether an answer shows that the connection does its work, whatever it says about the push.
  package static func showsGoodHealth(_ verdict: Verdict) -> Bool {
    switch verdict {
    case .replaceConnection, .refreshToken, .retry: false
    case .delivered, .rejected, .invalidToken, .credentialFault, .throttled: true
    }
  }

  /// A stream has ended without an answer, and that says nothing about the connection: it has ended itself, or the stream
  /// was not opened after all.
  package mutating func streamEnded() -> Step {
    release()
  }

  /// A stream was reset. A connection that resets all has always the fewest open, and would be given every push.
  ///
  /// - Parameter isRefused: it was not processed (REFUSED_STREAM, or above the last one that GOAWAY names). When the peer
  ///   lowers its limit many are refused at once, so of these only one counts in `probeAfter`.
  package mutating func streamReset(isRefused: Bool, limits: PoolLimits, now: Instant) -> Step {
    guard isRefused else { return faulted(limits: limits, now: now) }
    if let lastRefusedStream, now - lastRefusedStream < limits.probeAfter { return release() }
    lastRefusedStream = now
    return faulted(limits: limits, now: now)
  }

  /// The stream that was just taken was not opened after all: the output is full.
  package mutating func blocked() -> Step {
    let step = release()
    isBlocked = true
    return step
  }

  /// The output has room again.
  package mutating func unblocked() {
    isBlocked = false
  }

  /// A request has had no answer in time, and its stream is being reset. The connection is suspect: it must answer a
  /// PING.
  package mutating func requestTimedOut(limits: PoolLimits, now: Instant) -> Step {
    faulted(limits: limits, now: now)
  }

  /// Takes a younger token for the requests from now on, if this connection has carried its token for long enough: the
  /// first one counts, since APNs may take it for a change.
  package mutating func offer(_ version: TokenVersion, limits: PoolLimits, now: Instant) {
    guard version != token else { return }
    if let tokenSince {
      guard now - tokenSince >= limits.tokenChangeInterval else { return }
      self.tokenSince = now
    }
    token = version
  }

  // MARK: Parts

  /// An answer, SETTINGS, GOAWAY or the acknowledgement of a PING shows that the peer is alive; SETTINGS may have made
  /// room besides.
  private mutating func heard(_ now: Instant) {
    lastHeard = now
    pingDeadline = nil
    isBlocked = false
  }

  /// A stream ended in a way that casts doubt on the connection: it must answer a PING, and after some of these in a
  /// row it is replaced (an APNs server that gives 500 once often does so for ever).
  private mutating func faulted(limits: PoolLimits, now: Instant) -> Step {
    faults += 1
    let step = release()
    guard step == .none else { return step }
    if isOpen, faults >= limits.faultsInARow { return retire(until: now + limits.requestTimeout, .replaced) }
    return probe(limits: limits, now: now)
  }

  @discardableResult
  private mutating func release() -> Step {
    streams = max(0, streams - 1)
    isBlocked = false
    if case .draining = phase, streams == 0 { return close() }
    return .none
  }

  private mutating func beginDrain(until deadline: Instant) -> Step {
    switch phase {
    case .closing: return .none
    case .connecting: return close()
    case .draining(let earlier):
      phase = .draining(deadline: min(earlier, deadline))
      return streams == 0 ? close() : .none
    case .open:
      guard streams > 0 else { return close() }
      phase = .draining(deadline: deadline)
      return .drain
    }
  }

  private mutating func close(_ reason: EndReason? = nil) -> Step {
    endReason = reason ?? endReason
    phase = .closing
    pingDeadline = nil
    return .close
  }

  /// A PING because requests wait; not more than one in `probeAfter`.
  private mutating func probe(limits: PoolLimits, now: Instant) -> Step {
    guard isOpen, pingDeadline == nil else { return .none }
    if let lastPing, now < lastPing + limits.probeAfter { return .none }
    return ping(within: limits.pingTimeout / 2, now: now)
  }

  private mutating func ping(within timeout: Duration, now: Instant) -> Step {
    lastPing = now
    pingDeadline = now + timeout
    return .ping
  }
}
