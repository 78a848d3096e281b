import APNs
import Delivery
import Wire

/// One run: a scenario drawn from a seed, played until all is settled or a promise is broken.
package struct Simulation {
  package struct Report: Sendable {
    package var seed: UInt64
    /// What went wrong, if something did.
    package var violation: String?
    package var covered: [Fault: Int]
    package var requests: Int
    package var events: Int
    /// How long the run took in its own time.
    package var virtualTime: Duration
    /// From the end of the faults to the last result.
    package var recovery: Duration
    /// The longest time that a healthy app's request took, where only other apps were sick.
    package var healthyWait: Duration?
    package var story: [String]
  }

  /// From the end of the faults on, everything must be settled within this time. It holds the longest wait that Apple
  /// may ask for here (90 s), behind another one on the deferred topic, a breaker's longest pause (60 s), and the
  /// timeouts of a request's last attempts.
  private static let recoveryBound: Duration = .seconds(900)
  /// A healthy app may have to wait while a sick one that has just come to its cap is given its chance, no longer.
  private static let healthyBound: Duration = .seconds(20)

  private let seed: UInt64
  private let world: World
  private let scenario: Scenario
  private let oracle: Oracle
  private let broker: Broker
  private let group: Group
  private let workload: Workload
  private let servers: [AppleServer]
  private let crew: Crew

  /// - Parameter disabled: faults that this run must do without.
  package static func run(seed: UInt64, without disabled: Set<Fault> = [], keepsStory: Bool = false) -> Report {
    Simulation(seed: seed, without: disabled, keepsStory: keepsStory).play()
  }

  private init(seed: UInt64, without disabled: Set<Fault>, keepsStory: Bool) {
    self.seed = seed
    var scenario = Scenario(seed: seed, without: disabled)
    let start = Instant(nanoseconds: 1_000_000_000)
    world = World(
      seed: seed, faults: scenario.faults, faultsEnd: start + scenario.duration, keepsJournal: keepsStory)
    oracle = Oracle(world: world)
    broker = Broker(
      world: world, oracle: oracle, partitions: scenario.partitions, deferredPartitions: scenario.deferredPartitions)
    group = Group(world: world, broker: broker, isCooperative: scenario.isCooperative)
    let settings = Self.settings(&scenario)
    workload = Workload(world: world, broker: broker, scenario: scenario, largestBatch: settings.largestBatch)
    var servers: [AppleServer] = []
    for app in 0..<scenario.apps {
      servers.append(AppleServer(world: world, oracle: oracle, isSick: app < scenario.sickApps))
    }
    self.servers = servers
    self.scenario = scenario
    crew = Crew(
      world: world, broker: broker, group: group, servers: servers, settings: settings,
      apps: AppTable(
        (0..<scenario.apps).map {
          AppRules(name: "app-\($0)", bundleID: "com.example.app\($0)", environment: .production)
        }))
  }

  private static func settings(_ scenario: inout Scenario) -> Replica.Settings {
    func pick<Element>(_ choices: [Element]) -> Element { choices[scenario.random.uniform(below: choices.count)] }
    var limits = DeliveryMachine.Limits()
    limits.lanes = pick([1, 2, 3])
    limits.maxInFlight = pick([20, 50, 200])
    limits.maxInFlightPerApp = min(limits.maxInFlight, pick([3, 8, 20, 60]))
    if scenario.kind == .isolation, scenario.random.chance(0.5) {
      // A few apps at their caps could fill it.
      limits.maxInFlightPerApp = limits.maxInFlight / 2
    }
    limits.maxInFlightBytes = pick([2_500, 10_000, 1 << 20])
    limits.revocationTimeout = pick([.seconds(1), .seconds(5)])
    // So little that it is full now and then; but that holds up all apps of a partition.
    limits.metadataBytes =
      scenario.kind == .isolation ? pick([120, LedgerCodec.maximumBytes]) : pick([48, 80, LedgerCodec.maximumBytes])
    limits.maxEarly = scenario.kind == .isolation ? 256 : pick([0, 2, 256])
    limits.parkAnewAfter = pick([.seconds(3), .seconds(15), .seconds(60)])
    limits.isOrderedByKey = scenario.isOrderedByKey
    if !scenario.isOrderStrict { limits.maxRemembered = pick([10, 100_000]) }
    var policy = RetryPolicy()
    policy.attempts = pick([1, 3, 5])
    policy.lastingBackoff = pick([.zero, .seconds(5), .seconds(45)])
    var pool = PoolLimits()
    pool.maxConnections = pick([1, 2, 4])
    pool.maxStreamsPerConnection = pick([1, 10, 500])
    pool.requestTimeout = pick([.seconds(3), .seconds(10), .seconds(30)])
    pool.connectTimeout = pick([.seconds(2), .seconds(10)])
    pool.maxAge = pick([.seconds(10), .seconds(60), .seconds(3600)])
    return Replica.Settings(
      limits: limits, policy: policy, pool: pool, drainTimeout: pick([.seconds(2), .seconds(10)]),
      pollLimit: pick([1, 8, 64]), producerCapacity: pick([1, 10]), largestBatch: 5,
      isOrderStrict: scenario.isOrderStrict)
  }

  // MARK: Playing

  private func play() -> Report {
    // What is still to happen holds those to whom it would, and they the world.
    defer {
      world.forget()
      broker.appended = { _ in }
    }
    broker.appended = { [group] id in group.owner(of: id)?.wake() }
    for _ in 0..<scenario.replicas { crew.start() }
    crew.makeTrouble()
    workload.begin()
    let settledAt = playUntilSettled()
    playTheEnd()
    world.check(!crew.isAnyoneBusy, "something is in flight though all is settled")
    oracle.checkEnd()
    let healthyWait = checkIsolation()
    return Report(
      seed: seed, violation: world.violation, covered: world.covered, requests: oracle.items.count,
      events: Int(world.eventCount), virtualTime: world.now - Instant(nanoseconds: 1_000_000_000),
      recovery: max(.zero, settledAt - world.faultsEnd), healthyWait: healthyWait, story: world.story)
  }

  private var isSettled: Bool {
    workload.isOver && oracle.unfinished == 0
      && broker.partitions.allSatisfy { broker.lag($0) == 0 || crew.isUnaware(of: $0) }
  }

  /// - Returns: when it was.
  private func playUntilSettled() -> Instant {
    let deadline = world.faultsEnd + Self.recoveryBound
    while world.violation == nil, !isSettled {
      guard world.step() else {
        world.fail("nothing happens any more, and \(oracle.unfinished) are unfinished")
        break
      }
      world.check(
        world.now <= deadline,
        "\(oracle.unfinished) are unfinished long after the last fault, \(broker.uncommitted); \(crew.state)")
    }
    return world.now
  }

  /// Lets what is in flight come home, then drains every replica.
  private func playTheEnd() {
    // Longer than two minutes, for which a request waits for one of its key that was parked and never comes back.
    let calm = max(world.now, world.faultsEnd) + .seconds(300)
    while world.violation == nil, world.now < calm, world.step() {}
    world.check(isSettled, "what was settled is so no longer")
    crew.checkPauses()
    world.check(!crew.isAnyoneBusy, "something is in flight though all is settled; \(crew.state)")
    crew.end()
    let end = world.now + .seconds(60)
    while world.violation == nil, !crew.hasEnded {
      world.check(world.step() && world.now <= end, "the drain does not end")
    }
  }

  private func checkIsolation() -> Duration? {
    guard scenario.kind == .isolation else { return nil }
    let sick = scenario.sickApps
    let slowest = oracle.slowest { $0.app >= sick && $0.isWellFormed }
    let longest = slowest?.wait ?? .zero
    world.check(
      longest <= Self.healthyBound,
      "item \(slowest?.item ?? -1) of a healthy app took \(longest) because of \(sick) sick ones")
    return longest
  }
}
