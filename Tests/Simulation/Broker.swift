import Delivery
import Wire

/// A record in a simulated partition, with what it stands for.
struct LogRecord {
  var record: Record
  /// The items that settle with it; empty for a tombstone.
  var items: [Int]
  /// The order in which all partitions were appended to.
  var order: UInt64
  /// Attempts that a parked request brings with it.
  var attempts: Int
  /// When a parked request is due.
  var notBefore = UnixTime(milliseconds: 0)
  /// How often its partition had been cut short when it was written.
  var cuts: Int
}

/// One partition that the replicas read.
struct PartitionLog {
  var records: [LogRecord] = []
  var nextOffset: Int64 = 0
  /// What is before was deleted: retention.
  var start: Int64 = 0
  var committed: (offset: Int64, metadata: String)?
  /// How often the log was cut short: a truncation after an election, or a topic made anew.
  var cuts = 0
  /// The cuts that whoever committed knew of, and those that the metadata is in line with: it may name what an earlier
  /// one named.
  var committedCuts = 0
  var namedCuts = 0
  /// Nobody can fetch before.
  var leaderlessUntil = Instant(nanoseconds: 0)
  /// Records before this place are known to be settled.
  var verified = 0

  /// Whether a consumer may read from an offset on.
  func has(_ offset: Int64) -> Bool { start...nextOffset ~= offset }

  /// The place of the first record at or after an offset.
  func place(of offset: Int64) -> Int {
    var low = 0
    var high = records.count
    while low < high {
      let middle = (low + high) / 2
      if records[middle].record.offset < offset { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// Kafka: the partitions that are read, what is produced, and the group's offsets.
final class Broker {
  static let requests: UInt32 = 0
  static let deferred: UInt32 = 1
  static let topics = ["push.requests", "push.deferred"]

  let world: World
  let oracle: Oracle
  private(set) var logs: [PartitionID: PartitionLog] = [:]
  private(set) var partitions: [PartitionID]
  private(set) var requestPartitions: Int
  private let deferredPartitions: [PartitionID]
  private var order: UInt64 = 0
  /// When the last parked request will be stored, and when somebody will be told.
  private var lastParked = Instant(nanoseconds: 0)
  private var lastTold = Instant(nanoseconds: 0)
  private var delivered: Set<UInt64> = []
  private var awayUntil = Instant(nanoseconds: 0)
  /// Called when a partition has something new.
  var appended: (PartitionID) -> Void = { _ in }

  init(world: World, oracle: Oracle, partitions: Int, deferredPartitions: Int) {
    self.world = world
    self.oracle = oracle
    requestPartitions = partitions
    self.deferredPartitions = (0..<deferredPartitions).map { PartitionID(topic: Self.deferred, partition: Int32($0)) }
    self.partitions =
      (0..<partitions).map { PartitionID(topic: Self.requests, partition: Int32($0)) } + self.deferredPartitions
    for id in self.partitions { logs[id] = PartitionLog() }
  }

  func log(_ id: PartitionID) -> PartitionLog { logs[id] ?? PartitionLog() }

  // MARK: Trouble

  /// How long no broker can be reached yet.
  var awayFor: Duration { max(.zero, awayUntil - world.now) }

  func goAway(for duration: Duration) {
    world.note("the brokers are away for \(duration)")
    awayUntil = min(world.now + duration, world.faultsEnd)
    world.after(awayFor) { for id in self.partitions { self.appended(id) } }
  }

  func canFetch(_ id: PartitionID) -> Bool { world.now >= max(awayUntil, log(id).leaderlessUntil) }

  /// The topic of requests grows.
  func addPartition() {
    let id = PartitionID(topic: Self.requests, partition: Int32(requestPartitions))
    logs[id] = PartitionLog()
    partitions.append(id)
    requestPartitions += 1
  }

  func shorten(_ id: PartitionID, to offset: Int64, leaderlessUntil: Instant) {
    let log = log(id)
    let place = log.place(of: offset)
    let verified = min(log.verified, place)
    logs[id]?.records.removeSubrange(place...)
    logs[id]?.nextOffset = offset
    logs[id]?.start = min(log.start, offset)
    logs[id]?.cuts += 1
    logs[id]?.verified = verified
    logs[id]?.leaderlessUntil = leaderlessUntil
  }

  /// Retention deletes what is committed, and what is committed alone. An offset that was committed for the log as it
  /// was before a cut says nothing of what stands there now.
  func expire(_ id: PartitionID) {
    guard log(id).committedCuts == log(id).cuts else { return }
    let start = max(log(id).start, min(log(id).committed?.offset ?? 0, log(id).nextOffset))
    logs[id]?.start = start
  }

  func forgetCommitted(_ id: PartitionID) { logs[id]?.committed = nil }

  // MARK: Appending

  /// The offset that the next record of a partition will have; producers' transactions and compaction leave gaps.
  func nextOffset(_ id: PartitionID) -> Int64 {
    if world.strikes(.offsetGaps) { logs[id]?.nextOffset += Int64(1 + world.random.uniform(below: 40)) }
    return log(id).nextOffset
  }

  func append(_ id: PartitionID, _ body: RecordBody, items: [Int], attempts: Int = 0, notBefore: Int64 = 0) {
    let (offset, cuts) = (log(id).nextOffset, log(id).cuts)
    order += 1
    let record = Record(source: id, offset: offset, timestamp: world.time, body: body)
    logs[id]?.records.append(
      LogRecord(
        record: record, items: items, order: order, attempts: attempts, notBefore: UnixTime(milliseconds: notBefore),
        cuts: cuts))
    logs[id]?.nextOffset = offset + 1
    appended(id)
    if world.strikes(.offsetGaps) { world.after(world.between(.zero, .seconds(2))) { self.endTransaction(id) } }
  }

  /// The marker at a transaction's end has an offset and is no record: so the log ends with a gap.
  private func endTransaction(_ id: PartitionID) {
    logs[id]?.nextOffset += Int64(1 + world.random.uniform(below: 3))
    appended(id)
  }

  /// - Returns: whether it is the first one.
  func noteDelivery(of record: LogRecord) -> Bool { delivered.insert(record.order).inserted }

  // MARK: Producing

  /// What Kafka says of a record, after a while; `report` is called once.
  func produce(_ publication: ProducedRecord, report: @escaping (Receipt.Outcome) -> Void) {
    let item = oracle[publication.item]
    var delay = world.between(.milliseconds(1), .milliseconds(20))
    let away = awayFor
    if world.strikes(.produceSlow) { delay = world.between(.seconds(1), .seconds(8)) }
    if item.isNeverStorable || (item.isTooLarge && publication.isFull) {
      world.after(delay) { report(.refused("too large")) }
      return
    }
    if world.strikes(.produceLost) {
      world.after(delay) { report(.undelivered("lost")) }
      return
    }
    let isAmbiguous = world.strikes(.produceAckLost)
    var storing = delay / 2 + away
    delay += away
    if publication.topic == .deferred {
      // The producer is idempotent: what it sends to one partition is stored in order.
      lastParked = max(lastParked, world.now + storing)
      storing = lastParked - world.now
      delay = max(delay, storing, lastTold - world.now)
      lastTold = world.now + delay
    }
    world.after(storing) { self.store(publication, isAmbiguous: isAmbiguous) }
    world.after(delay) { report(isAmbiguous ? .undelivered("timed out") : .acknowledged) }
  }

  private func store(_ produced: ProducedRecord, isAmbiguous: Bool) {
    world.note("stored \(produced.topic) of item \(produced.item)")
    oracle.stored(produced.item, produced.topic, isAmbiguous: isAmbiguous)
    guard produced.topic == .deferred else { return }
    let hash = produced.body.key.map { key in
      produced.body.storage[key.indices].reduce(0) { ($0 &* 31 &+ Int($1)) & 0xffff }
    }
    let id = deferredPartitions[(hash ?? produced.item) % deferredPartitions.count]
    _ = nextOffset(id)
    append(id, produced.body, items: [produced.item], attempts: produced.attempts, notBefore: produced.notBefore)
    produced.tracker.order = order
    world.note("parked item \(produced.item) at \(id) \(log(id).nextOffset - 1), due \(produced.notBefore)")
  }

  // MARK: Offsets

  func commit(_ commit: OffsetCommit, _ fence: Fence) {
    logs[commit.partition]?.committed = (commit.offset, commit.metadata)
    logs[commit.partition]?.committedCuts = fence.cuts
    logs[commit.partition]?.namedCuts = fence.namedCuts
    world.note("committed \(commit.partition) \(commit.offset) \(commit.metadata)")
  }

  /// No commit may pass what is not settled, nor call it settled.
  ///
  /// - Parameter isStale: what the metadata of an earlier commit names there, and a record that was written later has.
  func verify(_ commit: OffsetCommit, isStale: (LogRecord) -> Bool) {
    let end = log(commit.partition).place(of: commit.offset)
    var place = log(commit.partition).verified
    while place < end {
      verifySettled(commit.partition, place, "is passed by a commit of \(commit.offset)")
      place += 1
    }
    let verified = max(log(commit.partition).verified, end)
    logs[commit.partition]?.verified = verified
    let named = LedgerCodec.decode(commit.metadata, commitPoint: commit.offset)
    for batch in named.batches {
      let place = log(commit.partition).place(of: batch.offset)
      // In a log that was cut short, what it names may have left nothing behind.
      guard place < log(commit.partition).records.count,
        log(commit.partition).records[place].record.offset == batch.offset,
        !isStale(log(commit.partition).records[place])
      else { continue }
      verifySettled(commit.partition, place, "is named as settled in a batch by a commit", batch.items)
    }
    for range in named.records {
      var place = log(commit.partition).place(of: range.lowerBound)
      while place < log(commit.partition).records.count,
        log(commit.partition).records[place].record.offset < range.upperBound
      {
        if !isStale(log(commit.partition).records[place]) {
          verifySettled(commit.partition, place, "is named as settled by a commit of \(commit.offset)")
        }
        place += 1
      }
    }
  }

  private func verifySettled(_ id: PartitionID, _ place: Int, _ what: String, _ named: ItemSet? = nil) {
    guard let record = logs[id]?.records[place] else { return }
    for (index, item) in record.items.enumerated() where !isSettled(item, record) {
      if let named, !named.contains(index) { continue }
      world.fail("\(id) offset \(record.record.offset) (item \(item)) is not settled and \(what)")
    }
  }

  /// An item of a record is settled when its result is acknowledged, or another record on the deferred topic that stands
  /// for it: a later one, or one that is due later, for which a machine lets go of this one. Two that were let go for one
  /// another leave no result, which the check at the end sees.
  func isSettled(_ item: Int, _ record: LogRecord) -> Bool {
    let known = oracle[item]
    return known.isSettled || known.isUnstorableForGood || known.isLost
      || known.lastParkAcknowledged > record.order || known.latestDue > record.notBefore
  }

  /// How far the group is behind the end of a log, gaps included. What retention deleted had been committed; a commit
  /// that went back since, after a reset, need not come up to it again.
  func lag(_ id: PartitionID) -> Int64 {
    max(0, log(id).nextOffset - max(log(id).committed?.offset ?? 0, log(id).start))
  }

  /// What is still to be committed, in words.
  var uncommitted: String {
    let open = partitions.filter { lag($0) > 0 }.map { id in
      "\(id) committed to \(log(id).committed?.offset ?? 0) of \(log(id).nextOffset)"
    }
    return open.isEmpty ? "all is committed" : open.joined(separator: ", ")
  }
}

/// Where a parked record has come to stand.
final class StoreTracker {
  var order: UInt64 = 0
}

/// A publication on its way to the broker.
struct ProducedRecord {
  var item: Int
  var topic: OutputTopic
  /// Not the shortened form.
  var isFull: Bool
  /// Only for parked requests: what is read back.
  var body: RecordBody
  var attempts: Int
  var notBefore: Int64
  var tracker = StoreTracker()
}
