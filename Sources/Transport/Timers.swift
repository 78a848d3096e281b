import Wire

/// A timer that was set; what `EventLoop.cancel` takes.
///
/// It may be kept after it fired: cancelling then does nothing, for the generation tells the uses of a slot apart.
package struct Timer: Hashable, Sendable {
  let slot: UInt32
  let generation: UInt32
}

/// Deadlines in order: a binary heap over slots, so that setting and cancelling cost O(log n) and allocate nothing once
/// the arrays have grown.
struct Timers<Payload> {
  private struct Entry {
    var deadline: Instant
    /// Tells equal deadlines apart: first set, first fired.
    var sequence: UInt64
    var slot: UInt32

    func isBefore(_ other: Entry) -> Bool {
      deadline == other.deadline ? sequence < other.sequence : deadline < other.deadline
    }
  }

  private struct Slot {
    var generation: UInt32 = 0
    /// Where the slot's entry stands in the heap.
    var position = 0
    var payload: Payload?
  }

  private var heap: [Entry] = []
  private var slots: [Slot] = []
  private var free: [UInt32] = []
  private var sequence: UInt64 = 0

  var count: Int { heap.count }

  /// The earliest deadline, or nil when no timer is set.
  var next: Instant? { heap.first?.deadline }

  mutating func insert(_ payload: Payload, at deadline: Instant) -> Timer {
    let slot: UInt32
    if let reused = free.popLast() {
      slot = reused
    } else {
      slot = UInt32(slots.count)
      slots.append(Slot())
    }
    slots[Int(slot)].payload = payload
    sequence &+= 1
    heap.append(Entry(deadline: deadline, sequence: sequence, slot: slot))
    slots[Int(slot)].position = heap.count - 1
    siftUp(heap.count - 1)
    return Timer(slot: slot, generation: slots[Int(slot)].generation)
  }

  /// Removes a timer; answers false if it has fired or was cancelled before.
  @discardableResult
  mutating func remove(_ timer: Timer) -> Bool {
    guard isSet(timer) else { return false }
    removeEntry(at: slots[Int(timer.slot)].position)
    release(timer.slot)
    return true
  }

  func isSet(_ timer: Timer) -> Bool {
    let index = Int(timer.slot)
    return index < slots.count && slots[index].generation == timer.generation && slots[index].payload != nil
  }

  /// Takes the earliest timer whose deadline is not after `now`.
  mutating func popDue(_ now: Instant) -> (timer: Timer, payload: Payload)? {
    guard let first = heap.first, first.deadline <= now else { return nil }
    guard let payload = slots[Int(first.slot)].payload else { return nil }
    let timer = Timer(slot: first.slot, generation: slots[Int(first.slot)].generation)
    removeEntry(at: 0)
    release(first.slot)
    return (timer, payload)
  }

  private mutating func release(_ slot: UInt32) {
    slots[Int(slot)].payload = nil
    slots[Int(slot)].generation &+= 1
    free.append(slot)
  }

  private mutating func removeEntry(at position: Int) {
    let last = heap.removeLast()
    guard position < heap.count else { return }
    heap[position] = last
    slots[Int(last.slot)].position = position
    siftDown(position)
    siftUp(position)
  }

  private mutating func siftUp(_ start: Int) {
    var child = start
    while child > 0 {
      let parent = (child - 1) / 2
      guard heap[child].isBefore(heap[parent]) else { return }
      swapEntries(child, parent)
      child = parent
    }
  }

  private mutating func siftDown(_ start: Int) {
    var parent = start
    while true {
      var least = parent
      let left = 2 * parent + 1
      let right = left + 1
      if left < heap.count && heap[left].isBefore(heap[least]) { least = left }
      if right < heap.count && heap[right].isBefore(heap[least]) { least = right }
      guard least != parent else { return }
      swapEntries(parent, least)
      parent = least
    }
  }

  private mutating func swapEntries(_ left: Int, _ right: Int) {
    heap.swapAt(left, right)
    slots[Int(heap[left].slot)].position = left
    slots[Int(heap[right].slot)].position = right
  }
}
