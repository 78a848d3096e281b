internal import Synchronization
package import Wire

/// When one loop last turned. The loop itself writes it, without waiting for anybody.
package final class Heartbeat: Sendable {
  package let name: String
  private let lastTurn: Atomic<Int64>

  package init(name: String, now: Instant) {
    self.name = name
    self.lastTurn = Atomic(now.nanoseconds)
  }

  /// To be called in each turn of the loop, at least once a second.
  package func beat(at now: Instant) { lastTurn.store(now.nanoseconds, ordering: .relaxed) }

  var loop: HealthState.Loop {
    HealthState.Loop(name: name, lastTurn: Instant(nanoseconds: lastTurn.load(ordering: .relaxed)))
  }
}

/// Where the parts of the service note what health answers depend on. Any thread.
package final class HealthBoard: Sendable {
  private struct State {
    var heartbeats: [Heartbeat] = []
    var isConfigured = false
    var hasJoinedGroup = false
    var isDraining = false
    var apps: [HealthState.App] = []
  }

  private let state = Mutex(State())
  private let longestTurn: Duration

  /// - Parameter longestTurn: a loop that has not turned for longer is stuck.
  package init(longestTurn: Duration = .seconds(15)) { self.longestTurn = longestTurn }

  /// A loop that begins to turn now.
  package func makeHeartbeat(_ name: String, now: Instant) -> Heartbeat {
    let heartbeat = Heartbeat(name: name, now: now)
    state.withLock { $0.heartbeats.append(heartbeat) }
    return heartbeat
  }

  /// The apps of the configuration that is in effect, and what is wrong with each.
  package func setApps(_ apps: [HealthState.App]) {
    state.withLock {
      $0.apps = apps
      $0.isConfigured = true
    }
  }

  /// - Parameter fault: why the app's notifications cannot be sent; `nil`: they can.
  package func setFault(_ fault: String?, ofApp name: String) {
    state.withLock { state in
      for index in state.apps.indices where state.apps[index].name == name { state.apps[index].fault = fault }
    }
  }

  package func setJoinedGroup(_ joined: Bool) { state.withLock { $0.hasJoinedGroup = joined } }

  package func setDraining() { state.withLock { $0.isDraining = true } }

  package func snapshot(at now: Instant) -> HealthState {
    let state = state.withLock { $0 }
    return HealthState(
      now: now, loops: state.heartbeats.map(\.loop), longestTurn: longestTurn, isConfigured: state.isConfigured,
      hasJoinedGroup: state.hasJoinedGroup, isDraining: state.isDraining, apps: state.apps)
  }
}
