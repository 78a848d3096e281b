package import Wire

/// What the lane must do for a pool; each connection's actions come in order.
package enum PoolAction: Equatable, Sendable {
  /// Resolve the name afresh, connect, and report `connected` or `closed`.
  case connect(ConnectionID)
  case ping(ConnectionID)
  /// Send GOAWAY and let the streams finish.
  case drain(ConnectionID)
  /// End it now (GOAWAY first, if it can be sent at once), and report `closed`. Streams that are open are lost.
  case close(ConnectionID)
}

/// The connections of one app on one lane: when to open one, which one carries the next push, when one has had its day.
///
/// The lane reports events and then performs what `nextAction` gives until it gives nothing. Each connection ends in
/// exactly one report of `closed`. Events about connections that are gone are ignored. With the few connections that a pool
/// may have, each step costs a walk over them and no allocation.
package struct PoolState: Sendable {
  package let limits: PoolLimits
  package let authentication: Authentication
  /// What new connections work with.
  package private(set) var token: TokenVersion = .none
  package private(set) var connections: [ConnectionState] = []
  /// Pushes that wait for a stream.
  package private(set) var pending = 0
  /// How the last failed attempt, or the connection that was lost last, ended; `nil` if an answer came since.
  package private(set) var lastFailure: ConnectionFailure?
  package private(set) var isDraining = false

  private var backoff: ConnectBackoff
  private var nextID: UInt32 = 0
  /// The limit that a connection last came to have once it was settled.
  private var typicalLimit = 100
  private var actions: [PoolAction] = []
  private var nextActionIndex = 0

  package init(limits: PoolLimits, authentication: Authentication, random: SeededRandom) {
    self.limits = limits
    self.authentication = authentication
    backoff = ConnectBackoff(limits: limits, random: random)
  }

  // MARK: Questions

  /// What must be done next; `nil` when nothing is left to do.
  package mutating func nextAction() -> PoolAction? {
    guard nextActionIndex < actions.count else {
      actions.removeAll(keepingCapacity: true)
      nextActionIndex = 0
      return nil
    }
    nextActionIndex += 1
    return actions[nextActionIndex - 1]
  }

  /// When `tick` should be called next; `distantFuture` for never.
  package var nextDeadline: Instant {
    var deadline = backoff.retryAt ?? .distantFuture
    let openCount = openCount
    for connection in connections {
      deadline = min(deadline, connection.deadline(limits))
      if openCount > 1, connection.isOpen, connection.streams == 0 {
        deadline = min(deadline, connection.lastTaken + limits.idleClose)
      }
    }
    return deadline
  }

  /// Set while no connection is usable or on its way and none may be tried before that time: pushes should not wait
  /// here for it.
  package var unreachableUntil: Instant? {
    hasConnection ? nil : backoff.retryAt
  }

  /// Whether a connection is usable or on its way.
  private var hasConnection: Bool { connections.contains { $0.isOpen || $0.isConnecting } }

  package var openCount: Int { connections.reduce(0) { $0 + ($1.isOpen ? 1 : 0) } }

  /// Open streams on all connections.
  package var streams: Int { connections.reduce(0) { $0 + $1.streams } }

  /// Streams that could be taken now.
  package var free: Int { isDraining ? 0 : connections.reduce(0) { $0 + $1.free } }

  /// Whether a drained pool has no connection left.
  package var isFinished: Bool { isDraining && connections.isEmpty }

  /// What requests on that connection must carry; `nil` if there is no such connection.
  package func token(of id: ConnectionID) -> TokenVersion? {
    index(of: id).map { connections[$0].token }
  }

  /// Why the pool gives that connection up; `nil` while it does not, or if there is no such connection.
  package func endReason(of id: ConnectionID) -> EndReason? { index(of: id).flatMap { connections[$0].endReason } }

  // MARK: Pushes

  /// So many pushes wait; connections are opened for them as far as they need it. To be told whenever that number has
  /// changed for another reason than `take`, also when pushes were handed back because of `unreachableUntil`.
  package mutating func demand(pending: Int, now: Instant) {
    self.pending = pending
    plan(now)
  }

  /// A stream for the next push, on the least loaded connection, which is counted from now on; `nil` if there is none.
  package mutating func take(now: Instant) -> ConnectionID? {
    guard !isDraining else { return nil }
    var best: Int?
    var bestIsSuspect = true
    var bestStreams = Int.max
    for index in connections.indices where connections[index].free > 0 {
      let isSuspect = connections[index].isSuspect
      let streams = connections[index].streams
      guard isSuspect == bestIsSuspect ? streams < bestStreams : bestIsSuspect else { continue }
      (best, bestIsSuspect, bestStreams) = (index, isSuspect, streams)
    }
    guard let best else {
      plan(now)
      return nil
    }
    pending = max(0, pending - 1)
    connections[best].offer(token, limits: limits, now: now)
    let step = connections[best].streamOpened(limits: limits, now: now)
    perform(step, best)
    return connections[best].id
  }

  // MARK: Streams

  /// An answer has ended a stream.
  package mutating func answered(_ id: ConnectionID, _ verdict: Verdict, status: UInt16, now: Instant) {
    guard let index = index(of: id) else { return }
    lastFailure = nil
    let wasOpen = connections[index].isOpen
    let wasUnlocked = connections[index].isUnlocked
    let step = connections[index].answered(verdict, status: status, limits: limits, now: now)
    if ConnectionState.showsGoodHealth(verdict), connections[index].hasLasted(limits, now: now) {
      backoff.lasted(since: connections[index].openedAt)
    }
    if wasOpen, !connections[index].isOpen { noteLoss(index, now) }
    noteLimit(index)
    perform(step, index)
    if step != .none || !wasUnlocked { plan(now) }
  }

  /// A stream has ended with its connection.
  package mutating func streamEnded(_ id: ConnectionID, now: Instant) {
    guard let index = index(of: id) else { return }
    let step = connections[index].streamEnded()
    perform(step, index)
    if step != .none { plan(now) }
  }

  /// A stream was reset; `isRefused`: the peer has not processed it.
  package mutating func streamReset(_ id: ConnectionID, isRefused: Bool, now: Instant) {
    ended(id, now) { connection, limits in connection.streamReset(isRefused: isRefused, limits: limits, now: now) }
  }

  /// The output of the connection that was just taken is full: its stream is given back, and the connection is passed
  /// over until `unblocked`, or until one of its streams ends.
  package mutating func blocked(_ id: ConnectionID, now: Instant) {
    guard let index = index(of: id) else { return }
    let step = connections[index].blocked()
    perform(step, index)
    if step != .none { plan(now) }
  }

  /// The output of a connection has room again.
  package mutating func unblocked(_ id: ConnectionID) {
    guard let index = index(of: id) else { return }
    connections[index].unblocked()
  }

  /// A connection can carry nothing more, since what it would have to be given is gone (a provider token that is too old
  /// to be kept). The stream that was just taken is given back.
  package mutating func retire(_ id: ConnectionID, now: Instant) {
    guard let index = index(of: id) else { return }
    var step = connections[index].streamEnded()
    if step == .none { step = connections[index].retire(until: now + limits.requestTimeout, .replaced) }
    perform(step, index)
    plan(now)
  }

  /// A request has had no answer in time; the lane resets its stream, and does not report that once more.
  package mutating func requestTimedOut(_ id: ConnectionID, now: Instant) {
    ended(id, now) { connection, limits in connection.requestTimedOut(limits: limits, now: now) }
  }

  /// A stream has ended in a way that may end its connection too.
  private mutating func ended(
    _ id: ConnectionID, _ now: Instant, _ end: (inout ConnectionState, PoolLimits) -> ConnectionState.Step
  ) {
    guard let index = index(of: id) else { return }
    let wasOpen = connections[index].isOpen
    let step = end(&connections[index], limits)
    if wasOpen, !connections[index].isOpen { noteLoss(index, now) }
    perform(step, index)
    if step != .none { plan(now) }
  }

  // MARK: Connections

  /// TCP and TLS are done, HTTP/2 may begin.
  package mutating func connected(_ id: ConnectionID, now: Instant) {
    guard let index = index(of: id), connections[index].isConnecting else { return }
    backoff.connected()
    let age = backoff.spread(limits.maxAge)
    connections[index].connected(retireAt: now + age, now: now)
    plan(now)
  }

  /// SETTINGS came. The limit is that for streams, `Int.max` where they name none.
  package mutating func settings(_ id: ConnectionID, limit: Int, now: Instant) {
    guard let index = index(of: id) else { return }
    connections[index].settings(limit: limit, limits: limits, now: now)
    noteLimit(index)
    plan(now)
  }

  /// GOAWAY came: nothing new goes onto the connection, and its streams may finish.
  package mutating func goAway(_ id: ConnectionID, now: Instant) {
    guard let index = index(of: id) else { return }
    let wasOpen = connections[index].isOpen
    let step = connections[index].goAway(limits: limits, now: now)
    if wasOpen { noteLoss(index, now) }
    perform(step, index)
    plan(now)
  }

  package mutating func pingAcknowledged(_ id: ConnectionID, now: Instant) {
    guard let index = index(of: id) else { return }
    connections[index].pingAcknowledged(now: now)
  }

  /// The connection, or the attempt to make it, has ended, with all its streams.
  package mutating func closed(_ id: ConnectionID, _ failure: ConnectionFailure, now: Instant) {
    guard let index = index(of: id) else { return }
    switch connections[index].phase {
    case .connecting:
      lastFailure = failure
      backoff.failed(now: now)
    case .open:
      lastFailure = failure
      noteLoss(index, now)
    case .draining, .closing: break
    }
    connections.remove(at: index)
    plan(now)
  }

  // MARK: Credentials, time, the end

  /// The app has a younger provider token; the connections take it up as they may.
  ///
  /// - Parameter isRefused: APNs has called the token before this one expired. The connections that have seen it may
  ///   refuse its successor too, so they are replaced as well.
  package mutating func use(_ version: TokenVersion, isRefused: Bool = false, now: Instant) {
    token = version
    guard isRefused else { return }
    retireAll(until: now + limits.requestTimeout, .replaced)
    plan(now)
  }

  /// Time has passed: pings, timeouts, idle and aged connections, the end of a backoff.
  package mutating func tick(now: Instant) {
    backoff.tick(now: now)
    for index in connections.indices {
      let wasConnecting = connections[index].isConnecting
      let wasOpen = connections[index].isOpen
      let wasSuspect = connections[index].isSuspect
      let step = connections[index].tick(limits: limits, now: now)
      if step == .close, wasConnecting {
        lastFailure = .unreachable
        backoff.failed(now: now)
      } else if wasOpen, !connections[index].isOpen {
        if wasSuspect { lastFailure = .silent }
        noteLoss(index, now)
      }
      perform(step, index)
    }
    closeSurplus(now)
    plan(now)
  }

  /// No new streams on any connection; each ends when its streams have, all of them by the deadline. `isFinished` tells
  /// when that is done.
  package mutating func drain(by deadline: Instant) {
    isDraining = true
    pending = 0
    backoff.forget()
    retireAll(until: deadline, .unneeded)
  }

  // MARK: Parts

  private func index(of id: ConnectionID) -> Int? { connections.firstIndex { $0.id == id } }

  private mutating func perform(_ step: ConnectionState.Step, _ index: Int) {
    let id = connections[index].id
    switch step {
    case .none: break
    case .ping: actions.append(.ping(id))
    case .drain: actions.append(.drain(id))
    case .close: actions.append(.close(id))
    }
  }

  private mutating func retireAll(until deadline: Instant, _ reason: EndReason) {
    for index in connections.indices {
      let step = connections[index].retire(until: deadline, reason)
      perform(step, index)
    }
  }

  private mutating func noteLimit(_ index: Int) {
    let connection = connections[index]
    guard connection.isOpen, connection.isSettled, let limit = connection.peerLimit, limit > 0 else { return }
    typicalLimit = limit
  }

  /// Replaces aged connections and opens another one if what waits needs more streams than are to be expected.
  private mutating func plan(_ now: Instant) {
    guard !isDraining else { return }
    backoff.tick(now: now)
    let hasAged = retireAged(now)
    var young = 0
    var expected = 0
    for connection in connections {
      // One at a time: what the last one turns out to give decides about the next.
      if connection.isConnecting { return }
      if connection.isOpen, !connection.isAged { young += 1 }
      expected += connection.expectedFree(typical: typicalLimit)
    }
    guard hasAged || pending > expected, young < limits.maxConnections, backoff.retryAt == nil else { return }
    connect(now)
  }

  private mutating func connect(_ now: Instant) {
    let id = ConnectionID(nextID)
    nextID &+= 1
    connections.append(
      ConnectionState(id: id, authentication: authentication, token: token, limits: limits, now: now))
    actions.append(.connect(id))
  }

  /// Retires aged connections: those that idle, and the others once there is a younger one to take over.
  /// - Returns: whether one is left that waits for its successor.
  private mutating func retireAged(_ now: Instant) -> Bool {
    guard connections.contains(where: { $0.isOpen && $0.isAged }) else { return false }
    let hasSuccessor = connections.contains { $0.isOpen && !$0.isAged }
    var isWaiting = false
    for index in connections.indices where connections[index].isOpen && connections[index].isAged {
      let isIdle =
        connections[index].streams == 0 && pending == 0 && now - connections[index].lastTaken >= limits.idlePing
      guard hasSuccessor || isIdle else {
        isWaiting = true
        continue
      }
      let step = connections[index].retire(until: now + limits.requestTimeout, .replaced)
      perform(step, index)
    }
    return isWaiting
  }

  /// Closes connections that have had nothing to do for long, but never the last one.
  private mutating func closeSurplus(_ now: Instant) {
    var open = openCount
    for index in connections.indices.reversed() where open > 1 {
      let connection = connections[index]
      guard connection.isOpen, connection.streams == 0, now >= connection.lastTaken + limits.idleClose else { continue }
      let step = connections[index].retire(until: now + limits.requestTimeout, .unneeded)
      perform(step, index)
      open -= 1
    }
  }

  /// A connection that had been open is lost. It counts against the next attempts if it did not last.
  private mutating func noteLoss(_ index: Int, _ now: Instant) {
    if !connections[index].hasLasted(limits, now: now) { backoff.wasShort(now: now) }
  }
}
