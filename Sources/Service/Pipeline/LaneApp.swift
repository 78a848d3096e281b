import APNs
import Delivery
import Transport
import Wire

/// One app on one lane: its pushes that wait for a stream, and the shell around its pool of connections.
///
/// It is made for one `AppRuntime` and never gets another: after a reload there is a new one, and this one drains.
///
/// Lives on the lane's loop. Events of connections change the pool's state at once; what follows from it (opening,
/// closing, sending what waits) is done once, at the end of the turn, by `pump`.
final class LaneApp {
  let index: AppIndex
  /// Its place on the lane.
  let seat: Int32
  let runtime: AppRuntime
  private unowned let lane: Lane
  private var pool: PoolState
  private var connections: [LaneConnection] = []
  /// Waits for a stream, oldest first; `pendingHead` is the first that still does.
  private var pending: [Pending] = []
  private var pendingHead = 0
  private var headers: HeaderCache
  /// The last token that APNs has shown to take.
  private var accepted: TokenVersion?
  var isTouched = false

  private struct Pending {
    var submission: Submission
    var since: Instant
  }

  init(index: AppIndex, seat: Int32, runtime: AppRuntime, lane: Lane) {
    self.index = index
    self.seat = seat
    self.runtime = runtime
    self.lane = lane
    headers = HeaderCache(runtime)
    pool = PoolState(
      limits: runtime.limits, authentication: runtime.credentials.authentication,
      random: SeededRandom(seed: UInt64.random(in: .min ... .max)))
  }

  func enqueue(_ submission: Submission) {
    pending.append(Pending(submission: submission, since: lane.loop.now))
    lane.touch(self)
  }

  /// Takes over what waits for a stream at an app that drains.
  func takePending(of other: LaneApp) {
    pending.append(contentsOf: other.pending[other.pendingHead...])
    other.pending.removeAll()
    other.pendingHead = 0
    lane.touch(self)
  }

  /// Whether it has drained: no connection is left, and none will be made.
  var isFinished: Bool { pool.isFinished && connections.isEmpty }

  /// Time has passed.
  func tick() {
    pool.tick(now: lane.loop.now)
    lane.touch(self)
  }

  /// No new requests; what waits goes back, and connections close when their last stream ends.
  func drain(by deadline: Instant) {
    returnPending(.draining)
    for connection in connections where connection.closeCause == nil { connection.closeCause = .shutdown }
    pool.drain(by: deadline)
    lane.touch(self)
  }

  // MARK: Sending

  /// Puts what waits on connections, as far as they have room, and does what the pool wants done.
  func pump() {
    let now = lane.loop.now
    if hasPending, !refreshToken() { returnPending(.credentials) }
    while hasPending, let id = pool.take(now: now) {
      switch send(pending[pendingHead].submission, on: id, now: now) {
      case .sent:
        lane.metrics.add(.openStreams, app: index)
        dropFirstPending()
      // Others may have room; `roomAgain` brings this one back.
      case .full: pool.blocked(id, now: now)
      case .unusable: pool.retire(id, now: now)
      }
    }
    pool.demand(pending: pendingCount, now: now)
    if returnStale(now) { pool.demand(pending: pendingCount, now: now) }
    perform(now)
    lane.wake(at: pool.nextDeadline)
  }

  private enum Sending {
    case sent
    /// The connection's output is at its high-water mark.
    case full
    /// The connection is gone, or its provider token is.
    case unusable
  }

  private func send(_ submission: Submission, on id: ConnectionID, now: Instant) -> Sending {
    guard let connection = connections.first(where: { $0.id == id }), let client = connection.client,
      let version = pool.token(of: id), let shared = headers.list(for: submission.notification, version)
    else { return .unusable }
    // Taken, not copied: a second reference would have the buffer allocated anew for each request.
    var sink = HeaderWriter(list: exchange(&lane.ownHeaders, with: HeaderList()))
    sink.list.removeAll()
    RequestHeaders.addPath(submission.notification, to: &sink)
    RequestHeaders.addOwn(submission.notification, sentNames: &connection.sentNames, to: &sink)
    lane.ownHeaders = sink.list
    let tag = lane.requests.insert(
      LaneRequest(slot: submission.slot, seat: seat, connection: id, sentAt: now, token: version))
    let body = Bytes(submission.notification.storage, submission.notification.payload)
    guard client.submit(shared: shared, own: lane.ownHeaders, body: body, tag: tag) else {
      _ = lane.requests.remove(tag)
      return .full
    }
    return .sent
  }

  private func perform(_ now: Instant) {
    while let action = pool.nextAction() {
      switch action {
      case .connect(let id): connect(id, now)
      case .ping(let id):
        connection(id)?.pingedAt = now
        connection(id)?.client?.ping()
      case .drain(let id):
        connection(id)?.client?.drain()
        count(id, .draining)
      case .close(let id): close(id)
      }
    }
  }

  private func close(_ id: ConnectionID) {
    guard let connection = connection(id) else { return }
    let reason = pool.endReason(of: id)
    if connection.closeCause == nil, let reason { connection.closeCause = CloseCause(reason) }
    if reason == .unresponsive {
      lane.log.warning(
        "connection_failed", "a connection to APNs failed",
        [.app(runtime.name), .cause(CauseText("it answered no PING"))])
    }
    connection.client?.close()
  }

  private func connect(_ id: ConnectionID, _ now: Instant) {
    let connection = LaneConnection(id: id, app: self)
    connections.append(connection)
    lane.metrics.add(.connections(.connecting), app: index)
    var limits = HTTP2Limits()
    limits.concurrentStreams = runtime.limits.maxStreamsPerConnection
    // Apple's answers have under 200 bytes; what a proxy says beyond this is nothing to us.
    limits.bodySize = 8 * 1024
    do {
      connection.client = try HTTP2Client.connect(
        on: lane.loop, to: runtime.endpoint, through: runtime.proxy, tls: runtime.tls, sessions: runtime.sessions,
        deadline: now + runtime.limits.connectTimeout, limits: limits, delegate: connection)
    } catch {
      closed(connection, error)
    }
  }

  // MARK: What waits

  private var pendingCount: Int { pending.count - pendingHead }
  private var hasPending: Bool { pendingCount > 0 }

  private func dropFirstPending() {
    pendingHead += 1
    if pendingHead == pending.count {
      pending.removeAll(keepingCapacity: true)
      pendingHead = 0
    } else if pendingHead >= 1024, pendingHead * 2 >= pending.count {
      pending.removeSubrange(..<pendingHead)
      pendingHead = 0
    }
  }

  private func returnPending(_ failure: SendFailure) {
    while hasPending { returnFirst(failure) }
  }

  private func returnFirst(_ failure: SendFailure) {
    lane.report(
      LaneOutcome(
        slot: pending[pendingHead].submission.slot, result: .notSent(failure), sentAt: nil, completedAt: lane.loop.now))
    dropFirstPending()
  }

  /// Sends back what no connection will take soon: all of it when none can be made, and what has waited for longer than
  /// a request may take, so that its expiration is looked at again.
  ///
  /// - Returns: whether any was.
  private func returnStale(_ now: Instant) -> Bool {
    guard hasPending else { return false }
    let count = pendingCount
    if pool.unreachableUntil != nil { returnPending(SendFailure(pool.lastFailure)) }
    while hasPending, pending[pendingHead].since + lane.requestTimeout <= now {
      returnFirst(SendFailure(waitedFor: pool))
    }
    if hasPending { lane.wake(at: pending[pendingHead].since + lane.requestTimeout) }
    return pendingCount != count
  }

  // MARK: Provider token

  /// - Returns: false if there is no token that may be sent.
  private func refreshToken() -> Bool {
    guard case .token(let source) = runtime.credentials else { return true }
    guard let signed = source.current(at: lane.loop.moment) else { return false }
    if signed.version != pool.token {
      pool.use(signed.version, isRefused: signed.replacesRefused, now: lane.loop.now)
    }
    return true
  }

  private func noteToken(_ request: LaneRequest, _ response: Response) {
    guard case .token(let source) = runtime.credentials else { return }
    if response.verdict == .refreshToken {
      if source.reportedExpired(request.token, at: lane.loop.moment) == .clockSkew {
        lane.log.warning(
          "provider_token_refused", "APNs calls a fresh provider token expired: the clock of this machine may be wrong",
          [.app(runtime.name)])
      }
    } else if response.status != 403, ConnectionState.showsGoodHealth(response.verdict), accepted != request.token {
      accepted = request.token
      source.reportedAccepted(request.token)
    }
  }

  // MARK: Events of connections and requests

  func ready(_ connection: LaneConnection) {
    pool.connected(connection.id, now: lane.loop.now)
    lane.metrics.add(.connectionsOpened, app: index)
    connection.count(.open, lane.metrics)
    lane.touch(self)
  }

  func settings(_ connection: LaneConnection, limit: Int) {
    pool.settings(connection.id, limit: limit, now: lane.loop.now)
    lane.touch(self)
  }

  func answered(_ connection: LaneConnection, tag: UInt64, _ response: Response) {
    guard let request = lane.requests.remove(tag) else { return }
    let verdict = response.verdict
    pool.answered(connection.id, verdict, status: response.status, now: lane.loop.now)
    noteToken(request, response)
    // Whoever was refused introduces himself anew.
    if verdict == .credentialFault { runtime.sessions.removeAll() }
    report(request, .answered(response))
    lane.touch(self)
  }

  func failed(_ connection: LaneConnection, tag: UInt64, _ failure: StreamFailure) {
    guard let request = lane.requests.remove(tag) else { return }
    switch failure {
    case .refused, .reset:
      let isRefused = failure == .refused
      pool.streamReset(connection.id, isRefused: isRefused, now: lane.loop.now)
      report(request, isRefused ? .notSent(.streamRefused) : .lost(.streamRefused))
    case .connectionLost:
      pool.streamEnded(connection.id, now: lane.loop.now)
      report(request, .lost(.connectionClosed))
    }
    lane.touch(self)
  }

  func timedOut(_ request: LaneRequest, tag: UInt64) {
    connection(request.connection)?.client?.cancel(tag: tag)
    pool.requestTimedOut(request.connection, now: lane.loop.now)
    report(request, .timedOut)
    lane.touch(self)
  }

  /// - Parameter isFirst: further ones of the same connection are neither counted nor logged.
  func wentAway(_ connection: LaneConnection, code: UInt32, reason: Reason?, isFirst: Bool) {
    pool.goAway(connection.id, now: lane.loop.now)
    lane.touch(self)
    guard isFirst else { return }
    connection.closeCause = .goAway
    lane.metrics.add(.goAways, app: index)
    connection.count(.draining, lane.metrics)
    lane.log.info(
      "goaway", "APNs closes a connection",
      [.app(runtime.name), .cause(CauseText(HTTP2Code.name(code) + (reason.map { " \($0.text)" } ?? "")))])
  }

  /// A connection's output has room again.
  func roomAgain(_ connection: LaneConnection) {
    pool.unblocked(connection.id)
    lane.touch(self)
  }

  func pingAcknowledged(_ connection: LaneConnection) {
    if let pingedAt = exchange(&connection.pingedAt, with: nil) {
      lane.metrics.observe(.pingRoundTrip, lane.loop.now - pingedAt)
    }
    pool.pingAcknowledged(connection.id, now: lane.loop.now)
    lane.touch(self)
  }

  func closed(_ connection: LaneConnection, _ error: TransportError?) {
    connections.removeAll { $0 === connection }
    connection.count(nil, lane.metrics)
    lane.metrics.add(.connectionsClosed(connection.cause(of: error)), app: index)
    if let error {
      lane.log.warning(
        "connection_failed", "a connection to APNs failed", [.app(runtime.name), .cause(CauseText(error.description))])
    }
    pool.closed(connection.id, ConnectionFailure(error), now: lane.loop.now)
    lane.touch(self)
  }

  private func report(_ request: LaneRequest, _ result: SendResult) {
    lane.metrics.add(.openStreams, app: index, -1)
    lane.report(
      LaneOutcome(slot: request.slot, result: result, sentAt: request.sentAt, completedAt: lane.loop.now))
  }

  private func connection(_ id: ConnectionID) -> LaneConnection? { connections.first { $0.id == id } }

  private func count(_ id: ConnectionID, _ phase: ConnectionPhase) { connection(id)?.count(phase, lane.metrics) }
}
