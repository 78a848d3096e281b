import Wire

/// Virtual time, one seed, and what happens when: the ground that a simulated run stands on.
///
/// Nothing in a run reads a clock or draws from another source of chance, so a seed names a run.
final class World {
  private struct Entry {
    var due: Instant
    var order: UInt64
    var action: () -> Void
  }

  /// Some day in 2026, when the virtual clock is at zero.
  private static let epoch: Int64 = 1_790_000_000_000

  let faults: FaultPlan
  var random: SeededRandom
  private(set) var now = Instant(nanoseconds: 1_000_000_000)
  /// From then on all goes well.
  let faultsEnd: Instant
  /// The first promise that was found broken; the run ends with it.
  private(set) var violation: String?
  private(set) var covered: [Fault: Int] = [:]
  /// How much has happened lately, and since when.
  private var crowd = (since: Instant(nanoseconds: 0), events: 0)
  private var heap: [Entry] = []
  private var inserted: UInt64 = 0
  private var journal: [String] = []
  private let keepsJournal: Bool

  init(seed: UInt64, faults: FaultPlan, faultsEnd: Instant, keepsJournal: Bool) {
    self.faults = faults
    self.faultsEnd = faultsEnd
    self.keepsJournal = keepsJournal
    random = SeededRandom(seed: seed)
  }

  var moment: Moment { Moment(instant: now, time: time) }
  var time: UnixTime { Self.time(at: now) }
  static func time(at instant: Instant) -> UnixTime {
    UnixTime(milliseconds: epoch + instant.nanoseconds / 1_000_000)
  }
  var isCalm: Bool { now >= faultsEnd }
  var eventCount: UInt64 { inserted }
  var story: [String] { journal }

  /// Whether a fault strikes now; counts it.
  func strikes(_ fault: Fault) -> Bool {
    guard !isCalm, let weight = faults.weights[fault], random.chance(weight) else { return false }
    covered[fault, default: 0] += 1
    return true
  }

  func after(_ delay: Duration, _ action: @escaping () -> Void) {
    heap.append(Entry(due: now + max(delay, .zero), order: inserted, action: action))
    inserted += 1
    var child = heap.count - 1
    while child > 0, isBefore(child, (child - 1) / 2) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// Nothing more happens.
  func forget() { heap = [] }

  /// Goes to the next event and lets it happen; false when there is none.
  func step() -> Bool {
    guard let first = heap.first else { return false }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      sink()
    }
    now = first.due
    if now - crowd.since >= .seconds(10) { crowd = (now, 0) }
    crowd.events += 1
    check(crowd.events < 100_000, "something goes round and round")
    first.action()
    return true
  }

  /// Notes a broken promise.
  func fail(_ text: @autoclosure () -> String) {
    guard violation == nil else { return }
    violation = "at \(seconds) s: \(text())"
    note(violation ?? "")
  }

  func check(_ holds: Bool, _ text: @autoclosure () -> String) {
    if !holds { fail(text()) }
  }

  /// For the story that is told of a failed run.
  func note(_ text: @autoclosure () -> String) {
    guard keepsJournal else { return }
    journal.append("\(seconds) \(text())")
    if journal.count > 20_000 { journal.removeFirst(10_000) }
  }

  /// A time between the two, evenly spread.
  func between(_ low: Duration, _ high: Duration) -> Duration { low + random.uniform(below: high - low) }

  func pick<Element>(_ choices: [Element]) -> Element { choices[random.uniform(below: choices.count)] }

  private var seconds: String {
    let milliseconds = (now.nanoseconds - 1_000_000_000) / 1_000_000
    let rest = String(milliseconds % 1000)
    return "\(milliseconds / 1000).\(String(repeating: "0", count: 3 - rest.utf8.count))\(rest)"
  }

  private func isBefore(_ left: Int, _ right: Int) -> Bool {
    (heap[left].due, heap[left].order) < (heap[right].due, heap[right].order)
  }

  private func sink() {
    var parent = 0
    while true {
      var least = parent
      for child in (2 * parent + 1)...(2 * parent + 2) where child < heap.count {
        if isBefore(child, least) { least = child }
      }
      guard least != parent else { return }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}
