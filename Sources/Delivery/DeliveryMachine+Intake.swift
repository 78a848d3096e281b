import APNs
package import Wire

// Record -> push -> submission.
extension DeliveryMachine {
  /// Takes polled records up, in the order in which they were polled.
  package mutating func take(_ records: [Record], at moment: Moment) {
    tally.consumed += records.count
    var place = -1
    for record in records {
      if place < 0 || partitions[place].id != record.source {
        guard let found = partitions.place(of: record.source) else {
          tally.stray += 1
          place = -1
          continue
        }
        place = found
      }
      switch partitions[place].phase {
      case .draining: tally.stray += 1
      case .consuming:
        // Once one is held, all that follow of its partition are, so that they stay in order.
        if partitions[place].isHolding || !take(record, place, at: moment) { partitions[place].held.append(record) }
      }
    }
  }

  /// Takes one record up.
  ///
  /// - Returns: false if it must be held until it is due or there is room.
  private mutating func take(_ record: Record, _ place: Int, at moment: Moment) -> Bool {
    guard inFlight < limits.maxInFlight else {
      // As many were polled as there was room for, but some had many items.
      waitForRoom(place, nil)
      return false
    }
    switch decoder.decode(record, apps: apps, now: moment) {
    case .tombstone:
      if case .admitted = admit(record, place, items: 0) { tally.tombstones += 1 }
    case .invalid(let invalid):
      guard case .admitted(let sequence) = admit(record, place, items: 1) else { return true }
      reject(invalid, record, place, sequence, at: moment)
    case .request(let request):
      if let deferral = request.deferral, deferral.notBefore > moment.time {
        let wait = deferral.notBefore.milliseconds - moment.time.milliseconds
        hold(place, until: moment.instant + .milliseconds(min(wait, 60_000)))
        return false
      }
      if inFlight(of: request.app) >= cap(of: request.app) {
        if !mustPark(request.app, at: moment) {
          waitForRoom(place, request.app)
          return false
        }
      }
      // A parked item of a batch comes back by itself.
      let items =
        request.deferral.map { Int($0.source.item)..<Int($0.source.item) + 1 } ?? 0..<max(request.tokens.count, 1)
      guard case .admitted(let sequence) = admit(record, place, items: items.count) else { return true }
      tally.unknownFields += request.unknownFields
      for item in items { start(request, item, record, place, sequence, at: moment) }
    }
    return true
  }

  private mutating func admit(_ record: Record, _ place: Int, items: Int) -> PartitionLedger.Admission {
    let admission = partitions[place].ledger.admit(offset: record.offset, items: items)
    switch admission {
    case .admitted: break
    case .alreadySettled: tally.alreadySettled += 1
    case .known: tally.known += 1
    case .rewound:
      // The topic was made anew: its offsets begin again, and so does the book that is kept on them.
      events.append(.rewound(partitions[place].id, offset: record.offset))
      partitions.restart(place)
      updatePause(place)
      return partitions[place].ledger.admit(offset: record.offset, items: items)
    }
    return admission
  }

  /// Makes a push of one item and sends it on its way.
  private mutating func start(
    _ request: Request, _ item: Int, _ record: Record, _ place: Int, _ sequence: Int, at moment: Moment
  ) {
    let source = request.deferral?.source ?? Source(partition: record.source, offset: record.offset, item: Int32(item))
    var subject = ResultSubject(
      request, source: source, attempts: request.deferral?.attempts ?? 0,
      requestedAt: request.deferral?.requestedAt ?? record.timestamp ?? moment.time)
    subject.takenUpAt = request.deferral?.takenUpAt ?? moment.time
    let slot = pushes.insert(
      Push(
        subject: subject, partitionSlot: place, epoch: partitions[place].epoch, sequence: sequence,
        bytes: item == 0 ? request.notification.storage.count : 0))
    health[Int(request.app.value)].began(now: moment.instant)
    if request.deferral != nil { events.append(.unparked(request.app)) }
    if let fault = request.invalidItems.first(where: { $0.item == Int32(item) }) {
      pushes[slot].subject.notification.token = fault.token ?? .empty
      becomeBusy(slot)
      finish(slot, .invalid(fault.violation.rule, message: fault.violation.message), at: moment)
    } else if inFlight(of: request.app) > cap(of: request.app), mustPark(request.app, at: moment) {
      becomeBusy(slot)
      parkOrEnd(slot, at: moment)
    } else {
      dispatch(slot, at: moment)
    }
  }

  /// A request whose app has no room waits on the deferred topic, and comes back as often as it must; but not for ever.
  private mutating func parkOrEnd(_ slot: PushSlot, at moment: Moment) {
    if RetryPolicy.isExpired(pushes[slot].subject.notification.expiration, now: moment.time) {
      finish(slot, .expired, at: moment)
    } else if retryPolicy.isGivenUp(takenUpAt: pushes[slot].subject.takenUpAt ?? moment.time, now: moment.time) {
      finish(slot, .failed(.notSent(.unreachable)), at: moment)
    } else {
      park(slot, after: .seconds(5) + random.uniform(below: .seconds(5)), at: moment)
    }
  }

  /// Sends a push that is not with a lane: now, or when its app's breaker allows it.
  mutating func dispatch(_ slot: PushSlot, at moment: Moment) {
    guard let app = pushes[slot].subject.app else { return }
    if RetryPolicy.isExpired(pushes[slot].subject.notification.expiration, now: moment.time) {
      becomeBusy(slot)
      finish(slot, .expired, at: moment)
      return
    }
    switch health[Int(app.value)].admit(now: moment.instant) {
    case .closed(let until):
      pushes[slot].state = .waiting
      retries.insert(slot, due: until + random.uniform(below: .milliseconds(500)))
    case .open:
      let lane = router.route(
        app, appInFlight: health[Int(app.value)].inFlight, maxLanes: apps.maxLanes(of: app))
      becomeBusy(slot)
      pushes[slot].state = .submitted(lane)
      submissions[Int(lane.value)].append(
        Submission(slot: slot, app: app, notification: pushes[slot].subject.notification))
    }
  }

  mutating func becomeBusy(_ slot: PushSlot) {
    let (place, epoch) = (pushes[slot].partitionSlot, pushes[slot].epoch)
    if partitions.isCurrent(place, epoch: epoch) { partitions[place].busy += 1 }
  }

  // MARK: Holding and parking

  private mutating func hold(_ place: Int, until: Instant) {
    partitions[place].heldUntil = until
    updatePause(place)
  }

  /// - Parameter app: whose cap it waits for; `nil`: that of all together.
  private mutating func waitForRoom(_ place: Int, _ app: AppIndex?) {
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
    return inFlight(of: app) < cap(of: app) || mustPark(app, at: moment)
  }

  /// What an app may have in flight now: its own cap, and never more than is left for the others below the low-water
  /// mark (the "dynamic threshold" of shared buffers, Choudhury and Hahne 1998). So some room is left however many apps
  /// do not move, and the intake, once stopped, can start again. A small part of its cap an app has in any case.
  private func cap(of app: AppIndex) -> Int {
    var left = limits.lowWater - inFlight
    if inFlightBytes > 0 {
      left = min(left, (limits.lowWaterBytes - inFlightBytes) * inFlight / inFlightBytes)
    }
    let own = apps.maxInFlight(of: app) ?? limits.maxInFlightPerApp
    return min(own, max(left, own / 32, 1))
  }

  /// Whether an app at its cap would hold up the partitions that it shares.
  private func mustPark(_ app: AppIndex, at moment: Moment) -> Bool {
    health[Int(app.value)].isBroken || health[Int(app.value)].isSlow(now: moment.instant)
  }
}
