import Delivery
import Wire

/// What the producers asked for, notification by notification, and what has come of each: the truth that the machines
/// are measured against.
final class Oracle {
  /// One notification, or one record that is none.
  struct Item {
    var app: Int
    var isWellFormed: Bool
    var source: Source
    var expiration: Int64?
    var createdAt: Instant
    /// The record's key, where it has one that others have too.
    var key: String?
    /// Its record's value, which no other one has.
    var value: [UInt8] = []
    var needsResult = true
    var needsDeadLetter = false
    /// Kafka refuses its records while they carry headers.
    var isTooLarge = false
    /// Kafka refuses its records in any form.
    var isNeverStorable = false
    var apnsID: UUID?
    var isSent = false
    /// A machine has written its result.
    var hasEnded = false
    /// Its app was removed from the configuration at some time.
    var isOrphan = false
    /// Kafka lost the record that stood for it, or gave its offset to others: nobody can owe it an answer.
    var isLost = false
    /// How often a machine took up a record that stands for it.
    var deliveries = 0
    /// A machine took up a record that another one had taken up before.
    var isRepeated = false
    /// Records that were stored though the producer was told otherwise.
    var ambiguous = 0
    var results = 0
    var parks = 0
    var deadLetters = 0
    var invalidTokens = 0
    /// Apple's answers to it.
    var accepted = 0
    var deaths = 0
    var isSettled = false
    var isUnstorableForGood = false
    var finishedAt: Instant?

    /// Whether each record that stands for it was taken up and stored once.
    var isUnrepeated: Bool { !isRepeated && ambiguous == 0 }

    var isFinished: Bool {
      isUnstorableForGood || isLost || ((!needsResult || results > 0) && (!needsDeadLetter || deadLetters > 0))
        || (isOrphan && deadLetters > 0)
    }
    /// When the last park that was acknowledged was stored, by the log's own order.
    var lastParkAcknowledged: UInt64 = 0
    /// The latest time for which one was parked that was acknowledged.
    var latestDue = UnixTime(milliseconds: 0)
  }

  private let world: World
  private(set) var items: [Item] = []
  /// A topic that was cut short or made anew gives the same offsets again.
  private var places: [Source: [Int]] = [:]
  /// Items by partition and key, in order.
  private var lines: [Line: [Int]] = [:]
  private var removedApps: Set<Int> = []
  private(set) var unfinished = 0

  private struct Line: Hashable {
    var partition: PartitionID
    var key: String
  }

  init(world: World) { self.world = world }

  subscript(item: Int) -> Item {
    _read { yield items[item] }
    _modify { yield &items[item] }
  }

  /// - Returns: the item's number; its device token is made from it.
  func add(_ item: Item) -> Int {
    items.append(item)
    places[item.source, default: []].append(items.count - 1)
    items[items.count - 1].isOrphan = removedApps.contains(item.app)
    if let key = item.key {
      lines[Line(partition: item.source.partition, key: key), default: []].append(items.count - 1)
    }
    unfinished += 1
    return items.count - 1
  }

  /// - Parameters:
  ///   - requestedAt: when its record was written, where that is said; it tells those apart that had the same place.
  ///   - value: that of its record, where that is told.
  ///   - expected: the item that it ought to be, where the one who asks knows.
  func find(_ source: Source, requestedAt: Int64?, value: [UInt8]?, expected: Int?) -> Int? {
    guard let candidates = places[source] else { return nil }
    guard candidates.count > 1 else { return candidates[0] }
    if let requestedAt {
      return candidates.last { World.time(at: items[$0].createdAt).milliseconds == requestedAt }
    }
    if let expected, candidates.contains(expected) { return expected }
    return candidates.last { items[$0].value == value } ?? candidates.last
  }

  /// The record that stands for it is gone from Kafka, or will never be read.
  ///
  /// One that was parked after it stands for the item in its place, unless it was due earlier: whoever stored both has
  /// let that go.
  func lost(_ item: Int, in record: LogRecord) {
    guard items[item].lastParkAcknowledged <= record.order || items[item].latestDue <= record.notBefore else { return }
    let wasFinished = items[item].isFinished
    items[item].isLost = true
    finished(item, wasFinished)
  }

  /// The app is removed from the configuration: what it was asked for may end as invalid from now on.
  func removed(_ app: Int) {
    removedApps.insert(app)
    for index in items.indices where items[index].app == app { items[index].isOrphan = true }
  }

  /// An earlier item of the same key that has not ended.
  func firstOpen(before item: Int) -> Int? {
    guard let key = items[item].key else { return nil }
    return lines[Line(partition: items[item].source.partition, key: key)]?.first { earlier in
      items[earlier].source.offset < items[item].source.offset && items[earlier].isWellFormed
        && !items[earlier].hasEnded
    }
  }

  /// Apple takes one token for one item.
  static func token(_ item: Int) -> String {
    let digits = String(item, radix: 16)
    return "aa" + String(repeating: "0", count: 8 - digits.utf8.count) + digits
  }

  static func item(ofToken token: Span<UInt8>) -> Int? {
    guard token.count == 10 else { return nil }
    var number = 0
    for index in 2..<10 {
      let digit = Int(token[index])
      number = number << 4 | (digit < 0x3a ? digit - 0x30 : digit - 0x57)
    }
    return number
  }

  // MARK: What happens to an item

  func delivered(_ item: Int, isRepeated: Bool) {
    items[item].deliveries += 1
    if isRepeated { items[item].isRepeated = true }
  }

  /// A machine sends it.
  func submitted(_ item: Int, apnsID: UUID, app: Int) {
    world.check(items[item].isWellFormed, "item \(item) broke the contract and is sent all the same")
    world.check(items[item].app == app, "item \(item) goes to another app's connection")
    if let known = items[item].apnsID {
      world.check(known == apnsID, "item \(item) is sent with another apns-id than before")
    }
    items[item].apnsID = apnsID
  }

  /// One of its records is in Kafka.
  func stored(_ item: Int, _ topic: OutputTopic, isAmbiguous: Bool) {
    let wasFinished = items[item].isFinished
    if isAmbiguous { items[item].ambiguous += 1 }
    switch topic {
    case .results: items[item].results += 1
    case .deferred: items[item].parks += 1
    case .invalidTokens: items[item].invalidTokens += 1
    case .deadLetters: items[item].deadLetters += 1
    }
    finished(item, wasFinished)
    let known = items[item]
    world.check(
      known.results + known.parks <= known.deliveries + known.ambiguous,
      "item \(item) was taken up \(known.deliveries) times and has \(known.results) results and \(known.parks) parks")
  }

  /// A machine was told that its last record is in Kafka, or that it never will be.
  func settled(_ item: Int) { items[item].isSettled = true }

  /// Both forms of a record were refused: nothing is left to wait for.
  func gaveUp(_ item: Int) {
    world.check(items[item].isNeverStorable, "a storable record was given up")
    let wasFinished = items[item].isFinished
    items[item].isUnstorableForGood = true
    finished(item, wasFinished)
  }

  private func finished(_ item: Int, _ wasFinished: Bool) {
    guard !wasFinished, items[item].isFinished else { return }
    items[item].finishedAt = world.now
    unfinished -= 1
  }

  /// A machine is told that it is parked.
  ///
  /// - Parameter order: where its record stands among all that were written.
  func parked(_ item: Int, order: UInt64, until due: UnixTime) {
    items[item].lastParkAcknowledged = max(items[item].lastParkAcknowledged, order)
    items[item].latestDue = max(items[item].latestDue, due)
  }

  // MARK: The end

  /// What must be true of each item when all is over.
  func checkEnd() {
    for (index, item) in items.enumerated() where !item.isUnstorableForGood && !item.isLost {
      var text: String { "item \(index) (\(item.source))" }
      if item.needsResult {
        world.check(item.results > 0 || (item.isOrphan && item.deadLetters > 0), "\(text) has no result")
      } else {
        world.check(item.results == 0, "\(text) has a result, and nobody could know what it is about")
      }
      world.check(!item.needsDeadLetter || item.deadLetters > 0, "\(text) has no dead letter")
      if item.deaths > 0, item.isUnrepeated {
        world.check(item.invalidTokens > 0, "\(text) has a dead token, and nobody is told")
      }
    }
  }

  /// The item of these apps that took longest, and how long it took.
  func slowest(where isIncluded: (Item) -> Bool) -> (item: Int, wait: Duration)? {
    var slowest: (item: Int, wait: Duration)?
    for (index, item) in items.enumerated() where isIncluded(item) {
      guard let finishedAt = item.finishedAt else { continue }
      if finishedAt - item.createdAt > slowest?.wait ?? .zero { slowest = (index, finishedAt - item.createdAt) }
    }
    return slowest
  }
}
