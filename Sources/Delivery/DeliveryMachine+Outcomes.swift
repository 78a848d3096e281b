import APNs
package import Wire

// Outcome -> end, wait or park.
extension DeliveryMachine {
  /// Takes what came back from the lanes.
  package mutating func take(outcomes: [LaneOutcome], at moment: Moment) {
    for outcome in outcomes {
      guard pushes.contains(outcome.slot), case .submitted(let lane) = pushes[outcome.slot].state,
        let app = pushes[outcome.slot].subject.app
      else { continue }
      router.release(app, lane)
      judge(outcome, app, at: moment)
    }
    takeTurns(at: moment)
    takeWaitingForRoom(at: moment)
  }

  private mutating func judge(_ outcome: LaneOutcome, _ app: AppIndex, at moment: Moment) {
    let slot = outcome.slot
    count(outcome, app, at: moment)
    note(outcome.result, refreshes: pushes[slot].refreshes, of: app, at: moment)
    if case .answered(let response) = outcome.result, pushes[slot].subject.attempts == 1,
      !pushes[slot].subject.notification.isBroadcast, let change = environments[Int(app.value)].note(response)
    {
      events.append(.environment(app, change))
    }
    let facts = RetryPolicy.Facts(
      attempts: pushes[slot].subject.attempts, unsent: pushes[slot].unsent,
      expiration: pushes[slot].subject.notification.expiration, refreshes: pushes[slot].refreshes,
      takenUpAt: pushes[slot].subject.takenUpAt ?? moment.time)
    let decision = retryPolicy.decide(outcome.result, facts, now: moment.time, using: &random)
    noteToken(outcome.result, decision, slot, app, at: moment)
    if case .end(let ending) = decision {
      finish(slot, ending, at: moment)
    } else if !mayWait(slot) {
      abandon(slot, at: moment)
    } else if apps.isRemoved(app) {
      endRemoved(slot, at: moment)
    } else if case .park(let delay) = decision {
      park(slot, after: delay, at: moment)
    } else if case .again(let delay) = decision {
      if delay > .seconds(1), pushes[slot].subject.notification.expiration != 0, isCrowded(slot) {
        park(slot, after: max(delay, .seconds(5)), at: moment)
        return
      }
      becomeIdle(slot)
      pushes[slot].state = .waiting
      if case .answered(let response) = outcome.result, response.verdict == .refreshToken {
        pushes[slot].refreshes += 1
      }
      waits.insert(slot, due: moment.instant + delay)
      events.append(.retried(app, RetryPolicy.Cause(outcome.result)))
    }
  }

  /// What is left of a revoked partition, or of a service that stops, is not sent again: whoever owns the partition
  /// next takes it up from the committed offset.
  @inline(__always)
  func mayWait(_ slot: PushSlot) -> Bool {
    guard !isDraining, let place = place(of: slot) else { return false }
    return partitions[place].phase == .consuming
  }

  private mutating func count(_ outcome: LaneOutcome, _ app: AppIndex, at moment: Moment) {
    guard let sentAt = outcome.sentAt else {
      pushes[outcome.slot].unsent += 1
      return
    }
    if case .notSent = outcome.result {
      pushes[outcome.slot].unsent += 1
      return
    }
    pushes[outcome.slot].subject.attempts += 1
    var attempt = DeliveryEvent.Attempt(app: app)
    if pushes[outcome.slot].subject.attempts == 1 {
      let age = moment.time - pushes[outcome.slot].subject.requestedAt
      attempt.recordToSend = max(.zero, age - (moment.instant - sentAt))
    }
    if case .answered = outcome.result { attempt.sendToAnswer = outcome.completedAt - sentAt }
    events.append(.attempted(attempt))
  }

  /// What the result says about the app as a whole.
  /// - Parameter refreshes: how often the notification was sent with a fresh provider token: if they all are refused,
  ///   the credentials are (or this machine's clock, which is no better).
  private mutating func note(_ result: SendResult, refreshes: Int, of app: AppIndex, at moment: Moment) {
    let index = Int(app.value)
    let change: AppHealth.Change?
    switch result {
    case .answered(let response) where isRefusal(response, refreshes: refreshes):
      change = health[index].failed(now: moment.instant, using: &random)
    case .answered(let response) where response.verdict == .refreshToken:
      health[index].probeAbandoned()
      change = nil
    case .answered:
      change = health[index].succeeded()
    case .notSent(.unreachable), .notSent(.tls), .notSent(.credentials):
      change = health[index].failed(now: moment.instant, using: &random)
    case .notSent, .lost, .timedOut:
      health[index].probeAbandoned()
      change = nil
    }
    if let change { events.append(.breaker(app, change, result)) }
  }

  private func isRefusal(_ response: Response, refreshes: Int) -> Bool {
    response.verdict == .credentialFault
      || (response.verdict == .refreshToken && refreshes >= RetryPolicy.mostRefreshes)
  }

  /// What was said in another environment, or for another bundle id, tells nothing any more.
  mutating func forgetEnvironment(_ app: AppIndex) {
    let wasSuspect = environments[Int(app.value)].isSuspect
    environments[Int(app.value)] = EnvironmentGuard()
    if wasSuspect { events.append(.environment(app, .cleared)) }
  }

  // MARK: Ends

  /// The push leaves the lane's or the waiting state without an end.
  mutating func becomeIdle(_ slot: PushSlot) {
    if let place = place(of: slot) { partitions[place].busy -= 1 }
  }

  /// Lets a push go without an end: it is not settled, and is taken up again from the committed offset.
  mutating func abandon(_ slot: PushSlot, at moment: Moment) {
    tally.abandoned += 1
    if case .waiting = pushes[slot].state {} else { becomeIdle(slot) }
    endEarly(slot)
    leaveLine(slot)
    awaitReturn(slot, at: moment)
    if pushes[slot].wasDue != nil { abandonCopies(slot) }
    if let app = pushes[slot].subject.app { health[Int(app.value)].left() }
    pushes.remove(slot)
  }

  /// The push has ended; its records go out, and it settles when Kafka has them all.
  mutating func finish(_ slot: PushSlot, _ ending: Ending, at moment: Moment) {
    leaveLine(slot)
    if let app = pushes[slot].subject.app {
      // Only what came back from a lane shows that the app moves.
      if case .submitted = pushes[slot].state {
        health[Int(app.value)].ended(now: moment.instant)
        if let since = pushes[slot].subject.takenUpAt { stay.note(moment.time.milliseconds - since.milliseconds) }
      } else {
        health[Int(app.value)].left()
      }
    }
    pushes[slot].state = .publishing
    pushes.end(slot, as: ending, at: moment.time)
    var isTokenDead = false
    var rule: InvalidRule?
    switch ending {
    // No answer to a broadcast is about a token.
    case .rejected(let response):
      isTokenDead = response.namesDeadToken && !pushes[slot].subject.notification.isBroadcast
    case .invalid(let broken, _): rule = broken
    case .delivered, .expired, .failed: break
    }
    if pushes[slot].subject.app != nil || pushes[slot].subject.id != nil { publish(slot, to: .results) }
    if isTokenDead {
      pushes[slot].isSuspect = pushes[slot].subject.app.map { isSuspect($0) } ?? false
      publish(slot, to: .invalidTokens)
    }
    if pushes[slot].subject.app == nil { publish(slot, to: .deadLetters) }
    events.append(
      .finished(
        DeliveryEvent.Finished(
          app: pushes[slot].subject.app, pushType: pushes[slot].subject.notification.pushType, status: ending.status,
          reason: ending.response?.reason, cause: RetryPolicy.Cause(ending), rule: rule, isTokenDead: isTokenDead,
          attempts: pushes[slot].subject.attempts, requestedAt: pushes[slot].subject.requestedAt,
          completedAt: moment.time, source: pushes[slot].subject.source,
          apnsID: pushes[slot].subject.notification.apnsID, trace: namesTraces ? pushes[slot].subject.trace : nil)))
  }

  /// Puts a push aside on the deferred topic.
  ///
  /// - Parameter leader: when that of its key which is parked before it is due. It does not prolong the time for which
  ///   that is waited for.
  mutating func park(_ slot: PushSlot, after delay: Duration, behind leader: UnixTime? = nil, at moment: Moment) {
    guard let app = pushes[slot].subject.app else { return }
    health[Int(app.value)].left()
    leaveLine(slot)
    pushes[slot].state = .publishing
    // Later than it was due before, in any case: so the time tells which of two copies is the later one.
    let until = UnixTime(
      milliseconds: max(
        moment.time.milliseconds + delay.milliseconds, (pushes[slot].wasDue?.milliseconds ?? 0) + 1))
    pushes[slot].parkedUntil = until
    if pushes[slot].line != 0 {
      let source = pushes[slot].subject.source
      keys.park(
        pushes[slot].line, offset: source.offset, item: source.item, notBefore: until, until: leader ?? until,
        now: moment.time)
    }
    publish(slot, to: .deferred)
    events.append(.parked(app))
  }
}
