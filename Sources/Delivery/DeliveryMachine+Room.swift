import APNs
import Wire

// When there is no room: holding, parking, caps.
extension DeliveryMachine {
  mutating func hold(_ place: Int, until: Instant) {
    partitions[place].heldUntil = until
    updatePause(place)
  }

  /// - Parameter app: whose cap it waits for; `nil`: that of all together.
  mutating func waitForRoom(_ place: Int, _ app: AppIndex?) {
    partitions[place].heldUntil = nil
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
  private func hasRoom(_ app: AppIndex?, at moment: Moment) -> Bool {
    guard let app, !apps.isRemoved(app) else { return true }
    return inFlight(of: app) < cap(of: app) || isUnwell(app, at: moment)
  }

  /// Whether a parked request that is not due may wait in memory: when there is plenty of room in all respects.
  func mayWaitHere(_ app: AppIndex, _ place: Int) -> Bool {
    partitions[place].early < limits.maxEarly && !partitions[place].isCrowded && inFlight < limits.lowWater / 2
      && inFlightBytes < limits.lowWaterBytes / 2 && inFlight(of: app) < cap(of: app) / 2
  }

  /// What an app may have in flight now: its own cap, and never more than is left for the others below the low-water
  /// mark (the "dynamic threshold" of shared buffers, Choudhury and Hahne 1998). So some room is left however many apps
  /// do not move, and the intake, once stopped, can start again. A small part of its cap an app has in any case.
  @inline(__always)
  func cap(of app: AppIndex) -> Int {
    var left = limits.lowWater - inFlight
    if inFlightBytes > 0 {
      left = min(left, (limits.lowWaterBytes - inFlightBytes) * inFlight / inFlightBytes)
    }
    let own = apps.maxInFlight(of: app) ?? limits.maxInFlightPerApp
    return min(own, max(left, own / 32, 1))
  }

  /// Whether a request that was just taken up must be parked at once: there is no room for its app, or its partition has
  /// gaps enough and the app would make more of them that last.
  @inline(__always)
  func cannotWait(_ app: AppIndex, _ place: Int, at moment: Moment) -> Bool {
    isUnwell(app, at: moment) && (inFlight(of: app) > cap(of: app) || partitions[place].isCrowded)
  }

  /// Whether an app at its cap would hold up the partitions that it shares.
  @inline(__always)
  func isUnwell(_ app: AppIndex, at moment: Moment) -> Bool {
    health[Int(app.value)].isBroken || health[Int(app.value)].isSlow(now: moment.instant)
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
