/// Some items of a batch, by their places in it.
package struct ItemSet: Equatable, Sendable {
  private var words: [UInt64] = []
  package private(set) var count = 0

  /// None.
  package init() {}

  /// These items; none is negative.
  package init(_ items: some Sequence<Int>) {
    for item in items { insert(item) }
  }

  /// Whether an item is among them.
  package func contains(_ item: Int) -> Bool {
    item >= 0 && item / 64 < words.count && words[item / 64] & (1 << UInt64(item % 64)) != 0
  }

  /// - Precondition: `item` is not negative.
  /// - Returns: whether it is new.
  @discardableResult
  package mutating func insert(_ item: Int) -> Bool {
    guard !contains(item) else { return false }
    if item / 64 >= words.count { words.append(contentsOf: repeatElement(0, count: item / 64 + 1 - words.count)) }
    words[item / 64] |= 1 << UInt64(item % 64)
    count += 1
    return true
  }

  /// Its runs, ascending and disjoint.
  package var runs: [Range<Int>] {
    var runs: [Range<Int>] = []
    var first: Int?
    for item in 0...words.count * 64 {
      if contains(item) {
        if first == nil { first = item }
      } else if let start = first {
        runs.append(start..<item)
        first = nil
      }
    }
    return runs
  }
}

/// A batch of which some items are settled and others are not.
package struct SettledBatch: Equatable, Sendable {
  package var offset: Int64
  package var items: ItemSet

  package init(offset: Int64, items: ItemSet) {
    self.offset = offset
    self.items = items
  }
}

/// What is settled at and beyond a commit point: what a commit's metadata says.
package struct SettledOffsets: Equatable, Sendable {
  /// Records of which nothing is left to do, ascending and disjoint.
  package var records: [Range<Int64>]
  /// Batches of which something is, ascending.
  package var batches: [SettledBatch]

  package init(records: [Range<Int64>] = [], batches: [SettledBatch] = []) {
    self.records = records
    self.batches = batches
  }

  package var isEmpty: Bool { records.isEmpty && batches.isEmpty }
}
