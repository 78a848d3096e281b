import Wire

// Kafka loses records, brokers go away, topics change.
extension Broker {
  /// An election that forgot the newest records of a partition: their offsets are given to others.
  func truncate() {
    let id = world.pick(partitions)
    let records = log(id).records
    guard !records.isEmpty else { return }
    if world.random.chance(0.5) { expire(id) }
    // Sometimes nothing but the gap at its end.
    let lost = world.random.uniform(below: min(records.count, 30) + 1)
    let end = (records.last?.record.offset ?? -1) + 1
    guard lost > 0 || end < log(id).nextOffset else { return }
    cut(id, at: lost > 0 ? records[records.count - lost].record.offset : end)
  }

  /// A topic is deleted and made anew: its offsets begin at zero, and the group has none of it.
  func remake() {
    let topic = world.pick([Self.requests, Self.deferred])
    for id in partitions where id.topic == topic {
      guard cut(id, at: 0) else { return }
      forgetCommitted(id)
    }
  }

  @discardableResult
  private func cut(_ id: PartitionID, at offset: Int64) -> Bool {
    let records = log(id).records
    // Two records of one millisecond, of one size and with one offset nobody could tell apart.
    guard records.last?.record.timestamp != world.time else { return false }
    world.note("\(id) is cut short at \(offset)")
    for record in records[log(id).place(of: offset)...] {
      for item in record.items { oracle.lost(item, in: record) }
    }
    let pause = world.between(.zero, .seconds(2))
    shorten(id, to: offset, leaderlessUntil: world.now + pause)
    world.after(pause) { self.appended(id) }
    return true
  }

  /// What was written below an offset after a reader had passed it, it will never see.
  ///
  /// - Parameter cuts: those that the reader knew of when it passed.
  func lose(_ id: PartitionID, before offset: Int64, newerThan cuts: Int) {
    for record in log(id).records where record.record.offset < offset && record.cuts > cuts {
      for item in record.items { oracle.lost(item, in: record) }
    }
  }
}
