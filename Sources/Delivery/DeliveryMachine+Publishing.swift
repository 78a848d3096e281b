package import Wire

// Publication -> receipt -> settlement.
extension DeliveryMachine {
  /// Takes Kafka's word on publications. A push settles when all its records are acknowledged.
  package mutating func take(receipts: [Receipt], at moment: Moment) {
    for receipt in receipts {
      guard pushes.contains(receipt.slot), pushes[receipt.slot].awaits(receipt.topic) else { continue }
      switch receipt.outcome {
      case .acknowledged:
        tally.stored.add(receipt.topic)
        pushes[receipt.slot].awaited &= ~receipt.topic.bit
        if pushes[receipt.slot].awaited == 0 { settle(receipt.slot, at: moment) }
      case .refused(let text):
        shorten(receipt.slot, receipt.topic, text, at: moment)
      case .undelivered(let text):
        events.append(.publicationRepeated(receipt.topic, text: text))
        repeatLater(receipt.slot, receipt.topic, at: moment)
      }
    }
    takeWaitingForRoom(at: moment)
  }

  /// The record that broke the contract: a dead letter in any case, and a result if somebody can tell what it is about.
  mutating func reject(
    _ invalid: InvalidRequest, _ record: Record, _ place: Int, _ sequence: Int, at moment: Moment
  ) {
    let source = invalid.deferral?.source ?? Source(partition: record.source, offset: record.offset)
    let subject = ResultSubject(
      invalid, source: source, requestedAt: invalid.deferral?.requestedAt ?? record.timestamp ?? moment.time)
    let storage = pushes.hold(bytes: invalid.body.storage.count)
    let slot = pushes.insert(
      Push(
        subject: subject, place: place, epoch: partitions[place].epoch, sequence: sequence, storage: storage))
    pushes.release(storage)
    becomeBusy(slot)
    finish(slot, .invalid(invalid.rule, message: invalid.message), at: moment)
  }

  /// Writes one of a push's records and waits for its receipt.
  mutating func publish(_ slot: PushSlot, to topic: OutputTopic) {
    pushes[slot].awaited |= topic.bit
    encode(slot, topic)
  }

  private mutating func encode(_ slot: PushSlot, _ topic: OutputTopic) {
    let isShortened = pushes[slot].shortened & topic.bit != 0
    let completedAt = pushes[slot].completedAt ?? pushes[slot].subject.requestedAt
    switch (topic, pushes.ending(of: slot)) {
    case (.results, .some(let ending)):
      encoder.result(
        of: pushes[slot].subject, ending: ending, completedAt: completedAt, apps: apps, slot: slot,
        isShortened: isShortened, into: &outbox)
    case (.invalidTokens, .some(.rejected(let response))):
      encoder.invalidToken(
        of: pushes[slot].subject, response: response, isSuspect: pushes[slot].isSuspect, detectedAt: completedAt,
        apps: apps, slot: slot, isShortened: isShortened, into: &outbox)
    case (.deadLetters, .some(.invalid(let rule, let message))):
      encoder.deadLetter(
        of: pushes[slot].subject, rule: rule, message: message, failedAt: completedAt, slot: slot,
        isShortened: isShortened, into: &outbox)
    case (.deferred, _):
      encoder.deferred(
        of: pushes[slot].subject, notBefore: pushes[slot].parkedUntil ?? completedAt, slot: slot,
        isShortened: isShortened, into: &outbox)
    case (.results, .none), (.invalidTokens, _), (.deadLetters, _):
      preconditionFailure("a push publishes only what its end calls for")
    }
  }

  private mutating func settle(_ slot: PushSlot, at moment: Moment) {
    if let place = place(of: slot) {
      let (sequence, item) = (pushes[slot].sequence, Int(pushes[slot].subject.source.item))
      partitions[place].ledger.settle(sequence: sequence, item: item)
      partitions[place].busy -= 1
    }
    // One that had to be produced again may be stored twice, and its place is uncertain.
    if pushes[slot].line != 0, pushes[slot].parkedUntil != nil, pushes[slot].republished == 0 {
      let source = pushes[slot].subject.source
      keys.confirm(pushes[slot].line, offset: source.offset, item: source.item)
    }
    if pushes[slot].wasDue != nil || pushes[slot].parkedUntil != nil { settleCopies(slot) }
    if let completedAt = pushes[slot].completedAt {
      let age = moment.time - pushes[slot].subject.requestedAt
      events.append(.settled(age: age, sinceEnd: moment.time - completedAt))
    }
    pushes.remove(slot)
  }

  // MARK: Trouble

  /// Kafka will never take the record as it is, most likely since it is too large: once more without what was only
  /// copied. If that is refused too, nothing is left to do but to say so and go on; the stream must not stop.
  private mutating func shorten(_ slot: PushSlot, _ topic: OutputTopic, _ text: String, at moment: Moment) {
    let isFinal = pushes[slot].shortened & topic.bit != 0
    let subject = pushes[slot].subject
    events.append(
      .publicationRefused(topic, subject.source, trace: subject.trace, text: text, isFinal: isFinal))
    if isFinal {
      pushes[slot].awaited &= ~topic.bit
      if topic == .deferred { failUnparked(slot, at: moment) }
      if pushes[slot].awaited == 0 { settle(slot, at: moment) }
    } else {
      pushes[slot].shortened |= topic.bit
      encode(slot, topic)
    }
  }

  /// It can wait neither here nor in Kafka: it ends, so that somebody hears of it.
  private mutating func failUnparked(_ slot: PushSlot, at moment: Moment) {
    guard let app = pushes[slot].subject.app else { return }
    pushes[slot].parkedUntil = nil
    let source = pushes[slot].subject.source
    keys.unpark(pushes[slot].line, offset: source.offset, item: source.item, notBefore: nil)
    health[Int(app.value)].began(now: moment.instant)
    finish(slot, .failed(.notSent(.unreachable)), at: moment)
  }

  /// Kafka did not store it: again, after a wait that grows.
  private mutating func repeatLater(_ slot: PushSlot, _ topic: OutputTopic, at moment: Moment) {
    pushes[slot].unstored |= topic.bit
    guard pushes[slot].unstored == topic.bit else { return }
    pushes[slot].republished += 1
    let delay = retryPolicy.backoff(pushes[slot].republished, &random)
    waits.insert(slot, due: moment.instant + delay)
  }

  /// Produces again what was not stored.
  mutating func repeatPublications(_ slot: PushSlot) {
    let unstored = pushes[slot].unstored
    pushes[slot].unstored = 0
    for topic in OutputTopic.allCases where unstored & topic.bit != 0 { encode(slot, topic) }
  }
}

extension OutputTopic {
  var bit: UInt8 { 1 << rawValue }
}

extension Push {
  func awaits(_ topic: OutputTopic) -> Bool {
    guard case .publishing = state else { return false }
    return awaited & topic.bit != 0
  }
}
