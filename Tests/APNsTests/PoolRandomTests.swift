import APNs
import Testing
import Wire

/// Random events in a random order, most of them legal, some late or about connections that are gone. What must always
/// hold is checked by `PoolDriver` at each step.
@Suite struct PoolRandomTests {
  private static let answers: [(UInt16, Reason?)] = [
    (200, nil), (200, nil), (200, nil), (200, nil), (410, .unregistered), (400, .badDeviceToken), (400, .idleTimeout),
    (403, .invalidProviderToken), (403, .expiredProviderToken), (429, .tooManyRequests),
    (429, .tooManyProviderTokenUpdates), (500, .internalServerError), (503, .serviceUnavailable), (503, .shutdown),
    (502, nil),
  ]

  private func step(_ driver: inout PoolDriver, _ random: inout SeededRandom) {
    let ids = driver.shadows.keys.sorted { $0.value < $1.value }
    let id: ConnectionID? = ids.isEmpty ? nil : ids[random.uniform(below: ids.count)]
    let busy = ids.filter { (driver.shadows[$0]?.streams ?? 0) > 0 }
    let user: ConnectionID? = busy.isEmpty ? nil : busy[random.uniform(below: busy.count)]
    switch random.uniform(below: 24) {
    case 0, 1: driver.demand(random.uniform(below: 40))
    case 2...8: driver.take()
    case 9...13:
      let (status, reason) = Self.answers[random.uniform(below: Self.answers.count)]
      if let user { driver.answered(user, status, reason) }
    case 14:
      guard let user else { break }
      let isReset = random.chance(0.7)
      isReset ? driver.streamReset(user, isRefused: random.chance(0.5)) : driver.streamEnded(user)
    case 15: if let user { driver.timedOut(user) }
    case 16: if let id { driver.settings(id, [0, 1, 2, 5, 1000, .max][random.uniform(below: 6)]) }
    case 17:
      if let id, random.chance(0.3) { driver.goAway(id) }
      if let user, random.chance(0.3) { driver.blocked(user) }
      if let id, random.chance(0.5) { driver.pool.unblocked(id) }
    case 18: if let id { driver.acknowledgePing(id) }
    case 19:
      if let id = driver.connecting {
        random.chance(0.7) ? driver.connected(id) : driver.closed(id, .unreachable)
      }
    case 20: if let id, random.chance(0.3) { driver.closed(id) }
    case 21:
      for (id, shadow) in driver.shadows where shadow.phase == .closing { driver.closed(id) }
      // Late words about connections that are gone.
      let gone = ConnectionID(UInt32(random.uniform(below: 200)))
      if driver.shadows[gone] == nil {
        driver.pool.goAway(gone, now: driver.now)
        driver.pool.answered(gone, .delivered, status: 200, now: driver.now)
        driver.pool.closed(gone, .closed, now: driver.now)
        driver.settle()
      }
    case 22:
      let version = TokenVersion(driver.pool.token.number + 1)
      driver.pool.use(version, isRefused: random.chance(0.05), now: driver.now)
      driver.settle()
    default:
      let spans: [Duration] = [.milliseconds(1), .milliseconds(400), .seconds(3), .seconds(20), .seconds(400)]
      driver.run(for: spans[random.uniform(below: spans.count)])
    }
  }

  /// From here on all goes well: a push must get through before long.
  private func expectRecovery(_ driver: inout PoolDriver, seed: UInt64) {
    for _ in 0..<400 {
      for (id, shadow) in driver.shadows.sorted(by: { $0.key.value < $1.key.value }) {
        switch shadow.phase {
        case .connecting: driver.connected(id)
        case .closing: driver.closed(id)
        case .open, .draining:
          driver.acknowledgePing(id)
          driver.settings(id, 100)
          for _ in 0..<shadow.streams where driver.shadows[id] != nil { driver.answered(id) }
        }
      }
      driver.demand(1)
      if driver.take() != nil { return }
      driver.run(for: .seconds(1))
    }
    Issue.record("the pool is stuck, seed \(seed)")
  }

  @Test(arguments: [Authentication.token, .certificate])
  func whateverHappensTheRulesHoldAndThePoolRecovers(authentication: Authentication) {
    for seed in UInt64(1)...150 {
      var random = SeededRandom(seed: seed)
      var limits = PoolLimits()
      limits.maxConnections = 1 + random.uniform(below: 4)
      limits.maxStreamsPerConnection = [1, 3, 500][random.uniform(below: 3)]
      var driver = PoolDriver(limits: limits, authentication: authentication, seed: seed)
      for _ in 0..<400 {
        step(&driver, &random)
        let usable = driver.shadows.values.filter { $0.phase == .open || $0.phase == .connecting }.count
        // An aged connection works on while its successor is made.
        #expect(usable <= limits.maxConnections + 1, "seed \(seed)")
        if let until = driver.pool.unreachableUntil {
          let connects = driver.connects
          driver.demand(10)
          #expect(until <= driver.now || driver.connects == connects, "no attempt while backing off, seed \(seed)")
        }
      }
      expectRecovery(&driver, seed: seed)
      driver.pool.drain(by: driver.now + .seconds(5))
      driver.settle()
      driver.run(for: .seconds(5))
      #expect(driver.shadows.values.allSatisfy { $0.phase == .closing }, "seed \(seed)")
      for id in driver.shadows.keys { driver.closed(id) }
      #expect(driver.pool.isFinished, "seed \(seed)")
    }
  }
}
