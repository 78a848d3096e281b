import Wire

/// One partition while it is assigned to us.
struct PartitionState: Sendable {
  enum Phase: Sendable {
    case consuming
    /// Revoked: nothing more is taken up, what is out finishes.
    case draining
  }

  let id: PartitionID
  /// Tells this assignment from every other.
  let epoch: UInt32
  var phase: Phase = .consuming
  var ledger: PartitionLedger
  /// Pushes of this partition that are with a lane or await receipts.
  var busy = 0
  /// Records that are not due yet (deferred topic) or whose app is at its cap, in order, from `heldHead` on.
  private var held: [Record?] = []
  private var heldHead = 0
  /// Bytes of what is held.
  private(set) var heldBytes = 0
  /// When the first of them is due; `nil` if it waits for room.
  var heldUntil: Instant?
  /// The last commit could not say all that is settled: no more is taken in until the ledger is shorter.
  var isOverfull = false
  /// The last commit's metadata is half full: what would wait in memory is parked, before it comes to that.
  var isCrowded = false
  /// What waits in memory since before that has not been parked yet.
  var mustThin = false
  /// Parked requests that were taken up before they were due, and wait in memory.
  var early = 0
  /// Those that were parked anew within the last second.
  var anew: (since: Instant, count: Int) = (Instant(nanoseconds: 0), 0)
  /// What the consumer was last told.
  var isPaused = false
  /// Where the log ended when all before was polled. It may lie behind the last record: markers of transactions have
  /// offsets, too.
  private var end: Int64?

  /// What was parked waits for its app, and nobody else does: no more is fetched until what is held has been taken up.
  var waitsForApp = false

  var shouldPause: Bool { isOverfull || heldUntil != nil || waitsForApp }

  var isHolding: Bool { heldHead < held.count }
  var heldCount: Int { held.count - heldHead }
  var firstHeld: Record? { isHolding ? held[heldHead] : nil }

  mutating func hold(_ record: Record) {
    held.append(record)
    heldBytes += record.body.storage.count
  }

  mutating func dropFirstHeld() {
    heldBytes -= firstHeld?.body.storage.count ?? 0
    held[heldHead] = nil
    heldHead += 1
    if heldHead == held.count { dropHeld() }
  }

  mutating func dropHeld() {
    held.removeAll(keepingCapacity: true)
    heldHead = 0
    heldBytes = 0
    heldUntil = nil
    waitsForApp = false
  }

  /// Nothing more is taken up, and what is held is let go.
  mutating func letGo() {
    if isHolding { end = nil }
    dropHeld()
  }

  mutating func reachedEnd(_ offset: Int64) { end = offset }

  /// More was polled: where the log ended before that, it ends no more. Of a log that was cut short, what is polled may
  /// even lie before that place.
  mutating func goesOn() { end = nil }

  /// Has the ledger pass what is no record, at the end of the log.
  mutating func passEnd() {
    guard !isHolding, let offset = end else { return }
    end = nil
    ledger.pass(to: offset)
  }

  init(id: PartitionID, epoch: UInt32, ledger: PartitionLedger) {
    self.id = id
    self.epoch = epoch
    self.ledger = ledger
  }
}

/// The partitions that are assigned to us, and those just given back.
struct Partitions: Sendable {
  private(set) var slots: [PartitionState?] = []
  private var places: [PartitionID: Int] = [:]
  private var lastEpoch: UInt32 = 0

  var assigned: [PartitionID] { Array(places.keys) }
  var indices: Range<Int> { slots.indices }

  /// Begins an assignment; whatever was known of an earlier one is void.
  /// - Parameters:
  ///   - start: the committed offset, where it begins.
  ///   - settled: what the commit's metadata names as settled beyond it.
  mutating func assign(_ id: PartitionID, from start: Int64 = 0, settled: SettledOffsets) {
    release(id)
    lastEpoch += 1
    let state = PartitionState(id: id, epoch: lastEpoch, ledger: PartitionLedger(from: start, settled: settled))
    if let free = slots.firstIndex(where: { $0 == nil }) {
      slots[free] = state
      places[id] = free
    } else {
      slots.append(state)
      places[id] = slots.count - 1
    }
  }

  func place(of id: PartitionID) -> Int? { places[id] }

  /// - Precondition: the place is in use.
  // That makes `!` hold. Changes are made in place; a copy would share the ledger's memory, and so have it copied. Reads
  // are by value, for the reason that `PushSlab` gives.
  // swift-format-ignore: NeverForceUnwrap
  subscript(place: Int) -> PartitionState {
    get { slots[place]! }
    _modify { yield &slots[place]! }
  }

  /// Whether `place` still is in the assignment that `epoch` names.
  func isCurrent(_ place: Int, epoch: UInt32) -> Bool {
    place < slots.count && slots[place]?.epoch == epoch
  }

  mutating func release(_ id: PartitionID) {
    guard let place = places.removeValue(forKey: id) else { return }
    slots[place] = nil
  }
}

extension DeliveryMachine {
  /// The place of a push's partition; `nil` where the assignment that it came with has ended.
  @inline(__always)
  func place(of slot: PushSlot) -> Int? {
    let (place, epoch) = (pushes[slot].place, pushes[slot].epoch)
    return partitions.isCurrent(place, epoch: epoch) ? place : nil
  }
}
