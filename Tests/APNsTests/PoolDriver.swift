import APNs
import Testing
import Wire

/// A pool, a clock that is set by hand, and a second opinion on what each connection may do.
struct PoolDriver {
  struct Shadow {
    var phase = Phase.connecting
    var streams = 0
    var peerLimit: Int?
    var isUnlocked = false
    var closes = 0

    enum Phase { case connecting, open, draining, closing }
  }

  var pool: PoolState
  var now = Instant(nanoseconds: 1_000_000_000)
  /// What the pool asked for since the last look.
  var actions: [PoolAction] = []
  /// Connections that have not ended, by the pool's actions and the events it was told.
  var shadows: [ConnectionID: Shadow] = [:]
  var connects = 0

  init(
    limits: PoolLimits = PoolLimits(), authentication: Authentication = .token, seed: UInt64 = 1
  ) {
    pool = PoolState(
      limits: limits, authentication: authentication, random: SeededRandom(seed: seed))
    pool.use(TokenVersion(1), now: now)
  }

  mutating func pass(_ duration: Duration) { now = now + duration }

  /// Lets time pass as the lane does: with a tick at each deadline on the way.
  mutating func run(for duration: Duration, sourceLocation: SourceLocation = #_sourceLocation) {
    let end = now + duration
    var ticks = 0
    while pool.nextDeadline <= end, ticks < 10_000 {
      now = max(now, pool.nextDeadline)
      pool.tick(now: now)
      settle()
      ticks += 1
    }
    #expect(ticks < 10_000, "the pool asks to be woken again and again", sourceLocation: sourceLocation)
    now = end
    pool.tick(now: now)
    settle()
  }

  /// Takes the pool's actions, checks that each is legal, and keeps them in `actions`.
  mutating func settle() {
    while let action = pool.nextAction() {
      actions.append(action)
      switch action {
      case .connect(let id):
        #expect(shadows[id] == nil)
        #expect(!shadows.values.contains { $0.phase == .connecting }, "one attempt at a time")
        #expect(!pool.isDraining)
        shadows[id] = Shadow()
        connects += 1
      case .ping(let id):
        #expect(shadows[id]?.phase == .open)
      case .drain(let id):
        #expect(shadows[id]?.phase == .open)
        shadows[id]?.phase = .draining
      case .close(let id):
        #expect(shadows[id]?.closes == 0)
        shadows[id]?.closes += 1
        shadows[id]?.phase = .closing
      }
    }
    for connection in pool.connections {
      #expect(connection.streams >= 0)
      #expect(connection.streams == shadows[connection.id]?.streams)
    }
  }

  mutating func takenActions() -> [PoolAction] {
    defer { actions.removeAll() }
    return actions
  }

  // MARK: Events

  mutating func demand(_ pending: Int) {
    pool.demand(pending: pending, now: now)
    settle()
  }

  @discardableResult
  mutating func take() -> ConnectionID? {
    let id = pool.take(now: now)
    if let id, let shadow = shadows[id] {
      #expect(shadow.phase == .open, "no stream on a connection that is not open")
      #expect(shadow.streams < limit(shadow), "no stream above the limit")
      shadows[id]?.streams += 1
    }
    settle()
    return id
  }

  /// The limit as the rules have it, worked out a second time.
  func limit(_ shadow: Shadow) -> Int {
    let ours = pool.limits.maxStreamsPerConnection
    if pool.authentication == .certificate { return min(ours, shadow.peerLimit ?? 100) }
    if shadow.isUnlocked { return min(ours, shadow.peerLimit ?? 1) }
    return shadow.peerLimit == 0 ? 0 : 1
  }

  mutating func connected(_ id: ConnectionID) {
    if shadows[id]?.phase == .connecting { shadows[id]?.phase = .open }
    pool.connected(id, now: now)
    settle()
  }

  mutating func settings(_ id: ConnectionID, _ limit: Int) {
    shadows[id]?.peerLimit = limit
    pool.settings(id, limit: limit, now: now)
    settle()
  }

  mutating func answered(_ id: ConnectionID, _ status: UInt16 = 200, _ reason: Reason? = nil) {
    shadows[id]?.streams -= 1
    if status != 403 { shadows[id]?.isUnlocked = true }
    pool.answered(id, Verdict(status: status, reason: reason), status: status, now: now)
    settle()
  }

  mutating func streamEnded(_ id: ConnectionID) {
    shadows[id]?.streams -= 1
    pool.streamEnded(id, now: now)
    settle()
  }

  mutating func streamReset(_ id: ConnectionID, isRefused: Bool) {
    shadows[id]?.streams -= 1
    pool.streamReset(id, isRefused: isRefused, now: now)
    settle()
  }

  mutating func blocked(_ id: ConnectionID) {
    shadows[id]?.streams -= 1
    pool.blocked(id, now: now)
    settle()
  }

  mutating func timedOut(_ id: ConnectionID) {
    shadows[id]?.streams -= 1
    pool.requestTimedOut(id, now: now)
    settle()
  }

  mutating func goAway(_ id: ConnectionID) {
    if shadows[id]?.phase == .open { shadows[id]?.phase = .draining }
    pool.goAway(id, now: now)
    settle()
  }

  mutating func acknowledgePing(_ id: ConnectionID) {
    pool.pingAcknowledged(id, now: now)
    settle()
  }

  mutating func closed(_ id: ConnectionID, _ failure: ConnectionFailure = .closed) {
    shadows[id] = nil
    pool.closed(id, failure, now: now)
    settle()
  }

  /// The connection that the pool is waiting for.
  var connecting: ConnectionID? { shadows.first { $0.value.phase == .connecting }?.key }

  /// Opens as many connections as the pool may have, each one unlocked and with this limit of the peer.
  mutating func open(limit: Int) throws -> [ConnectionID] {
    var ids: [ConnectionID] = []
    for _ in 0..<pool.limits.maxConnections {
      demand(1_000_000)
      let id = try #require(connecting)
      connected(id)
      settings(id, limit)
      // The earlier ones each keep a stream, so that the least loaded one is the new one.
      try #require(take() == id)
      answered(id)
      try #require(take() == id)
      ids.append(id)
    }
    for id in ids { answered(id) }
    demand(0)
    #expect(connecting == nil)
    _ = takenActions()
    return ids
  }
}
