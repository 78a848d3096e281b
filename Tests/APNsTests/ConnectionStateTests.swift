import APNs
import Testing
import Wire

/// Every sequence of events up to a length, on one connection: a connection is small enough for that.
@Suite struct ConnectionStateTests {
  private enum Event: CaseIterable {
    case connected, limitZero, limitTwo, take, success, refusal, serverError, replaced, reset, timeout, goAway, retire
    case acknowledged, second, minute
  }

  private struct World {
    var connection: ConnectionState
    var now = Instant(nanoseconds: 1_000_000_000)
    var streams = 0
    var closes = 0
    var drains = 0
    var isOver = false
    var trail: [Event] = []
  }

  private let limits = PoolLimits()

  /// Applies an event; `false` where it cannot happen.
  private func apply(_ event: Event, to world: inout World) -> Bool {
    let now = world.now
    let isBusy = world.streams > 0
    var step = ConnectionState.Step.none
    switch event {
    case .connected: world.connection.connected(retireAt: now + .seconds(3600), now: now)
    case .limitZero: world.connection.settings(limit: 0, limits: limits, now: now)
    case .limitTwo: world.connection.settings(limit: 2, limits: limits, now: now)
    case .take:
      guard world.connection.free > 0 else { return false }
      world.streams += 1
      step = world.connection.streamOpened(limits: limits, now: now)
    case .success, .refusal, .serverError, .replaced:
      guard isBusy else { return false }
      world.streams -= 1
      let (verdict, status): (Verdict, UInt16) =
        switch event {
        case .success: (.delivered, 200)
        case .refusal: (.credentialFault, 403)
        case .serverError: (.retry, 500)
        default: (.replaceConnection, 503)
        }
      step = world.connection.answered(verdict, status: status, limits: limits, now: now)
    case .reset:
      guard isBusy else { return false }
      world.streams -= 1
      step = world.connection.streamEnded()
    case .timeout:
      guard isBusy else { return false }
      world.streams -= 1
      step = world.connection.requestTimedOut(limits: limits, now: now)
    case .goAway: step = world.connection.goAway(limits: limits, now: now)
    case .retire: step = world.connection.retire(until: now + limits.requestTimeout, .replaced)
    case .acknowledged: world.connection.pingAcknowledged(now: now)
    case .second, .minute:
      world.now = now + .seconds(event == .second ? 1 : 60)
      step = world.connection.tick(limits: limits, now: world.now)
    }
    if step == .close { world.closes += 1 }
    if step == .drain { world.drains += 1 }
    if event == .goAway || event == .retire { world.isOver = true }
    world.trail.append(event)
    return true
  }

  /// What is wrong with the state, if anything.
  private func fault(_ world: World) -> String? {
    let connection = world.connection
    if connection.streams != world.streams { return "miscounts its streams" }
    if connection.free > 0, !connection.isOpen { return "gives streams while it is not open" }
    if connection.free + connection.streams > max(connection.limit, connection.streams) { return "exceeds its limit" }
    if !connection.isUnlocked, connection.limit > 1 { return "gives more than one stream before the first answer" }
    if world.closes > 1 || world.drains > 1 { return "closes or drains twice" }
    if (connection.phase == .closing) != (world.closes == 1) { return "is closing without saying so, or the reverse" }
    if world.isOver, connection.isOpen { return "stays open after its end was decided" }
    if world.isOver, world.streams == 0, world.closes == 0 { return "stays although nothing is left on it" }
    if connection.phase != .closing, connection.deadline(limits) == .distantFuture { return "may stay for ever" }
    return nil
  }

  private func explore(_ world: World, depth: Int, count: inout Int) {
    for event in Event.allCases {
      var next = world
      guard apply(event, to: &next) else { continue }
      count += 1
      if let fault = fault(next) {
        Issue.record("a connection \(fault) after \(next.trail)")
        return
      }
      if depth > 1 { explore(next, depth: depth - 1, count: &count) }
    }
  }

  private func connection() -> ConnectionState {
    ConnectionState(
      id: ConnectionID(0), authentication: .token, token: TokenVersion(1), limits: limits,
      now: Instant(nanoseconds: 1_000_000_000))
  }

  @Test func noSequenceOfEventsBreaksAConnectionFromItsStart() {
    var count = 0
    explore(World(connection: connection()), depth: 4, count: &count)
    #expect(count > 4_000)
  }

  @Test func noSequenceOfEventsBreaksAConnectionAtWork() {
    var world = World(connection: connection())
    for event in [Event.connected, .limitTwo, .take, .success, .take, .take] { #expect(apply(event, to: &world)) }
    var count = 0
    explore(world, depth: 4, count: &count)
    #expect(count > 10_000)
  }
}
