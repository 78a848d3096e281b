import APNs
import Delivery
import Wire

/// One app on one lane of one replica: what waits for a stream, and a real `PoolState` over simulated connections.
///
/// It does what the service's lane does around the pool, in the same order.
final class SimulatedLaneApp {
  struct Request {
    var slot: PushSlot
    var connection: ConnectionID
    var sentAt: Instant
  }

  private let world: World
  let server: AppleServer
  private var pool: PoolState
  private let requestTimeout: Duration
  private let report: (LaneOutcome) -> Void
  private var connections: [AppleConnection] = []
  private var pending: [(submission: Submission, since: Instant)] = []
  private var requests: [UInt64: Request] = [:]
  private var nextTag: UInt64 = 0
  private var isPumping = false
  private var timer: Instant?
  private var isDead = false
  /// The provider token that the next request may carry; APNs has called those before it expired.
  private var token = TokenVersion(1)

  init(world: World, server: AppleServer, limits: PoolLimits, report: @escaping (LaneOutcome) -> Void) {
    self.world = world
    self.server = server
    self.report = report
    requestTimeout = limits.requestTimeout
    let authentication: Authentication = world.random.chance(0.7) ? .token : .certificate
    pool = PoolState(
      limits: limits, authentication: authentication,
      random: SeededRandom(seed: world.random.next()))
  }

  func enqueue(_ submission: Submission) {
    pending.append((submission, world.now))
    touch()
  }

  /// Takes over what waits for a stream at an app that drains.
  func takePending(of other: SimulatedLaneApp) {
    pending += other.pending
    other.pending = []
    touch()
  }

  /// Whether it has drained.
  var isFinished: Bool { pool.isFinished && connections.isEmpty }

  func drain(by deadline: Instant) {
    returnPending(.draining)
    pool.drain(by: deadline)
    touch()
  }

  /// The process has been killed.
  func vanish() {
    isDead = true
    for connection in connections { connection.vanish() }
    connections = []
    pending = []
    requests = [:]
  }

  // MARK: The turn

  private func touch() {
    guard !isPumping, !isDead else { return }
    isPumping = true
    world.after(.microseconds(100)) { [self] in
      isPumping = false
      if !isDead { pump() }
    }
  }

  private func pump() {
    let now = world.now
    if token != pool.token { pool.use(token, isRefused: token.number > 1, now: now) }
    while !pending.isEmpty, let id = pool.take(now: now) {
      switch send(pending[0].submission, on: id) {
      case .sent: pending.removeFirst()
      case .full:
        pool.blocked(id, now: now)
        world.after(world.between(.milliseconds(1), .milliseconds(50))) { self.roomAgain(id) }
      case .unusable: pool.retire(id, now: now)
      }
    }
    pool.demand(pending: pending.count, now: now)
    if returnStale(now) { pool.demand(pending: pending.count, now: now) }
    perform()
    checkPool()
    wake(at: pool.nextDeadline)
  }

  private enum Sending { case sent, full, unusable }

  private func send(_ submission: Submission, on id: ConnectionID) -> Sending {
    let notification = submission.notification
    guard let connection = connections.first(where: { $0.id == id }),
      let item = Oracle.item(ofToken: notification.storage.span.extracting(notification.token.indices))
    else {
      world.fail("the pool sends on a connection that is gone, or what has no token")
      return .unusable
    }
    if world.strikes(.outputFull) { return .full }
    if world.strikes(.tokenGone) { return .unusable }
    nextTag += 1
    let tag = nextTag
    requests[tag] = Request(slot: submission.slot, connection: id, sentAt: world.now)
    world.note("item \(item) goes out on connection \(id.value)")
    connection.open(AppleConnection.Stream(tag: tag, item: item))
    world.after(requestTimeout) { self.timeOut(tag) }
    return .sent
  }

  private func perform() {
    while let action = pool.nextAction() {
      switch action {
      case .connect(let id):
        let connection = AppleConnection(id: id, server: server, client: self)
        connections.append(connection)
        connection.connect()
      case .ping(let id): connection(id)?.ping()
      case .drain: break
      case .close(let id): connection(id)?.close()
      }
    }
  }

  private func connection(_ id: ConnectionID) -> AppleConnection? { connections.first { $0.id == id } }

  private func returnStale(_ now: Instant) -> Bool {
    let count = pending.count
    if pool.unreachableUntil != nil { returnPending(SendFailure(pool.lastFailure)) }
    while let first = pending.first, first.since + requestTimeout <= now {
      returnFirst(SendFailure(waitedFor: pool))
    }
    if let first = pending.first { wake(at: first.since + requestTimeout) }
    return pending.count != count
  }

  private func returnPending(_ failure: SendFailure) {
    while !pending.isEmpty { returnFirst(failure) }
  }

  private func returnFirst(_ failure: SendFailure) {
    let submission = pending.removeFirst().submission
    report(LaneOutcome(slot: submission.slot, result: .notSent(failure), sentAt: nil, completedAt: world.now))
  }

  private func wake(at deadline: Instant) {
    guard deadline != .distantFuture, deadline < timer ?? .distantFuture else { return }
    timer = deadline
    world.after(deadline - world.now) { [self] in
      guard !isDead, timer == deadline else { return }
      timer = nil
      pool.tick(now: world.now)
      touch()
    }
  }

  private func timeOut(_ tag: UInt64) {
    guard !isDead, let request = requests.removeValue(forKey: tag) else { return }
    connection(request.connection)?.cancel(tag)
    pool.requestTimedOut(request.connection, now: world.now)
    finish(request, .timedOut)
  }

  private func finish(_ request: Request, _ result: SendResult) {
    report(LaneOutcome(slot: request.slot, result: result, sentAt: request.sentAt, completedAt: world.now))
    touch()
  }

  /// The pool's count of streams is that of the requests that are open.
  private func checkPool() {
    for connection in pool.connections where connection.isOpen {
      let open = requests.values.count { $0.connection == connection.id }
      world.check(
        connection.streams == open, "a connection has \(open) streams and the pool counts \(connection.streams)")
    }
    world.check(
      pool.openCount <= pool.limits.maxConnections, "\(pool.openCount) connections are open")
  }

  // MARK: What connections say

  func ready(_ connection: AppleConnection) {
    pool.connected(connection.id, now: world.now)
    touch()
  }

  func settings(_ connection: AppleConnection, limit: Int) {
    pool.settings(connection.id, limit: limit, now: world.now)
    touch()
  }

  func answered(_ connection: AppleConnection, _ tag: UInt64, _ response: Response) {
    guard !isDead, let request = requests.removeValue(forKey: tag) else { return }
    pool.answered(connection.id, response.verdict, status: response.status, now: world.now)
    if response.verdict == .refreshToken { renewToken() }
    finish(request, .answered(response))
  }

  /// The next token. The answers of one moment renew it once.
  private func renewToken() {
    guard pool.authentication == .token, token == pool.token else { return }
    token.number += 1
  }

  private func roomAgain(_ id: ConnectionID) {
    guard !isDead else { return }
    pool.unblocked(id)
    touch()
  }

  func failed(_ connection: AppleConnection, _ tag: UInt64, _ result: SendResult) {
    guard !isDead, let request = requests.removeValue(forKey: tag) else { return }
    switch result {
    case .notSent(.streamRefused): pool.streamReset(connection.id, isRefused: true, now: world.now)
    case .lost(.streamRefused): pool.streamReset(connection.id, isRefused: false, now: world.now)
    default: pool.streamEnded(connection.id, now: world.now)
    }
    finish(request, result)
  }

  func wentAway(_ connection: AppleConnection) {
    pool.goAway(connection.id, now: world.now)
    touch()
  }

  func pingAcknowledged(_ connection: AppleConnection) {
    pool.pingAcknowledged(connection.id, now: world.now)
    touch()
  }

  func closed(_ connection: AppleConnection, _ failure: ConnectionFailure) {
    connections.removeAll { $0 === connection }
    pool.closed(connection.id, failure, now: world.now)
    touch()
  }
}
