import Delivery
import Wire

/// What a commit is made with: the assignment, which Kafka fences, and the cuts of the log that its offset and its
/// metadata are in line with.
struct Fence {
  var epoch: Int
  var cuts: Int
  var namedCuts: Int

  init(_ assigned: Replica.Assigned) {
    epoch = assigned.epoch
    cuts = assigned.bookCuts
    namedCuts = assigned.covered.isEmpty ? cuts : min(cuts, assigned.coveredCuts)
  }
}

// Logs that are cut short, topics that are made anew: a consumer whose position is gone begins at the start of the log,
// and the machine must find that out by itself. Where the log has grown past the position before anybody looks, what lies
// below is never read; nobody can tell, and nothing but that is excused here.
extension Replica {
  /// A partition as the consumer and the checks see it.
  struct Assigned {
    var epoch: Int
    /// The next offset to poll.
    var position: Int64
    var isPaused = false
    /// Where the log ended when all before was polled.
    var end: Int64?
    /// Revoked: what is polled of it is nobody's business.
    var leavingSince: Instant?
    var isLeaving: Bool { leavingSince != nil }
    /// When the last of the polled records is due.
    var notBefore = UnixTime(milliseconds: 0)
    /// Where it was to begin.
    var start: Int64
    /// What the committed metadata named as settled when the assignment began, and the cuts of the log that whoever
    /// committed it knew of.
    var covered: SettledOffsets
    var coveredCuts: Int
    /// The cuts that the consumer has seen, and those that the machine's book is in line with.
    var noticedCuts: Int
    var bookCuts: Int
    /// What was polled at each offset.
    var polled: [Int64: UInt64] = [:]
    /// How often the consumer began anew without the machine having said so.
    var pendingResets = 0
    /// Another record came with an offset that was polled before: the machine has to say so.
    var awaitsRewind = false
    /// The last commit failed: the next one must say it again.
    var mustCommit = false
    var committed: (offset: Int64, metadata: String)?
    /// It was read from an earlier offset on again: commits may go back, too.
    var isRewound = false
    /// Items of records whose results this machine knows to be stored.
    var settled: Set<Part> = []

    /// Whether the metadata at the beginning named an item of a record as settled.
    func covers(_ offset: Int64, _ index: Int, of count: Int) -> Bool {
      if covered.records.contains(where: { $0.contains(offset) }) { return true }
      return count > 1 && covered.batches.first { $0.offset == offset }?.items.contains(index) == true
    }
  }

  /// What was polled and is not due need not be waited for where it lies.
  func forgetDue() {
    for id in owned.keys { owned[id]?.notBefore = UnixTime(milliseconds: 0) }
  }

  /// The consumer looks at the logs again.
  func noticeCuts() {
    for id in broker.partitions {
      guard let assigned = owned[id], !assigned.isPaused, broker.canFetch(id) else { continue }
      let log = broker.log(id)
      guard log.cuts > assigned.noticedCuts else { continue }
      owned[id]?.noticedCuts = log.cuts
      if !log.has(assigned.position) {
        reset(id)
        if assigned.polled.isEmpty, assigned.end == nil { owned[id]?.bookCuts = log.cuts }
      } else {
        broker.lose(id, before: assigned.position, newerThan: assigned.noticedCuts)
        // After a reset that the machine does not know of yet, its book goes beyond the position.
        if assigned.bookCuts == assigned.noticedCuts, assigned.pendingResets == 0 { owned[id]?.bookCuts = log.cuts }
      }
    }
  }

  /// The consumer begins a partition again from its start.
  func reset(_ id: PartitionID) {
    world.note("\(name) reads \(id) again")
    owned[id]?.position = broker.log(id).start
    owned[id]?.committed = nil
    for (item, carrier) in carriers where carrier.partition == id { readAgain.insert(item) }
    owned[id]?.isRewound = true
    owned[id]?.notBefore = UnixTime(milliseconds: 0)
    // Below the end of a log that had no record, too, the machine may see that offsets begin again.
    if let assigned = owned[id], !assigned.polled.isEmpty || assigned.end != nil { owned[id]?.pendingResets += 1 }
    owned[id]?.end = nil
  }

  /// The consumer tells where a log ends, once it has read all before that.
  func reachEnds() {
    for id in broker.partitions {
      guard let assigned = owned[id], !assigned.isPaused, broker.canFetch(id) else { continue }
      let log = broker.log(id)
      guard log.has(assigned.position), log.place(of: assigned.position) == log.records.count,
        assigned.end != log.nextOffset
      else { continue }
      owned[id]?.position = log.nextOffset
      owned[id]?.end = log.nextOffset
      machine.reachedEnd(of: id, at: log.nextOffset)
    }
  }

  /// What is known of an offset when it is polled.
  func notePolled(_ record: LogRecord) {
    let (id, offset) = (record.record.source, record.record.offset)
    guard let assigned = owned[id] else { return }
    let isOther = assigned.polled[offset].map { $0 != record.order } ?? false
    if isOther, assigned.pendingResets == 1, !assigned.isLeaving { owned[id]?.awaitsRewind = true }
    // The machine sees that the metadata speaks of other records.
    if isOther || (assigned.polled.isEmpty && offset < assigned.start) { owned[id]?.covered = SettledOffsets() }
    owned[id]?.polled[offset] = record.order
  }

  /// The machine says that a partition's offsets began again: from now on its book is about what stands there now.
  func learnRewinds() {
    for case .rewound(let id, _) in machine.events {
      guard let assigned = owned[id] else { continue }
      world.note("\(name) says that \(id) began again")
      owned[id]?.awaitsRewind = false
      // With two resets that it had not told of, it may have spoken of the first one.
      guard assigned.pendingResets == 1 else {
        owned[id]?.pendingResets = .max / 2
        continue
      }
      owned[id]?.bookCuts = assigned.noticedCuts
      owned[id]?.pendingResets = 0
      // Its book has nothing of what was polled before the reset and not again: another record is no news to it there.
      owned[id]?.polled = assigned.polled.filter { $0.key < assigned.position }
    }
  }

  /// No commit may pass what is not settled, but for one that is made before its machine could know of a cut.
  func verify(_ commit: OffsetCommit, _ assigned: Assigned) {
    guard assigned.bookCuts == broker.log(commit.partition).cuts else { return }
    broker.verify(commit) { record in
      record.cuts > assigned.coveredCuts
        && (assigned.covered.records.contains { $0.contains(record.record.offset) }
          || assigned.covered.batches.contains { $0.offset == record.record.offset })
    }
  }
}
