import Wire

/// Copies of one request on the deferred topic.
///
/// A parked request that is read again, since its commit was late or lost, is parked again, and then there are two. Each
/// would live on by itself and be doubled in its turn, with every rebalance that comes at a bad time. So a copy is let go
/// where the request is in good hands otherwise: another one of it is in flight from the same partition, or has been
/// stored since, or has ended with a result. Which of two is the later one, their times tell: what is parked once more is
/// due later than before. Only earlier ones are let go, so that the latest is always there.
struct ParkedCopies: Sendable {
  /// The request. A topic that was made anew has other requests at the same offsets.
  struct Key: Hashable, Sendable {
    var source: Source
    var requestedAt: UnixTime
  }

  /// A record that is settled together with the push that stands for it.
  struct Twin: Sendable {
    var sequence: Int
    var item: Int
  }

  /// Those that came back and are in flight.
  private var inFlight: [Key: PushSlot] = [:]
  private var twins: [PushSlot: [Twin]] = [:]
  /// Until when the copy waits that was stored last; the distant future: there is a result. The older ones are forgotten
  /// first, many at once.
  private var stored: [Key: UnixTime] = [:]
  private var older: [Key: UnixTime] = [:]
  /// How many of these are remembered, twice.
  private let limit: Int

  init(limit: Int) { self.limit = limit }

  func slot(of key: Key) -> PushSlot? { inFlight[key] }

  /// Whether one that waits longer is stored, or a result.
  func isStored(_ key: Key, after notBefore: UnixTime) -> Bool {
    (stored[key] ?? older[key]).map { $0 > notBefore } ?? false
  }

  mutating func began(_ key: Key, _ slot: PushSlot) { inFlight[key] = slot }

  mutating func join(_ slot: PushSlot, _ twin: Twin) { twins[slot, default: []].append(twin) }

  /// It is in flight no longer.
  ///
  /// - Returns: what was to be settled with it.
  mutating func left(_ key: Key, _ slot: PushSlot) -> [Twin] {
    if inFlight[key] == slot { inFlight[key] = nil }
    return twins.isEmpty ? [] : twins.removeValue(forKey: slot) ?? []
  }

  mutating func forgetStored() {
    stored = [:]
    older = [:]
  }

  /// Kafka has it: on the deferred topic until then, or its result, if that is the distant future.
  mutating func store(_ key: Key, until: UnixTime) {
    if stored.count >= limit {
      older = stored
      stored = [:]
    }
    stored[key] = until
  }
}

// A copy -> let go.
extension DeliveryMachine {
  static func copyKey(_ source: Source, _ requestedAt: UnixTime) -> ParkedCopies.Key? {
    // The name of a topic that is not read is not part of a source.
    guard source.partition.topic != Deferral.noTopic else { return nil }
    return ParkedCopies.Key(source: source, requestedAt: requestedAt)
  }

  /// Lets a record from the deferred topic go if its request is in good hands.
  ///
  /// - Returns: whether it was.
  mutating func takeAsCopy(_ record: Record, of deferral: Deferral, _ place: Int) -> Bool {
    guard let key = Self.copyKey(deferral.source, deferral.requestedAt),
      partitions[place].ledger.isAhead(record.offset)
    else { return false }
    let other = slotInFlight(key, due: deferral.notBefore, place)
    guard other != nil || copies.isStored(key, after: deferral.notBefore) else { return false }
    let item = Int(deferral.source.item)
    if case .admitted(let sequence) = admit(record, place, items: 1) {
      tally.known += 1
      if let other {
        copies.join(other, ParkedCopies.Twin(sequence: sequence, item: item))
      } else {
        partitions[place].ledger.settle(sequence: sequence, item: item)
      }
    }
    cameBack(record, as: deferral, items: item..<item + 1)
    return true
  }

  /// The push that stands for the request, came from the same partition and was due no earlier.
  private func slotInFlight(_ key: ParkedCopies.Key, due notBefore: UnixTime, _ place: Int) -> PushSlot? {
    guard let slot = copies.slot(of: key), pushes.contains(slot), self.place(of: slot) == place,
      notBefore <= pushes[slot].wasDue ?? notBefore
    else { return nil }
    return slot
  }

  /// A push is settled: so are its copies, and those that come are known.
  mutating func settleCopies(_ slot: PushSlot) {
    guard let key = Self.copyKey(pushes[slot].subject.source, pushes[slot].subject.requestedAt) else { return }
    let place = place(of: slot)
    for twin in copies.left(key, slot) {
      if let place { partitions[place].ledger.settle(sequence: twin.sequence, item: twin.item) }
    }
    copies.store(key, until: pushes[slot].parkedUntil ?? UnixTime(milliseconds: .max))
  }

  /// A push is let go, unsettled: so are its copies, which are of the same partition and will be read again with it.
  mutating func abandonCopies(_ slot: PushSlot) {
    guard let key = Self.copyKey(pushes[slot].subject.source, pushes[slot].subject.requestedAt) else { return }
    _ = copies.left(key, slot)
  }
}
