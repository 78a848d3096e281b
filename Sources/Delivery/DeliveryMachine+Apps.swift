import APNs
package import Wire

// A new configuration -> apps that are new, changed or gone, while notifications are in flight.
extension DeliveryMachine {
  /// Takes a new table of apps; indices of apps that were there before stay theirs.
  ///
  /// What is in flight of a removed app ends as it would have, if the answer comes. What would have to be sent (again)
  /// ends at once: as `invalid` (`UnknownApp`) if it was never sent, like every later request for that app, and as
  /// `failed` (`AppRemoved`) if it was, since APNs may have it.
  ///
  /// - Parameter renewed: apps that have new credentials or another server. A breaker that the old ones opened is closed,
  ///   and what waited for it goes out now.
  package mutating func update(apps: AppTable, renewed: [AppIndex] = [], at moment: Moment) {
    for index in environments.indices where index < apps.count {
      let app = AppIndex(Int32(index))
      let isSame = apps[app].environment == self.apps[app].environment && apps[app].bundleID == self.apps[app].bundleID
      if !isSame || apps.isRemoved(app) { forgetEnvironment(app) }
    }
    self.apps = apps
    grow()
    var freed: Set<AppIndex> = []
    for app in renewed where health[Int(app.value)].isBroken {
      health[Int(app.value)].forgive()
      freed.insert(app)
    }
    if !freed.isEmpty {
      waits.bringForward(to: moment.instant) { slot in
        guard pushes.contains(slot), let app = pushes[slot].subject.app else { return false }
        // What was parked until some time waits for it, whatever the credentials.
        return freed.contains(app) && pushes[slot].notBefore ?? moment.time <= moment.time
      }
    }
    endWaitingOfRemovedApps(at: moment)
    takeTurns(at: moment)
    takeWaitingForRoom(at: moment)
  }

  /// Ends a push whose app is gone and which is with no lane.
  mutating func endRemoved(_ slot: PushSlot, at moment: Moment) {
    if pushes[slot].subject.attempts > 0 {
      finish(slot, .failed(.notSent(.appRemoved)), at: moment)
    } else {
      finish(
        slot, .invalid(.unknownApp, message: "app: must name a configured app; this one was removed"), at: moment)
    }
  }

  private mutating func endWaitingOfRemovedApps(at moment: Moment) {
    guard apps.active.count < apps.count else { return }
    let slots = pushes.slots { push in
      guard case .waiting = push.state, let app = push.subject.app else { return false }
      return apps.isRemoved(app)
    }
    for slot in slots {
      becomeBusy(slot)
      endRemoved(slot, at: moment)
    }
  }

  mutating func grow() {
    while health.count < apps.count { health.append(AppHealth()) }
    while environments.count < apps.count { environments.append(EnvironmentGuard()) }
    router.grow(appCount: apps.count)
  }
}
