import APNs
import Wire

// Requests of one key, one after the other.
extension DeliveryMachine {
  /// Finds the line of a push, if it has a key. One that was parked is back.
  mutating func queueUp(_ slot: PushSlot, _ request: Request) {
    guard let key = request.key else { return }
    let source = pushes[slot].subject.source
    let line = KeyOrder.line(source.partition, key: request.notification.storage.span.extracting(key.indices))
    pushes[slot].line = line
    keys.unpark(line, offset: source.offset, item: source.item, notBefore: request.deferral?.notBefore)
  }

  /// A record that has come back and is no matter of ours: others have done it, or it broke the contract meanwhile.
  mutating func cameBack(_ record: Record, as deferral: Deferral?, items: Range<Int>) {
    guard limits.isOrderedByKey, keys.rememberedCount > 0, let key = record.body.key else { return }
    let line = KeyOrder.line(
      deferral?.source.partition ?? record.source, key: record.body.storage.span.extracting(key.indices))
    for item in items {
      keys.unpark(
        line, offset: deferral?.source.offset ?? record.offset, item: Int32(item), notBefore: deferral?.notBefore,
        onlyIfSame: true)
    }
  }

  /// Sends a push if it is its turn; until then it waits in line, or on the deferred topic behind what is there.
  ///
  /// - Parameters:
  ///   - isFirst: it was taken from the head of its line.
  ///   - isDue: it has waited for its time on the deferred topic.
  mutating func sendInTurn(_ slot: PushSlot, isFirst: Bool = false, isDue: Bool = false, at moment: Moment) {
    let line = pushes[slot].line
    if line != 0 {
      let request = KeyOrder.Request(
        offset: pushes[slot].subject.source.offset, epoch: pushes[slot].epoch, sequence: pushes[slot].sequence)
      if let until = keys.parkedBefore(request.offset, line, now: moment.time) {
        if countAsParked(slot, at: moment) { return }
        becomeBusy(slot)
        parkOrEnd(slot, until: until, at: moment)
        return
      }
      guard keys.enter(line, slot, request, isFirst: isFirst) else {
        pushes[slot].turn = .waiting
        pushes[slot].state = .waiting
        return
      }
      pushes[slot].turn = .current
    }
    if !awaitTime(slot, at: moment) { dispatch(slot, isDue: isDue, at: moment) }
  }

  /// Lets a push that came back before its time wait for it in memory.
  ///
  /// - Returns: whether it waits.
  private mutating func awaitTime(_ slot: PushSlot, at moment: Moment) -> Bool {
    guard let notBefore = pushes[slot].notBefore, notBefore > moment.time else { return false }
    pushes[slot].state = .waiting
    waits.insert(slot, due: moment.instant + (notBefore - moment.time))
    return true
  }

  /// One that came back before its time, and before one that comes before it, waits in memory and counts as parked for
  /// those behind it: parked again at once, it would be back at once, and so on until the other one is.
  ///
  /// - Returns: whether it does; not if its time has come.
  private mutating func countAsParked(_ slot: PushSlot, at moment: Moment) -> Bool {
    guard let notBefore = pushes[slot].notBefore, awaitTime(slot, at: moment) else { return false }
    let source = pushes[slot].subject.source
    keys.park(
      pushes[slot].line, offset: source.offset, item: source.item, notBefore: notBefore, until: notBefore,
      now: moment.time)
    pushes[slot].turn = .parked
    return true
  }

  /// The push has ended, or was put aside or let go.
  mutating func leaveLine(_ slot: PushSlot) {
    switch pushes[slot].turn {
    case .none, .waiting: break
    case .current: keys.leave(pushes[slot].line)
    case .parked:
      // That it counts as parked no longer tells nothing of others: it has been here all the time.
      let source = pushes[slot].subject.source
      keys.unpark(pushes[slot].line, offset: source.offset, item: source.item, notBefore: nil)
    }
    pushes[slot].turn = .none
  }

  /// The time has come for which a push waited in memory.
  mutating func waitIsOver(_ slot: PushSlot, at moment: Moment) {
    switch pushes[slot].turn {
    case .none, .current: dispatch(slot, isDue: true, at: moment)
    // Those before it have not ended.
    case .waiting: break
    case .parked:
      leaveLine(slot)
      sendInTurn(slot, isDue: true, at: moment)
    }
  }

  /// A push was let go and will be read again, by this process or another one: until then, what comes behind it waits.
  mutating func awaitReturn(_ slot: PushSlot, at moment: Moment) {
    guard pushes[slot].line != 0, !isDraining else { return }
    let source = pushes[slot].subject.source
    keys.park(
      pushes[slot].line, offset: source.offset, item: source.item, notBefore: nil,
      until: moment.time, now: moment.time)
  }

  /// Sends what had to wait for others of its key that have ended since.
  mutating func takeTurns(at moment: Moment) {
    guard limits.isOrderedByKey else { return }
    while let line = keys.popReady() {
      while let slot = keys.next(line) {
        guard pushes.contains(slot), pushes[slot].turn == .waiting, pushes[slot].line == line else { continue }
        pushes[slot].turn = .none
        if !mayWait(slot) {
          abandon(slot, at: moment)
        } else if let app = pushes[slot].subject.app, apps.isRemoved(app) {
          becomeBusy(slot)
          endRemoved(slot, at: moment)
        } else {
          sendInTurn(slot, isFirst: true, at: moment)
        }
      }
    }
  }
}
