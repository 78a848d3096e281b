import Wire

/// Counts how often each `apns-id` came, in bounded memory: open addressing, 24 bytes a place, at most half full.
struct IdentifierTable: Sendable {
  struct Tally: Hashable, Sendable {
    var requests: UInt32 = 0
    var accepted: UInt32 = 0
  }

  private struct Place: Sendable {
    var id = UUID(high: 0, low: 0)
    var tally = Tally()
  }

  private var places: [Place] = []
  private let limit: Int
  /// Ids in the table.
  private(set) var count = 0
  /// Ids that came more than once, and those that were accepted more than once.
  private(set) var repeated = 0
  private(set) var acceptedRepeatedly = 0
  /// Requests and acceptances that were not counted because the table was full.
  private(set) var missed = 0

  /// - Parameter limit: the most ids that are counted.
  init(limit: Int) { self.limit = limit }

  subscript(id: UUID) -> Tally {
    guard !places.isEmpty else { return Tally() }
    return places[place(of: id)].tally
  }

  mutating func request(_ id: UUID) {
    guard let place = claim(id) else { return }
    places[place].tally.requests &+= 1
    if places[place].tally.requests == 2 { repeated += 1 }
  }

  mutating func accepted(_ id: UUID) {
    guard let place = claim(id) else { return }
    places[place].tally.accepted &+= 1
    if places[place].tally.accepted == 2 { acceptedRepeatedly += 1 }
  }

  private mutating func claim(_ id: UUID) -> Int? {
    if count * 2 >= places.count { grow() }
    guard !places.isEmpty else {
      missed += 1
      return nil
    }
    let found = place(of: id)
    if places[found].tally == Tally() {
      guard count < limit else {
        missed += 1
        return nil
      }
      count += 1
      places[found].id = id
    }
    return found
  }

  /// Where the id is, or would be. A place is free as long as its tally is empty; half of them always are.
  private func place(of id: UUID) -> Int {
    let mask = places.count - 1
    var mixed = (id.high ^ id.low) &* 0x9e37_79b9_7f4a_7c15
    mixed ^= mixed >> 32
    var index = Int(truncatingIfNeeded: mixed) & mask
    while places[index].tally != Tally(), places[index].id != id { index = (index + 1) & mask }
    return index
  }

  private mutating func grow() {
    guard count < limit else { return }
    let old = places
    places = [Place](repeating: Place(), count: max(1024, old.count * 2))
    for entry in old where entry.tally != Tally() { places[place(of: entry.id)] = entry }
  }
}
