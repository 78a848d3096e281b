import APNs
import Wire

// When there is no room: holding, parking, caps.
extension DeliveryMachine {
  mutating func hold(_ place: Int, until: Instant) {
    partitions[place].heldUntil = until
    updatePause(place)
  }

  /// - Parameter app: whose cap it waits for; `nil`: that of all together.
  mutating func waitForRoom(_ place: Int, _ app: AppIndex?, isBack: Bool = false, at moment: Moment) {
    partitions[place].heldUntil = nil
    waitingForRoom.append(WaitingPlace(place: place, app: app, isBack: isBack))
    partitions[place].waitsForApp = isBack
    updatePause(place)
    notePatience(at: moment)
  }

  /// Tells whether the intake waits for apps, and when that must be looked at again.
  mutating func notePatience(at moment: Moment) {
    let isWaiting = waitingForRoom.contains { $0.app != nil && !$0.isBack }
    patience.note(isWaiting: isWaiting && !isStarting(at: moment), now: moment.instant)
    let isOver = patience.isOver(now: moment.instant)
    roomCheck = moment.instant + (isOver ? IntakePatience.most : patience.left(now: moment.instant))
  }

  /// Takes up held records, up to the first one that must be held longer.
  mutating func takeHeld(_ place: Int, at moment: Moment) {
    while let record = partitions[place].firstHeld {
      guard take(record, place, at: moment) else { return }
      partitions[place].dropFirstHeld()
    }
    updatePause(place)
  }

  /// Tries again what waited for an app at its cap.
  mutating func takeWaitingForRoom(at moment: Moment) {
    guard !waitingForRoom.isEmpty else { return }
    let waiting = waitingForRoom
    waitingForRoom.removeAll(keepingCapacity: true)
    for item in waiting {
      guard partitions.slots[item.place] != nil, partitions[item.place].heldUntil == nil else { continue }
      if hasRoomInAll, hasRoom(item, at: moment) {
        takeHeld(item.place, at: moment)
      } else {
        waitingForRoom.append(item)
      }
    }
    notePatience(at: moment)
  }

  /// Whether there is room for one more, of whichever app.
  var hasRoomInAll: Bool { inFlight < limits.maxInFlight && inFlightBytes < limits.maxInFlightBytes }

  /// Whether a record of the app would be taken up, or parked: not held again.
  private mutating func hasRoom(_ item: WaitingPlace, at moment: Moment) -> Bool {
    guard let app = item.app, !apps.isRemoved(app) else { return true }
    return inFlight(of: app) < cap(of: app, at: moment) || mustPark(app, isBack: item.isBack, at: moment)
  }

  /// Whether a parked request that is not due may wait in memory: when there is plenty of room in all respects.
  func mayWaitHere(_ app: AppIndex, _ place: Int, at moment: Moment) -> Bool {
    partitions[place].early < limits.maxEarly && !partitions[place].isCrowded && inFlight < limits.lowWater / 2
      && inFlightBytes < limits.lowWaterBytes / 2 && inFlight(of: app) < cap(of: app, at: moment) / 2
  }

  /// How many parked requests of a partition are parked anew in a second, at most, whatever the clocks say.
  static let mostAnewASecond = 256

  /// Whether a parked request that is not due for long, and may not wait here, goes back to the end of its partition,
  /// so that those behind it go on: when it has lain there for long enough. One of a key whose order counts stays.
  mutating func mayParkAnew(_ record: Record, _ request: Request, _ place: Int, at moment: Moment) -> Bool {
    let isOrdered = limits.isOrderedByKey && request.key != nil
    guard !isOrdered, let deferral = request.deferral, let storedAt = record.timestamp,
      moment.time - storedAt >= limits.parkAnewAfter, deferral.notBefore - moment.time >= limits.parkAnewAfter
    else { return false }
    if moment.instant - partitions[place].anew.since >= .seconds(1) { partitions[place].anew = (moment.instant, 0) }
    guard partitions[place].anew.count < Self.mostAnewASecond else { return false }
    partitions[place].anew.count += 1
    return true
  }

  /// What an app may have in flight now: its own cap, and never more than is left for the others below the low-water
  /// mark (the "dynamic threshold" of shared buffers, Choudhury and Hahne 1998). So some room is left however many apps
  /// do not move, and the intake, once stopped, can start again. An app that does not move may take a quarter of that
  /// alone, so that a dozen of them leave some to the others. A small part of its cap an app has in any case.
  @inline(__always)
  func cap(of app: AppIndex, at moment: Moment) -> Int {
    var left = limits.lowWater - inFlight
    if inFlightBytes > 0 {
      left = min(left, (limits.lowWaterBytes - inFlightBytes) * inFlight / inFlightBytes)
    }
    let own = apps.maxInFlight(of: app) ?? limits.maxInFlightPerApp
    if inFlight(of: app) * 4 >= left, isUnwell(app, at: moment) { left /= 4 }
    return min(own, max(left, own / 32, 1))
  }

  /// Whether a request that was just taken up must be parked at once: there is no room for its app, or its partition has
  /// gaps enough and the app would make more of them that last.
  @inline(__always)
  func cannotWait(_ app: AppIndex, _ place: Int, at moment: Moment) -> Bool {
    guard isUnwell(app, at: moment) else { return false }
    if inFlight(of: app) > cap(of: app, at: moment) { return true }
    let isKnown = health[Int(app.value)].isBroken || inFlight(of: app) >= Self.fewInFlight
    return partitions[place].isCrowded && isKnown
  }

  /// So few in flight tell nothing of an app's speed, and are gone soon: an app that moves is waited for.
  private static let fewInFlight = 32

  /// Whether what an app at its cap has beyond that is parked rather than waited for: when it does not move; or when
  /// it moves, but not briskly, the intake has waited for such apps long enough, and others would gain by being read.
  ///
  /// - Parameter isBack: the request was parked before. As long as its app moves it is not parked again and again: that
  ///   would have no end.
  mutating func mustPark(_ app: AppIndex, isBack: Bool, at moment: Moment) -> Bool {
    if isUnwell(app, at: moment) { return true }
    if isBack || inFlight(of: app) < Self.fewInFlight { return false }
    let isBrisk = health[Int(app.value)].isBrisk(typically: stay.duration, now: moment.instant)
    return !isBrisk && patience.isOver(now: moment.instant) && hasOthersWithRoom(at: moment)
  }

  /// Whether some app was seen of late that uses little of its room. One at its cap does not.
  private mutating func hasOthersWithRoom(at moment: Moment) -> Bool {
    if let known = othersHaveRoom, known.at == moment.instant { return known.1 }
    let found = health.indices.contains { index in
      health[index].wasSeen(now: moment.instant)
        && health[index].inFlight * 4 < cap(of: AppIndex(Int32(index)), at: moment)
    }
    othersHaveRoom = (moment.instant, found)
    return found
  }

  /// Whether the first connections may still be under way.
  @inline(__always)
  private func isStarting(at moment: Moment) -> Bool { startupEnds.map { moment.instant < $0 } ?? true }

  /// Whether an app at its cap does not move, or hardly. Of one that has begun with the service that is not said yet.
  @inline(__always)
  func isUnwell(_ app: AppIndex, at moment: Moment) -> Bool {
    let health = health[Int(app.value)]
    if health.isBroken { return true }
    return health.isSlow(now: moment.instant) && !(health.isUntried && isStarting(at: moment))
  }

  // MARK: A commit's metadata

  /// Whether the partition of a push has so many gaps that nothing more should wait in it.
  func isCrowded(_ slot: PushSlot) -> Bool {
    guard mayWait(slot), let place = place(of: slot) else { return false }
    return partitions[place].isCrowded
  }

  /// Parks what waits in memory, so that a commit's metadata can go on saying what is settled beyond it, and all that is
  /// remembered for it stays small. What goes out within a second is gone sooner than it could be parked. What waits for
  /// its time from the deferred topic is bounded by itself; it stays as long as only the metadata is crowded.
  mutating func thin(_ place: Int, at moment: Moment) {
    partitions[place].mustThin = false
    guard !isDraining, partitions[place].phase == .consuming else { return }
    let epoch = partitions[place].epoch
    let isLong = partitions[place].ledger.trackedCount > limits.maxTracked / 2
    let waiting = pushes.slots { push in
      guard case .waiting = push.state else { return false }
      return push.place == place && push.epoch == epoch && (isLong || !push.isEarly)
    }
    let goesSoon = waits.slots(dueBy: moment.instant + .seconds(1))
    for slot in waiting.filter({ !goesSoon.contains($0) }).sorted(by: { pushes[$0].sequence < pushes[$1].sequence }) {
      becomeBusy(slot)
      parkOrEnd(slot, until: pushes[slot].notBefore, at: moment)
    }
  }
}
