import APNs
import Delivery
import Wire

// The apps on the lanes, and a new configuration.
extension Replica {
  func makeLaneApp(_ server: AppleServer) -> SimulatedLaneApp {
    SimulatedLaneApp(world: world, server: server, limits: settings.pool) { [unowned self] outcome in
      outcomes.append(outcome)
      wake()
    }
  }

  var allLaneApps: [SimulatedLaneApp] { lanes.joined() + drainingLaneApps }

  /// A new configuration.
  func reload(_ apps: AppTable, renewed: [AppIndex]) {
    guard !isDead else { return }
    if isRunning {
      for app in self.apps.active where apps.isRemoved(app) { replaceLaneApps(app, isRemoved: true) }
      for app in renewed { replaceLaneApps(app, isRemoved: false) }
    }
    self.apps = apps
    // What was held for its time may be at an end.
    forgetDue()
    machine.update(apps: apps, renewed: renewed, at: world.moment)
    wake()
  }

  /// What waits goes out on new connections, or back if the app was removed; open requests finish on the old ones.
  private func replaceLaneApps(_ app: AppIndex, isRemoved: Bool) {
    drainingLaneApps.removeAll { $0.isFinished }
    for lane in lanes.indices {
      let former = lanes[lane][Int(app.value)]
      let next = makeLaneApp(former.server)
      lanes[lane][Int(app.value)] = next
      if !isRemoved { next.takePending(of: former) }
      former.drain(by: world.now + settings.pool.requestTimeout)
      drainingLaneApps.append(former)
    }
  }
}
