import Wire

/// What waits in memory for a time (to be sent, sent again, or published again): a binary heap by due time, ties in the
/// order of insertion, so that a run can be repeated.
struct WaitQueue: Sendable {
  private struct Entry {
    var due: Instant
    var order: UInt64
    var slot: PushSlot
  }

  private var heap: [Entry] = []
  private var inserted: UInt64 = 0

  var count: Int { heap.count }
  var nextDue: Instant? { heap.first?.due }

  mutating func insert(_ slot: PushSlot, due: Instant) {
    heap.append(Entry(due: due, order: inserted, slot: slot))
    inserted += 1
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard isBefore(child, parent) else { break }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  /// The first one that is due, if one is.
  mutating func popDue(now: Instant) -> PushSlot? {
    guard let first = heap.first, first.due <= now else { return nil }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      sink()
    }
    return first.slot
  }

  /// What `isIncluded` is due at `time` at the latest; looks at everything that waits.
  mutating func bringForward(to time: Instant, where isIncluded: (PushSlot) -> Bool) {
    let waiting = heap.sorted { ($0.due, $0.order) < ($1.due, $1.order) }
    heap.removeAll(keepingCapacity: true)
    for entry in waiting { insert(entry.slot, due: isIncluded(entry.slot) ? min(entry.due, time) : entry.due) }
  }

  /// What is due at `time` or before; looks at everything that waits.
  func slots(dueBy time: Instant) -> Set<PushSlot> {
    Set(heap.lazy.filter { $0.due <= time }.map(\.slot))
  }

  private mutating func sink() {
    var parent = 0
    while let child = firstChild(of: parent), isBefore(child, parent) {
      heap.swapAt(parent, child)
      parent = child
    }
  }

  private func firstChild(of parent: Int) -> Int? {
    let (left, right) = (2 * parent + 1, 2 * parent + 2)
    guard left < heap.count else { return nil }
    return right < heap.count && isBefore(right, left) ? right : left
  }

  private func isBefore(_ left: Int, _ right: Int) -> Bool {
    (heap[left].due, heap[left].order) < (heap[right].due, heap[right].order)
  }
}
