internal import Synchronization
package import Wire

/// Where the parts of the service note what health answers depend on. Any thread.
package final class HealthBoard: Sendable {
  private struct State {
    var loops: [(name: String, lastTurn: @Sendable () -> Instant)] = []
    var isConfigured = false
    var hasJoinedGroup = false
    var hadJoinedGroup = false
    var isDraining = false
    var apps: [HealthState.App] = []
    /// What Kafka refuses, and until when that is believed.
    var kafka: [String: (fault: String, until: Instant)] = [:]
  }

  /// librdkafka tells the same error of a connection at most every 30 seconds. What it has not said for longer is over.
  private static let memory: Duration = .seconds(45)

  private let state = Mutex(State())
  private let longestTurn: Duration

  /// - Parameter longestTurn: a loop that has not turned for longer is stuck.
  package init(longestTurn: Duration = .seconds(15)) { self.longestTurn = longestTurn }

  /// A loop that must turn for the service to be alive.
  ///
  /// - Parameter lastTurn: when it last did; asked by the endpoint, so it must not wait for the loop.
  package func watch(_ name: String, lastTurn: @escaping @Sendable () -> Instant) {
    state.withLock { $0.loops.append((name, lastTurn)) }
  }

  /// The apps of the configuration that is in effect, and what is wrong with each.
  package func setApps(_ apps: [HealthState.App]) {
    state.withLock { state in
      let earlier = Dictionary(state.apps.map { ($0.name, $0.note) }, uniquingKeysWith: { $1 })
      state.apps = apps
      for index in apps.indices { state.apps[index].note = earlier[apps[index].name] ?? nil }
      state.isConfigured = true
    }
  }

  /// The same after a reload: the faults of apps that have not changed stay, the others have none.
  package func updateApps(_ names: [String], unchanged: Set<String>) {
    let earlier = state.withLock { $0.apps }
    let faults = Dictionary(earlier.map { ($0.name, $0.fault) }, uniquingKeysWith: { $1 })
    setApps(
      names.map { name in
        HealthState.App(name: name, fault: unchanged.contains(name) ? faults[name] ?? nil : nil)
      })
  }

  /// - Parameters:
  ///   - fault: why the app's notifications cannot be sent; `nil`: they can.
  ///   - name: of a configured app.
  ///   - replacesKnown: whether it takes the place of a fault that is there already.
  package func setFault(_ fault: String?, ofApp name: String, replacesKnown: Bool = true) {
    state.withLock { state in
      for index in state.apps.indices where state.apps[index].name == name {
        if replacesKnown || state.apps[index].fault == nil { state.apps[index].fault = fault }
      }
    }
  }

  /// Something that people should look at, while the app can be served; `nil`: nothing.
  package func setNote(_ note: String?, ofApp name: String) {
    state.withLock { state in
      for index in state.apps.indices where state.apps[index].name == name { state.apps[index].note = note }
    }
  }

  /// Whether the group has given this replica an assignment, even an empty one.
  package func setJoinedGroup(_ joined: Bool) {
    state.withLock { state in
      state.hasJoinedGroup = joined
      state.hadJoinedGroup = state.hadJoinedGroup || joined
    }
  }

  /// - Parameters:
  ///   - fault: what Kafka refuses and somebody must mend; `nil`: nothing any more.
  ///   - part: a client or a topic.
  ///   - time: now, for a fault that is told again and again while it lasts; `nil`: it lasts until it is taken back.
  package func setKafkaFault(_ fault: String?, of part: String, at time: Instant?) {
    state.withLock { state in
      guard fault != nil || !state.kafka.isEmpty else { return }
      state.kafka[part] = fault.map { ($0, time.map { $0 + Self.memory } ?? .distantFuture) }
    }
  }

  /// From here on the service is not ready any more.
  package func setDraining() { state.withLock { $0.isDraining = true } }

  /// All that the answers are made from, as it is now.
  package func snapshot(at now: Instant) -> HealthState {
    let state = state.withLock { $0 }
    var health = HealthState(
      now: now, loops: state.loops.map { HealthState.Loop(name: $0.name, lastTurn: $0.lastTurn()) },
      longestTurn: longestTurn, isConfigured: state.isConfigured,
      hasJoinedGroup: state.hasJoinedGroup, isDraining: state.isDraining, apps: state.apps,
      kafkaFaults: state.kafka.values.filter { $0.until > now }.map(\.fault).sorted())
    health.hadJoinedGroup = state.hadJoinedGroup
    return health
  }
}
