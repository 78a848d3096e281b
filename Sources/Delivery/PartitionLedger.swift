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
    /// It lies before the commit point: the partition's offsets began again.
    case rewound
  }

  private struct Entry {
    var offset: Int64
    /// Items that have not settled; 0: the record is settled.
    var outstanding: Int32
  }

  private var entries: [Entry] = []
  /// Where the first entry that is still tracked stands in `entries`.
  private var head = 0
  /// The sequence number of `entries[0]`.
  private var base = 0
  /// Settled before this assignment began, ascending; those passed are dropped.
  private var settledBefore: [Range<Int64>]
  private var settledCursor = 0
  /// Where this assignment was to begin.
  private let start: Int64
  /// The offset after the last record that was polled; `nil` before the first.
  private var position: Int64?
  /// Whether something settled since the last commit was handed out.
  package private(set) var isDirty = false

  /// - Parameters:
  ///   - start: the committed offset.
  ///   - settled: the offsets that the last commit's metadata names as settled, ascending and disjoint.
  package init(from start: Int64 = 0, settled: [Range<Int64>] = []) {
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
  /// - Parameter items: how many settlements it takes; 0 for a record that is settled by being skipped.
  package mutating func admit(offset: Int64, items: Int) -> Admission {
    if let commitPoint, let position, offset < position { return offset < commitPoint ? .rewound : .known }
    if position == nil, offset < start {
      // The topic was made anew while nobody looked: the metadata speaks of other records.
      settledBefore = []
    }
    let settled = wasSettledBefore(offset)
    entries.append(Entry(offset: offset, outstanding: settled ? 0 : Int32(items)))
    position = offset + 1
    let sequence = base + entries.count - 1
    if settled || items == 0 {
      isDirty = true
      advance()
    }
    return settled ? .alreadySettled : .admitted(sequence: sequence)
  }

  /// One item of a record has settled.
  package mutating func settle(sequence: Int) {
    let index = sequence - base
    guard index >= head, index < entries.count, entries[index].outstanding > 0 else { return }
    entries[index].outstanding -= 1
    guard entries[index].outstanding == 0 else { return }
    isDirty = true
    if index == head { advance() }
  }

  /// What to commit now: the commit point, and the settled offsets beyond it as metadata. `nil` if nothing changed.
  package mutating func takeCommit() -> (offset: Int64, metadata: LedgerCodec.Encoded)? {
    guard isDirty, let offset = commitPoint else { return nil }
    isDirty = false
    return (offset, LedgerCodec.encode(commitPoint: offset, settled: settledBeyondCommitPoint()))
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
        runs.append(start..<entry.offset)
        runStart = nil
      }
    }
    if let runStart, let position { runs.append(runStart..<position) }
    for range in settledBefore[settledCursor...] where range.upperBound > (position ?? .min) {
      runs.append(max(range.lowerBound, position ?? .min)..<range.upperBound)
    }
    return runs
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

  private mutating func wasSettledBefore(_ offset: Int64) -> Bool {
    while settledCursor < settledBefore.count, settledBefore[settledCursor].upperBound <= offset { settledCursor += 1 }
    return settledCursor < settledBefore.count && settledBefore[settledCursor].contains(offset)
  }
}
