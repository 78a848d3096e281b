import Delivery
import Wire

// Outbox -> broker -> receipts.
extension Replica {
  func publish() {
    guard !machine.outbox.isEmpty else { return }
    let outbox = machine.outbox
    machine.outbox.removeAll()
    for publication in outbox.items {
      guard let record = read(publication, outbox) else {
        world.fail("\(name) publishes a record that cannot be read")
        continue
      }
      track(publication.slot, record.item)
      // A record that was not stored is produced again as it was.
      let isFirst = (tracked[publication.slot]?.awaited ?? 0) & bit(publication.topic) == 0
      if isFirst, publication.topic == .deferred, let expiration = oracle[record.item].expiration, expiration > 0 {
        world.check(world.time.seconds < expiration, "item \(record.item) is parked, and has expired")
      }
      if isFirst, publication.topic == .deferred { checkTime(of: record.item, publication.slot) }
      tracked[publication.slot]?.awaited |= bit(publication.topic)
      if publication.topic == .results || publication.topic == .deadLetters { oracle[record.item].hasEnded = true }
      checkAttempts(record, publication.slot)
      backlog.append((record, publication.ticket))
    }
    produceBacklog()
  }

  /// What is parked anew before its time would go round through Kafka as fast as Kafka can, unless it has lain there for
  /// long enough.
  private func checkTime(of item: Int, _ slot: PushSlot) {
    // If it was not due, there is no need to wait for it where it lay; which of its copies it was cannot be told.
    forgetDue()
    guard let push = tracked[slot], !carriedTwice.contains(item), !readAgain.contains(item),
      world.time < push.carrier.notBefore
    else { return }
    let age = push.carrier.storedAt.map { world.time.milliseconds - $0.milliseconds } ?? 0
    world.check(
      .milliseconds(age) >= settings.limits.parkAnewAfter, "\(name) parks item \(item) again before its time")
  }

  private func bit(_ topic: OutputTopic) -> UInt8 { 1 << topic.rawValue }

  private func produceBacklog() {
    guard !backlog.isEmpty else { return }
    let capacity = world.strikes(.queueFull) ? settings.producerCapacity : Int.max
    while !backlog.isEmpty, outstanding < capacity {
      let (record, ticket) = backlog.removeFirst()
      outstanding += 1
      broker.produce(record) { outcome in self.reported(record, ticket, outcome) }
    }
  }

  private func reported(_ record: ProducedRecord, _ ticket: UInt64, _ outcome: Receipt.Outcome) {
    guard !isDead else { return }
    outstanding -= 1
    let receipt = Receipt(ticket: ticket, outcome: outcome)
    receipts.append(receipt)
    if case .acknowledged = outcome, record.topic == .deferred {
      oracle.parked(record.item, order: record.tracker.order, until: UnixTime(milliseconds: record.notBefore))
    }
    wake()
  }

  func takeReceipts(_ moment: Moment) {
    let taken = receipts
    receipts = []
    for receipt in taken {
      world.note("\(name) learns of \(receipt.topic) of item \(tracked[receipt.slot]?.item ?? -1): \(receipt.outcome)")
      learn(receipt)
    }
    if !taken.isEmpty { machine.take(receipts: taken, at: moment) }
    produceBacklog()
  }

  /// What the machine is about to learn is what it may act upon.
  private func learn(_ receipt: Receipt) {
    guard var push = tracked[receipt.slot] else { return }
    let bit = bit(receipt.topic)
    switch receipt.outcome {
    case .acknowledged: push.awaited &= ~bit
    case .undelivered: break
    case .refused:
      if push.refused & bit != 0 {
        push.awaited &= ~bit
        // What cannot be parked ends with a result.
        if receipt.topic == .deferred { push.awaited |= self.bit(.results) } else { oracle.gaveUp(push.item) }
      }
      push.refused |= bit
    }
    tracked[receipt.slot] = push
    guard push.awaited == 0 else { return }
    if receipt.topic != .deferred { oracle.settled(push.item) }
    tracked[receipt.slot] = nil
    let carrier = push.carrier
    if owned[carrier.partition]?.epoch == carrier.epoch {
      owned[carrier.partition]?.settled.insert(Part(offset: carrier.offset, item: push.item))
    }
  }

  // MARK: Reading what is published

  private func read(_ publication: Publication, _ outbox: Outbox) -> ProducedRecord? {
    switch publication.topic {
    case .results, .invalidTokens:
      guard let value = outbox.value(of: publication)?.array, let read = PublishedText(value.span),
        let item = oracle.find(
          read.source, requestedAt: read.requestedAt, value: nil, expected: tracked[publication.slot]?.item)
      else { return nil }
      if publication.topic == .results { check(read, item) }
      return record(publication, outbox, item, attempts: Int(read.attempts ?? -1))
    case .deadLetters, .deferred:
      guard let source = PublishedText.source(publication.extraHeaders),
        let item = oracle.find(
          source, requestedAt: PublishedText.number(OwnHeader.requestedAt, publication.extraHeaders),
          value: outbox.value(of: publication)?.array, expected: tracked[publication.slot]?.item)
      else { return nil }
      let attempts = PublishedText.number(OwnHeader.attempts, publication.extraHeaders) ?? -1
      return record(publication, outbox, item, attempts: Int(attempts))
    }
  }

  private func record(
    _ publication: Publication, _ outbox: Outbox, _ item: Int, attempts: Int
  ) -> ProducedRecord {
    var headers: [(name: String, value: [UInt8]?)] = []
    if publication.topic == .deferred {
      headers = publication.headers.map { header in
        (
          String(decoding: publication.requestStorage[header.name.indices], as: UTF8.self),
          header.value.map { Array(publication.requestStorage[$0.indices]) }
        )
      }
      headers += publication.extraHeaders.map { ($0.name, Array($0.value.utf8)) }
    }
    let body = RecordBody(
      key: outbox.key(of: publication)?.array, value: outbox.value(of: publication)?.array, headers: headers)
    return ProducedRecord(
      item: item, topic: publication.topic, isFull: isFull(publication), body: body, attempts: attempts,
      notBefore: PublishedText.number(OwnHeader.notBefore, publication.extraHeaders) ?? 0)
  }

  /// Whether it still has headers that it could do without.
  private func isFull(_ publication: Publication) -> Bool {
    publication.headers.contains { header in
      publication.topic != .deferred
        || publication.requestStorage[header.name.indices].elementsEqual("traceparent".utf8)
    }
  }

  private func check(_ result: PublishedText, _ item: Int) {
    let known = oracle[item]
    switch result.status {
    case "delivered": world.check(known.accepted > 0, "item \(item) is called delivered, and Apple never took it")
    case "expired":
      world.check(
        known.expiration.map { $0 > 0 && world.time.seconds >= $0 } ?? false, "item \(item) is called expired too soon")
    case "invalid": world.check(!known.isWellFormed || known.isOrphan, "item \(item) is called invalid")
    case "rejected", "failed": break
    default: world.fail("item \(item) has the status \(result.status)")
    }
  }

  /// Each attempt that may have reached Apple is counted, over parks too.
  private func checkAttempts(_ record: ProducedRecord, _ slot: PushSlot) {
    let item = oracle[record.item]
    guard record.attempts >= 0, record.topic != .deadLetters, item.isUnrepeated,
      let push = tracked[slot]
    else { return }
    world.check(
      record.attempts == push.attempts,
      "item \(record.item) was tried \(push.attempts) times and its record says \(record.attempts)")
  }
}

/// What the checks read from a result or an event.
struct PublishedText {
  var status = ""
  var attempts: Int64?
  var requestedAt: Int64?
  var source = Source(partition: PartitionID(topic: 0, partition: 0), offset: 0)

  init?(_ bytes: Span<UInt8>) {
    var scanner = JSONScanner(bytes)
    do {
      try scanner.beginObject()
      while let key = try scanner.nextKey() {
        if scanner.matches(key, "source") {
          try scanner.beginObject()
          while let part = try scanner.nextKey() {
            let value = try scanner.value()
            if case .string(let text) = value {
              source.partition.topic = scanner.matches(text, Broker.topics[1]) ? Broker.deferred : Broker.requests
            }
            guard case .number(let range, _) = value, let number = JSONText.int64(of: range, in: bytes) else {
              continue
            }
            if scanner.matches(part, "partition") { source.partition.partition = Int32(number) }
            if scanner.matches(part, "offset") { source.offset = number }
            if scanner.matches(part, "index") { source.item = Int32(number) }
          }
        } else {
          let value = try scanner.value()
          if case .string(let text) = value, scanner.matches(key, "status") {
            status = text.range.indices.reduce(into: "") { $0.unicodeScalars.append(Unicode.Scalar(bytes[$1])) }
          }
          if case .number(let range, _) = value, scanner.matches(key, "attempts") {
            attempts = JSONText.int64(of: range, in: bytes)
          }
          if case .number(let range, _) = value, scanner.matches(key, "requested_at") {
            requestedAt = JSONText.int64(of: range, in: bytes)
          }
        }
      }
    } catch {
      return nil
    }
  }

  /// Reads the headers that name where a dead letter or a parked request was read first.
  static func source(_ headers: [Publication.ExtraHeader]) -> Source? {
    guard let partition = number(OwnHeader.sourcePartition, headers),
      let offset = number(OwnHeader.sourceOffset, headers),
      let topic = headers.first(where: { $0.name == OwnHeader.sourceTopic })?.value
    else { return nil }
    let id = PartitionID(
      topic: topic == Broker.topics[1] ? Broker.deferred : Broker.requests, partition: Int32(partition))
    return Source(partition: id, offset: offset, item: Int32(number(OwnHeader.item, headers) ?? 0))
  }

  static func number(_ name: String, _ headers: [Publication.ExtraHeader]) -> Int64? {
    headers.first { $0.name == name }.flatMap { Int64($0.value) }
  }
}
