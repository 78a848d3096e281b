/// Which records of one partition are settled, and up to where its offset may be committed.
///
/// Records are admitted in the order in which they were polled and settle in any order. The ledger tracks what was
/// polled, never what lies between: offsets have gaps of their own (compaction, transaction markers), and a gap is
/// nothing to wait for. One ledger lives as long as one assignment of its partition; whoever holds a sequence number
/// of an earlier one is told apart by the epoch (`Partitions`), not here.
///
/// Admission and settlement are O(1), amortised.
package struct PartitionLedger: Sendable {
  /// What to do with a record that was polled.
  package enum Admission: Equatable, Sendable {
    /// New work. Each of its items settles under this sequence number.
    case admitted(sequence: Int)
    /// Settled before a crash or a rebalance, as the last commit's metadata says: not to be sent again.
    case alreadySettled
    /// It is tracked already.
    case known
    /// It lies before the position, and is not what was polled there: the partition's offsets began again. `rewind`
    /// first.
    case rewound
  }

  private struct Entry {
    var offset: Int64
    /// Items that have not settled; 0: the record is settled.
    var outstanding: Int32
    /// What tells the record from another one that has the same offset later.
    var mark: UInt32
  }

  private var entries: [Entry] = []
  /// Where the first entry that is still tracked stands in `entries`.
  private var head = 0
  /// The sequence number of `entries[0]`.
  private var base = 0
  /// The settled items of batches that are tracked and not settled, by sequence number.
  private var batches: [Int: ItemSet] = [:]
  /// Settled before this assignment began; those passed are skipped.
  private var settledBefore: SettledOffsets
  private var settledCursor = 0
  private var batchCursor = 0
  /// Where this assignment was to begin.
  private let start: Int64
  /// The offset after the last record that was polled; `nil` before the first.
  private var position: Int64?
  /// Whether something settled since the last commit was handed out.
  package private(set) var isDirty = false

  /// - Parameters:
  ///   - start: the committed offset.
  ///   - settled: what the last commit's metadata names as settled.
  package init(from start: Int64 = 0, settled: SettledOffsets = SettledOffsets()) {
    self.start = start
    self.settledBefore = settled
  }

  /// Records that are polled and not yet passed by the commit point.
  package var trackedCount: Int { entries.count - head }

  /// Everything before this offset is settled; `nil` if nothing was polled in this assignment.
  package var commitPoint: Int64? {
    head < entries.count ? entries[head].offset : position
  }

  /// Takes a polled record in.
  ///
  /// - Parameters:
  ///   - offset: the record's.
  ///   - items: how many settlements it takes; 0 for a record that is settled by being skipped.
  ///   - mark: tells the record from others that may have its offset, when a topic is made anew or cut short.
  package mutating func admit(offset: Int64, items: Int, mark: UInt32 = 0) -> Admission {
    if let position, offset < position {
      guard let index = index(of: offset), entries[index].mark == mark else { return .rewound }
      return .known
    }
    if position == nil, offset < start {
      // The topic was made anew while nobody looked: the metadata speaks of other records.
      settledBefore = SettledOffsets()
    }
    let known = batchSettledBefore(offset, items: items)
    let isSettled = wasSettledBefore(offset) || known.map { $0.count >= items } ?? false
    let outstanding = isSettled ? 0 : items - (known?.count ?? 0)
    entries.append(Entry(offset: offset, outstanding: Int32(outstanding), mark: mark))
    position = offset + 1
    let sequence = base + entries.count - 1
    if outstanding == 0 {
      isDirty = true
      advance()
    } else if let known {
      batches[sequence] = known
    }
    return isSettled ? .alreadySettled : .admitted(sequence: sequence)
  }

  /// Whether a record has the next offset or a later one. An earlier one has come before, or offsets begin again.
  package func isAhead(_ offset: Int64) -> Bool { offset >= position ?? start }

  /// The items of an admitted batch that are settled already; `nil`: none.
  package func settledItems(of sequence: Int) -> ItemSet? { batches.isEmpty ? nil : batches[sequence] }

  /// Nothing is left to be polled before this offset: between the last record and it there is none.
  package mutating func pass(to end: Int64) {
    guard end > position ?? start else { return }
    position = end
    if head == entries.count { isDirty = true }
  }

  /// One item of a record has settled.
  ///
  /// - Parameters:
  ///   - sequence: what `admit` gave the record.
  ///   - item: which one, where it has several.
  package mutating func settle(sequence: Int, item: Int = 0) {
    let index = sequence - base
    guard index >= head, index < entries.count, entries[index].outstanding > 0 else { return }
    if entries[index].outstanding > 1 || (!batches.isEmpty && batches[sequence] != nil) {
      guard batches[sequence, default: ItemSet()].insert(item) else { return }
      isDirty = true
    }
    entries[index].outstanding -= 1
    guard entries[index].outstanding == 0 else { return }
    isDirty = true
    if !batches.isEmpty { batches[sequence] = nil }
    if index == head { advance() }
  }

  /// From this offset on other records stand in the partition than those that were polled: they are forgotten, and
  /// nothing that settles of them counts any more. What was committed beyond it is no longer: the commit point goes back.
  package mutating func rewind(to offset: Int64) {
    for index in entries.indices[head...] where entries[index].offset >= offset {
      // They keep their places, so that no sequence number is given out twice.
      entries[index].offset = offset
      entries[index].outstanding = 0
      batches[base + index] = nil
    }
    settledBefore = SettledOffsets()
    (settledCursor, batchCursor) = (0, 0)
    position = offset
    isDirty = true
    advance()
  }

  /// What to commit now: the commit point, and what is settled beyond it as metadata. `nil` if nothing changed.
  ///
  /// - Parameter limit: the most bytes that the metadata may have.
  package mutating func takeCommit(
    limit: Int = LedgerCodec.maximumBytes
  ) -> (offset: Int64, metadata: LedgerCodec.Encoded)? {
    guard isDirty, let offset = commitPoint else { return nil }
    isDirty = false
    let settled = SettledOffsets(records: settledBeyondCommitPoint(), batches: settledBatches())
    return (offset, LedgerCodec.encode(commitPoint: offset, settled, limit: limit))
  }

  /// A commit did not get through: the next one must say it again.
  package mutating func commitFailed() { isDirty = commitPoint != nil }

  /// Settled offsets beyond the commit point, ascending: polled ones, and those from before that were not polled yet.
  package func settledBeyondCommitPoint() -> [Range<Int64>] {
    var runs: [Range<Int64>] = []
    var runStart: Int64?
    for entry in entries[head...] {
      if entry.outstanding == 0 {
        if runStart == nil { runStart = entry.offset }
      } else if let start = runStart {
        // What was rewound leaves nothing between itself and what took its place.
        if start < entry.offset { runs.append(start..<entry.offset) }
        runStart = nil
      }
    }
    if let runStart, let position, runStart < position { runs.append(runStart..<position) }
    for range in settledBefore.records[settledCursor...] where range.upperBound > (position ?? .min) {
      runs.append(max(range.lowerBound, position ?? .min)..<range.upperBound)
    }
    return runs
  }

  /// The batches at or beyond the commit point of which some items are settled, ascending.
  private func settledBatches() -> [SettledBatch] {
    var settled = batches.keys.sorted().compactMap { sequence in
      batches[sequence].map { SettledBatch(offset: entries[sequence - base].offset, items: $0) }
    }
    settled += settledBefore.batches[batchCursor...].filter { $0.offset >= position ?? .min }
    return settled
  }

  private mutating func advance() {
    while head < entries.count, entries[head].outstanding == 0 { head += 1 }
    if head == entries.count {
      base += head
      entries.removeAll(keepingCapacity: true)
      head = 0
    } else if head >= 1024, head * 2 >= entries.count {
      base += head
      entries.removeSubrange(..<head)
      head = 0
    }
  }

  /// The place of the entry with this offset, if it is tracked.
  private func index(of offset: Int64) -> Int? {
    var (low, high) = (head, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].offset < offset { low = middle + 1 } else { high = middle }
    }
    return low < entries.count && entries[low].offset == offset ? low : nil
  }

  private mutating func wasSettledBefore(_ offset: Int64) -> Bool {
    while settledCursor < settledBefore.records.count, settledBefore.records[settledCursor].upperBound <= offset {
      settledCursor += 1
    }
    return settledCursor < settledBefore.records.count && settledBefore.records[settledCursor].contains(offset)
  }

  private mutating func batchSettledBefore(_ offset: Int64, items: Int) -> ItemSet? {
    while batchCursor < settledBefore.batches.count, settledBefore.batches[batchCursor].offset < offset {
      batchCursor += 1
    }
    guard items > 1, batchCursor < settledBefore.batches.count, settledBefore.batches[batchCursor].offset == offset
    else { return nil }
    return ItemSet(settledBefore.batches[batchCursor].items.runs.joined().filter { $0 < items })
  }
}
