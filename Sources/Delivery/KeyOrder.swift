import Wire

/// The requests of one record key, one after the other (`delivery.ordering: "key"`).
///
/// A *line* is what has one key in one partition: keys of other partitions, and so of other topics, have nothing to do
/// with it. Its first request goes out; those behind it wait, in the order of their offsets, until all items of the
/// first have ended. What is parked leaves the line, and is remembered until it comes back: what has a higher offset
/// must not go out before it, and is parked behind it. So the order outlives a wait in Kafka, for as long as this
/// process knows of it. What was parked may come back to another replica. That shows when something comes back here that
/// was stored behind it (one key has one partition of the deferred topic); and `rememberedFor` bounds it in any case.
///
/// Lines are told apart by a hash of 64 bits. Two keys that share one would wait for each other, and nothing else.
struct KeyOrder: Sendable {
  /// How long after the end of its wait a parked request that has not come back is still waited for.
  static let rememberedFor: Duration = .seconds(120)

  /// One record: its items go out together. What comes back from the deferred topic is a record of its own.
  struct Request: Equatable, Sendable {
    /// Where it was read first.
    var offset: Int64
    /// Where it was read last: one that is read again is another request.
    var epoch: UInt32
    var sequence: Int
  }

  private struct Waiting: Sendable {
    var slot: PushSlot
    var request: Request
  }

  private struct Parked: Sendable {
    var offset: Int64
    var item: Int32
    /// When it is due, which tells one copy of it from another; `nil`: it is still where it was read first.
    var notBefore: UnixTime?
    /// From when on the time counts for which it is waited for.
    var until: UnixTime
    /// Which of all that Kafka has acknowledged it was; `nil` before that.
    var order: UInt64?
  }

  private struct Line: Sendable {
    var current: Request
    /// Items of the current request that have not ended.
    var open = 0
    /// Ascending by offset.
    var waiting: [Waiting] = []
    var firstWaiting = 0
    /// Ascending by offset and item.
    var parked: [Parked] = []
    var parkedUntil = UnixTime(milliseconds: 0)

    var isEmpty: Bool { open == 0 && firstWaiting == waiting.count && parked.isEmpty }
  }

  private var lines: [UInt64: Line] = [:]
  /// Lines whose current request has ended while others wait.
  private var ready: [UInt64] = []
  /// Parked items that are remembered, of all lines.
  private(set) var rememberedCount = 0
  /// The most of them.
  let limit: Int
  private var stored: UInt64 = 0

  init(limit: Int) { self.limit = limit }

  var lineCount: Int { lines.count }

  /// The line of a key: a hash of the partition and the key. Never 0.
  static func line(_ partition: PartitionID, key: Span<UInt8>) -> UInt64 {
    var hash = FNV1a()
    hash.add(UInt64(partition.topic) << 32 | UInt64(UInt32(bitPattern: partition.partition)))
    hash.add(key)
    return max(hash.value, 1)
  }

  // MARK: In line

  /// - Parameter isFirst: it was taken from the head of its line by `next`.
  /// - Returns: whether it goes out now. If not, it waits in line.
  mutating func enter(_ line: UInt64, _ slot: PushSlot, _ request: Request, isFirst: Bool) -> Bool {
    var entry = lines.removeValue(forKey: line) ?? Line(current: request)
    defer { lines[line] = entry }
    let isFree = entry.open == 0 && (isFirst || entry.firstWaiting == entry.waiting.count)
    if isFree || (entry.open > 0 && entry.current == request) {
      entry.current = request
      entry.open += 1
      return true
    }
    var place = entry.waiting.count
    while place > entry.firstWaiting, entry.waiting[place - 1].request.offset > request.offset { place -= 1 }
    entry.waiting.insert(Waiting(slot: slot, request: request), at: place)
    return false
  }

  /// An item of the current request has ended, or was put aside.
  mutating func leave(_ line: UInt64) {
    guard var entry = lines.removeValue(forKey: line) else { return }
    entry.open -= 1
    if entry.open == 0, entry.firstWaiting < entry.waiting.count { ready.append(line) }
    if !entry.isEmpty { lines[line] = entry }
  }

  mutating func popReady() -> UInt64? { ready.popLast() }

  /// The next one whose turn it is. It may be gone meanwhile; ask again until there is none.
  mutating func next(_ line: UInt64) -> PushSlot? {
    guard var entry = lines.removeValue(forKey: line) else { return nil }
    defer { if !entry.isEmpty { lines[line] = entry } }
    guard entry.firstWaiting < entry.waiting.count else { return nil }
    let first = entry.waiting[entry.firstWaiting]
    guard entry.open == 0 || entry.current == first.request else { return nil }
    entry.firstWaiting += 1
    if entry.firstWaiting == entry.waiting.count {
      entry.waiting = []
      entry.firstWaiting = 0
    } else if entry.firstWaiting >= 64, entry.firstWaiting * 2 >= entry.waiting.count {
      entry.waiting.removeSubrange(..<entry.firstWaiting)
      entry.firstWaiting = 0
    }
    return first.slot
  }

  // MARK: Parked

  /// Until when something before this offset is parked; `nil` if nothing is.
  mutating func parkedBefore(_ offset: Int64, _ line: UInt64, now: UnixTime) -> UnixTime? {
    guard rememberedCount > 0 else { return nil }
    while let entry = lines[line], let first = entry.parked.first, first.offset < offset {
      guard isForgotten(first.until, now) else { return entry.parkedUntil }
      lines[line]?.parked.removeFirst()
      rememberedCount -= 1
    }
    return nil
  }

  /// An item has been parked.
  ///
  /// - Parameters:
  ///   - notBefore: when it is due; `nil` if it was let go and will be read again.
  ///   - until: from when on the time counts for which it is waited for.
  mutating func park(
    _ line: UInt64, offset: Int64, item: Int32, notBefore: UnixTime?, until: UnixTime, now: UnixTime
  ) {
    if rememberedCount >= limit { makeRoom(now) }
    var entry = lines.removeValue(forKey: line) ?? Line(current: Request(offset: offset, epoch: 0, sequence: 0))
    defer { lines[line] = entry }
    entry.parkedUntil = max(entry.parkedUntil, until)
    let (place, isKnown) = Self.place(of: (offset, item), in: entry.parked)
    if isKnown {
      entry.parked[place] = Parked(offset: offset, item: item, notBefore: notBefore, until: until)
    } else {
      entry.parked.insert(Parked(offset: offset, item: item, notBefore: notBefore, until: until), at: place)
      rememberedCount += 1
    }
  }

  /// Kafka has acknowledged it.
  mutating func confirm(_ line: UInt64, offset: Int64, item: Int32) {
    guard rememberedCount > 0, let entry = lines[line] else { return }
    let (place, isKnown) = Self.place(of: (offset, item), in: entry.parked)
    guard isKnown else { return }
    stored += 1
    lines[line]?.parked[place].order = stored
  }

  /// It has come back, or will not.
  ///
  /// - Parameters:
  ///   - notBefore: when it was due, if it comes from the deferred topic.
  ///   - isSame: only if it is the very copy that is remembered.
  mutating func unpark(
    _ line: UInt64, offset: Int64, item: Int32, notBefore: UnixTime?, onlyIfSame isSame: Bool = false
  ) {
    guard rememberedCount > 0, var entry = lines[line], !entry.parked.isEmpty else { return }
    let (place, isKnown) = Self.place(of: (offset, item), in: entry.parked)
    guard isKnown, !isSame || entry.parked[place].notBefore == notBefore else { return }
    lines[line] = nil
    let before = entry.parked.count
    let copy = entry.parked.remove(at: place)
    // What was stored before it came back elsewhere.
    if let order = copy.order, copy.notBefore == notBefore { entry.parked.removeAll { ($0.order ?? .max) < order } }
    rememberedCount -= before - entry.parked.count
    if !entry.isEmpty { lines[line] = entry }
  }

  private func isForgotten(_ until: UnixTime, _ now: UnixTime) -> Bool {
    now.milliseconds > until.milliseconds + Self.rememberedFor.milliseconds
  }

  private mutating func forget(_ line: UInt64) {
    guard var entry = lines.removeValue(forKey: line) else { return }
    rememberedCount -= entry.parked.count
    entry.parked = []
    if !entry.isEmpty { lines[line] = entry }
  }

  /// Forgets what has not come back in time; if that is not enough, what comes back first, until half of the room is
  /// free.
  private mutating func makeRoom(_ now: UnixTime) {
    let remembered = lines.filter { !$0.value.parked.isEmpty }.sorted {
      ($0.value.parkedUntil, $0.key) < ($1.value.parkedUntil, $1.key)
    }
    for (line, entry) in remembered where isForgotten(entry.parkedUntil, now) || rememberedCount > limit / 2 {
      forget(line)
    }
  }

  private static func place(of wanted: (Int64, Int32), in all: [Parked]) -> (place: Int, isKnown: Bool) {
    var (low, high) = (0, all.count)
    while low < high {
      let middle = (low + high) / 2
      if (all[middle].offset, all[middle].item) < wanted { low = middle + 1 } else { high = middle }
    }
    return (low, low < all.count && (all[low].offset, all[low].item) == wanted)
  }
}
