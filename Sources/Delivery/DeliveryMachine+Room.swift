import APNs
import Wire

// When there is no room: holding, parking, caps.
extension DeliveryMachine {
  mutating func hold(_ place: Int, until: Instant) {
    partitions[place].heldUntil = until
    updatePause(place)
  }

  /// - Parameter app: whose cap it waits for; `nil`: that of all together.
  mutating func waitForRoom(_ place: Int, _ app: AppIndex?, at moment: Moment) {
    partitions[place].heldUntil = nil
    if let app { health[Int(app.value)].blocked(now: moment.instant) }
    roomCheck = moment.instant + AppHealth.blockedTime
    waitingForRoom.append(WaitingPlace(place: place, app: app))
  }

  /// Takes up held records, up to the first one that must be held longer.
  mutating func takeHeld(_ place: Int, at moment: Moment) {
    while let record = partitions[place].firstHeld {
      guard take(record, place, at: moment) else { return }
      partitions[place].dropFirstHeld()
    }
  }

  /// Tries again what waited for an app at its cap.
  mutating func takeWaitingForRoom(at moment: Moment) {
    guard !waitingForRoom.isEmpty else { return }
    if let roomCheck, roomCheck <= moment.instant { self.roomCheck = moment.instant + AppHealth.blockedTime }
    let waiting = waitingForRoom
    waitingForRoom.removeAll(keepingCapacity: true)
    for item in waiting {
      guard partitions.slots[item.place] != nil, partitions[item.place].heldUntil == nil else { continue }
      if inFlight < limits.maxInFlight, hasRoom(item.app, at: moment) {
        takeHeld(item.place, at: moment)
      } else {
        waitingForRoom.append(item)
      }
    }
  }

  /// Whether a record of the app would be taken up, or parked: not held again.
  private mutating func hasRoom(_ app: AppIndex?, at moment: Moment) -> Bool {
    guard let app, !apps.isRemoved(app) else { return true }
    return !isAtCap(app) || mustPark(app, at: moment)
  }

  /// Whether a parked request that is not due may wait in memory: when there is plenty of room in all respects.
  func mayWaitHere(_ app: AppIndex, _ place: Int) -> Bool {
    partitions[place].early < limits.maxEarly && !partitions[place].isCrowded && inFlight < limits.lowWater / 2
      && inFlightBytes < limits.lowWaterBytes / 2 && inFlight(of: app) < cap(of: app) / 2
  }

  /// Whether an app has all that it may have; one that has less than half of it is no longer in anybody's way.
  mutating func isAtCap(_ app: AppIndex) -> Bool {
    let (count, cap) = (inFlight(of: app), cap(of: app))
    if count * 2 < cap { health[Int(app.value)].unblock() }
    return count >= cap
  }

  /// What an app may have in flight now: its own cap, and never more than is left for the others below the low-water
  /// mark (the "dynamic threshold" of shared buffers, Choudhury and Hahne 1998). So some room is left however many apps
  /// do not move, and the intake, once stopped, can start again. A small part of its cap an app has in any case.
  func cap(of app: AppIndex) -> Int {
    var left = limits.lowWater - inFlight
    if inFlightBytes > 0 {
      left = min(left, (limits.lowWaterBytes - inFlightBytes) * inFlight / inFlightBytes)
    }
    let own = apps.maxInFlight(of: app) ?? limits.maxInFlightPerApp
    return min(own, max(left, own / 32, 1))
  }

  /// Whether an app at its cap would hold up the partitions that it shares: when it does not move, or when others that
  /// have room have waited for it.
  mutating func mustPark(_ app: AppIndex, at moment: Moment) -> Bool {
    if isUnwell(app, at: moment) || health[Int(app.value)].isSpilling(now: moment.instant) { return true }
    // An app that has little since others leave it little is not in their way.
    let own = apps.maxInFlight(of: app) ?? limits.maxInFlightPerApp
    guard inFlight(of: app) * 2 >= own, health[Int(app.value)].hasBlocked(now: moment.instant),
      delaysOthers(app, at: moment)
    else { return false }
    health[Int(app.value)].beginSpill(now: moment.instant)
    return true
  }

  /// Whether a request that was just taken up must be parked at once: there is no room for its app, or its partition has
  /// gaps enough and the app would make more of them that last.
  mutating func cannotWait(_ app: AppIndex, _ place: Int, at moment: Moment) -> Bool {
    if inFlight(of: app) > cap(of: app) { return mustPark(app, at: moment) }
    return partitions[place].isCrowded && isUnwell(app, at: moment)
  }

  func isUnwell(_ app: AppIndex, at moment: Moment) -> Bool {
    health[Int(app.value)].isBroken || health[Int(app.value)].isSlow(now: moment.instant)
  }

  /// Whether another app was seen of late that uses little of its room: it gains by being read past this one.
  private func delaysOthers(_ app: AppIndex, at moment: Moment) -> Bool {
    health.indices.contains { index in
      let other = AppIndex(Int32(index))
      return other != app && health[index].wasSeen(now: moment.instant) && inFlight(of: other) * 4 < cap(of: other)
    }
  }

  // MARK: A commit's metadata

  /// Whether the partition of a push has so many gaps that nothing more should wait in it.
  func isCrowded(_ slot: PushSlot) -> Bool {
    let (place, epoch) = (pushes[slot].partitionSlot, pushes[slot].epoch)
    return partitions.isCurrent(place, epoch: epoch) && partitions[place].isCrowded && mayWait(slot)
  }

  /// Parks what waits in memory, so that a commit's metadata can go on saying what is settled beyond it. What waits for
  /// its time from the deferred topic stays; that is bounded by itself.
  mutating func thin(_ place: Int, at moment: Moment) {
    partitions[place].mustThin = false
    guard !isDraining, partitions[place].phase == .consuming else { return }
    let epoch = partitions[place].epoch
    let waiting = pushes.slots { push in
      guard case .waiting = push.state else { return false }
      return push.partitionSlot == place && push.epoch == epoch && !push.isEarly
    }
    for slot in waiting.sorted(by: { pushes[$0].sequence < pushes[$1].sequence }) {
      becomeBusy(slot)
      parkOrEnd(slot, at: moment)
    }
  }
}
