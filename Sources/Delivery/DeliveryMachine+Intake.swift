import APNs
package import Wire

// Record -> push -> submission.
extension DeliveryMachine {
  /// Takes polled records up, in the order in which they were polled.
  package mutating func take(_ records: [Record], at moment: Moment) {
    tally.consumed += records.count
    // What was held has been let go: whatever lies behind it must not be taken up.
    if isDraining {
      tally.stray += records.count
      return
    }
    if startupEnds == nil, !records.isEmpty { startupEnds = moment.instant + limits.startup }
    var place = -1
    for record in records {
      if place < 0 || partitions[place].id != record.source {
        guard let found = partitions.place(of: record.source) else {
          tally.stray += 1
          place = -1
          continue
        }
        place = found
        partitions[place].goesOn()
      }
      switch partitions[place].phase {
      case .draining: tally.stray += 1
      case .consuming:
        // Once one is held, all that follow of its partition are, so that they stay in order.
        if partitions[place].isHolding || !take(record, place, at: moment) { partitions[place].hold(record) }
      }
    }
  }

  /// Takes one record up.
  ///
  /// - Returns: false if it must be held until it is due or there is room.
  mutating func take(_ record: Record, _ place: Int, at moment: Moment) -> Bool {
    guard hasRoomInAll else {
      // As many were polled as there was room for, but some had many items, or many bytes.
      waitForRoom(place, nil, at: moment)
      return false
    }
    switch decoder.decode(record, apps: apps, now: moment) {
    case .tombstone:
      if case .admitted = admit(record, place, items: 0) { tally.tombstones += 1 }
    case .invalid(let invalid):
      let item = Int(invalid.deferral?.source.item ?? 0)
      cameBack(record, as: invalid.deferral, items: item..<item + 1)
      guard case .admitted(let sequence) = admit(record, place, items: 1) else { return true }
      reject(invalid, record, place, sequence, at: moment)
    case .request(let request):
      if let deferral = request.deferral, takeAsCopy(record, of: deferral, place) { return true }
      var way = Way.now
      if let deferral = request.deferral, deferral.notBefore > moment.time {
        if mayWaitHere(request.app, place, at: moment) {
          way = .early
        } else if mayParkAnew(record, request, place, at: moment) {
          way = .anew
        } else {
          // Looked at again before it is due: there may be room for it then, and those behind it go on.
          let longest: Duration = partitions[place].anew.count == Self.mostAnewASecond ? .seconds(1) : .seconds(5)
          hold(place, until: moment.instant + min(deferral.notBefore - moment.time, longest))
          return false
        }
      } else if inFlight(of: request.app) >= cap(of: request.app, at: moment) {
        guard mustPark(request.app, isBack: request.deferral != nil, at: moment) else {
          waitForRoom(place, request.app, isBack: request.deferral != nil, at: moment)
          return false
        }
        way = .aside
      }
      // A parked item of a batch comes back by itself.
      let items =
        request.deferral.map { Int($0.source.item)..<Int($0.source.item) + 1 } ?? 0..<max(request.tokens.count, 1)
      guard case .admitted(let sequence) = admit(record, place, items: items.count) else {
        cameBack(record, as: request.deferral, items: items)
        return true
      }
      tally.requests += 1
      tally.unknownFields += request.unknownFields
      let settled = items.count > 1 ? partitions[place].ledger.settledItems(of: sequence) : nil
      let storage = pushes.hold(bytes: record.body.storage.count)
      for item in items where settled?.contains(item) != true {
        start(request, item, record, place, sequence, storage, way, at: moment)
      }
      pushes.release(storage)
    }
    return true
  }

  mutating func admit(_ record: Record, _ place: Int, items: Int) -> PartitionLedger.Admission {
    let mark = Self.mark(of: record)
    let admission = partitions[place].ledger.admit(offset: record.offset, items: items, mark: mark)
    switch admission {
    case .admitted: break
    case .alreadySettled: tally.alreadySettled += 1
    case .known: tally.known += 1
    case .rewound:
      // The topic was made anew or cut short: its offsets begin again, and so does the book that is kept on them.
      events.append(.rewound(partitions[place].id, offset: record.offset))
      // What was stored there may be gone.
      copies.forgetStored()
      partitions[place].ledger.rewind(to: record.offset)
      return partitions[place].ledger.admit(offset: record.offset, items: items, mark: mark)
    }
    return admission
  }

  /// Two records that have one offset, one after the other, will hardly have been written in the same millisecond and
  /// be of the same size.
  private static func mark(of record: Record) -> UInt32 {
    let time = record.timestamp?.milliseconds ?? 0
    return UInt32(truncatingIfNeeded: time &* 0x9e37_79b1 &+ Int64(record.body.storage.count))
  }

  /// Where a request that is taken up goes.
  private enum Way {
    case now
    /// It waits in memory until it is due.
    case early
    /// Its app is at its cap, and is not waited for.
    case aside
    /// It goes back to the deferred topic until it is due.
    case anew
  }

  /// Makes a push of one item and sends it on its way.
  private mutating func start(
    _ request: Request, _ item: Int, _ record: Record, _ place: Int, _ sequence: Int, _ storage: PushSlab.Storage,
    _ way: Way, at moment: Moment
  ) {
    let source = request.deferral?.source ?? Source(partition: record.source, offset: record.offset, item: Int32(item))
    var subject = ResultSubject(
      request, source: source, attempts: request.deferral?.attempts ?? 0,
      requestedAt: request.deferral?.requestedAt ?? record.timestamp ?? moment.time)
    subject.takenUpAt = request.deferral?.takenUpAt ?? moment.time
    let slot = pushes.insert(
      Push(
        subject: subject, place: place, epoch: partitions[place].epoch, sequence: sequence, storage: storage))
    health[Int(request.app.value)].began(now: moment.instant)
    if let deferral = request.deferral {
      events.append(.unparked(request.app))
      pushes[slot].wasDue = deferral.notBefore
      if let key = Self.copyKey(deferral.source, deferral.requestedAt) { copies.began(key, slot) }
    }
    if limits.isOrderedByKey { queueUp(slot, request) }
    if let fault = request.invalidItems.first(where: { $0.item == Int32(item) }) {
      pushes[slot].subject.notification.token = fault.token ?? .empty
      becomeBusy(slot)
      finish(slot, .invalid(fault.violation.rule, message: fault.violation.message), at: moment)
    } else if way == .early, let deferral = request.deferral {
      pushes[slot].notBefore = deferral.notBefore
      pushes[slot].isEarly = true
      partitions[place].early += 1
      sendInTurn(slot, at: moment)
    } else if way == .anew, let deferral = request.deferral {
      becomeBusy(slot)
      park(slot, after: deferral.notBefore - moment.time, at: moment)
    } else if way == .aside || cannotWait(request.app, place, at: moment) {
      becomeBusy(slot)
      parkOrEnd(slot, at: moment)
    } else {
      sendInTurn(slot, isDue: request.deferral != nil, at: moment)
    }
  }

  /// A request that cannot wait here waits on the deferred topic, and comes back as often as it must; but not for ever.
  ///
  /// - Parameter until: when it is due, or that of its key which is parked before it. One that is overdue tells nothing.
  mutating func parkOrEnd(_ slot: PushSlot, until: UnixTime? = nil, at moment: Moment) {
    if RetryPolicy.isExpired(pushes[slot].subject.notification.expiration, now: moment.time) {
      finish(slot, .expired, at: moment)
    } else if retryPolicy.isGivenUp(takenUpAt: pushes[slot].subject.takenUpAt ?? moment.time, now: moment.time) {
      finish(slot, .failed(.notSent(.unreachable)), at: moment)
    } else {
      let delay = until.flatMap { $0 > moment.time ? $0 - moment.time : nil }
      park(slot, after: max(delay ?? roomIn(slot, at: moment), .seconds(1)), behind: until, at: moment)
    }
  }

  /// When there may be room for a push whose app is at its cap.
  private mutating func roomIn(_ slot: PushSlot, at moment: Moment) -> Duration {
    // Not sooner: a request that is read again before its parking was acknowledged is in flight twice.
    let spread = Duration.seconds(5) + random.uniform(below: .seconds(5))
    guard let expiration = pushes[slot].subject.notification.expiration, expiration > 0 else { return spread }
    // It ends when its time has come, not long after.
    return min(spread, .milliseconds(max(0, expiration * 1000 - moment.time.milliseconds)))
  }

  /// Sends a push that is not with a lane: now, or when its app's breaker and APNs' throttle of its token allow it.
  ///
  /// - Parameter isDue: it waited for its time, which has come.
  mutating func dispatch(_ slot: PushSlot, isDue: Bool = false, at moment: Moment) {
    guard let app = pushes[slot].subject.app else { return }
    endEarly(slot)
    if RetryPolicy.isExpired(pushes[slot].subject.notification.expiration, now: moment.time) {
      becomeBusy(slot)
      finish(slot, .expired, at: moment)
      return
    }
    if !tokenPauses.isEmpty, awaitToken(slot, isDue: isDue, at: moment) { return }
    switch health[Int(app.value)].admit(now: moment.instant) {
    case .refused(let until):
      let takenUpAt = pushes[slot].subject.takenUpAt ?? moment.time
      if isCrowded(slot) || retryPolicy.isGivenUp(takenUpAt: takenUpAt, now: moment.time) {
        becomeBusy(slot)
        parkOrEnd(slot, at: moment)
        return
      }
      pushes[slot].state = .waiting
      waits.insert(slot, due: until + random.uniform(below: .milliseconds(500)))
    case .granted:
      let lane = router.route(
        app, appInFlight: health[Int(app.value)].inFlight, maxLanes: apps.maxLanes(of: app))
      becomeBusy(slot)
      pushes[slot].state = .submitted(lane)
      submissions[Int(lane.value)].append(
        Submission(slot: slot, app: app, notification: pushes[slot].subject.notification))
    }
  }

  mutating func becomeBusy(_ slot: PushSlot) {
    if let place = place(of: slot) { partitions[place].busy += 1 }
    endEarly(slot)
  }

  /// It waits no longer for its time from the deferred topic.
  mutating func endEarly(_ slot: PushSlot) {
    guard pushes[slot].isEarly else { return }
    pushes[slot].isEarly = false
    if let place = place(of: slot) { partitions[place].early -= 1 }
  }
}
