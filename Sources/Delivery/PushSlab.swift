import APNs
import Wire

/// One notification between its record and its settlement.
struct Push: Sendable {
  enum State: Sendable {
    case free
    /// In memory until its time comes.
    case waiting
    /// With a lane.
    case submitted(LaneIndex)
    /// Ended (or parked); its publications await their receipts.
    case publishing
  }

  /// Its part in the line of its key.
  enum Turn: Sendable {
    case none
    /// Others of its key come first.
    case waiting
    /// It is of the request that goes out now.
    case current
    /// It is back before its time and before one that comes before it: it still counts as parked.
    case parked
  }

  var generation: UInt32 = 0
  var state: State = .free
  /// All that its records say of it; the source is the one that the request had first, also if it was parked since.
  var subject: ResultSubject
  /// Its partition's place among `Partitions`, and the assignment that it came with.
  var place: Int
  var epoch: UInt32
  var sequence: Int
  /// Attempts that surely did not reach APNs.
  var unsent = 0
  /// How often it went out again because its provider token was called expired.
  var refreshes = 0
  /// The buffer of its record.
  var storage: PushSlab.Storage
  /// The line of its key (`KeyOrder`); 0: it has none.
  var line: UInt64 = 0
  var turn: Turn = .none
  /// It must not be sent before.
  var notBefore: UnixTime?
  /// When it was due, if it came back from the deferred topic.
  var wasDue: UnixTime?
  /// It came back and waits until it is due.
  var isEarly = false
  /// Set instead of an ending when it was parked.
  var parkedUntil: UnixTime?
  /// When it ended.
  var completedAt: UnixTime?
  /// Whether its invalid-token event is to be taken with doubt.
  var isSuspect = false
  /// The topics whose receipts are outstanding, a bit each.
  var awaited: UInt8 = 0
  /// The topics that refused the full record and get a shortened one.
  var shortened: UInt8 = 0
  /// The topics that did not store the record; it is produced again when its wait is over.
  var unstored: UInt8 = 0
  /// Times that a publication had to be produced again.
  var republished = 0
}

/// All notifications in flight, in one array; places are used again, each time under a new generation.
struct PushSlab: Sendable {
  private(set) var places: [Push] = []
  /// How each ended, by place. Apart, since it is the larger part of a push, looked at once, and copied with it else.
  private var endings: [Ending?] = []
  private var free: [UInt32] = []
  /// Bytes of the records' buffers that pushes refer to.
  private(set) var bytesInUse = 0
  /// Buffers: their bytes, and how many refer to each. All items of a batch share one, and keep the whole of it.
  private var storages: [(bytes: Int, users: Int)] = []
  private var freeStorages: [Storage] = []
  /// Of no known app, then of each app by its index.
  private var countsByApp = [0]

  /// A buffer that pushes refer to, by its place among them.
  struct Storage: Hashable, Sendable {
    fileprivate var place: Int32
  }

  /// Counts a buffer until it was released as often as it was held, and pushes were inserted with it.
  mutating func hold(bytes: Int) -> Storage {
    bytesInUse += bytes
    if let storage = freeStorages.popLast() {
      storages[Int(storage.place)] = (bytes, 1)
      return storage
    }
    storages.append((bytes, 1))
    return Storage(place: Int32(storages.count - 1))
  }

  mutating func release(_ storage: Storage) {
    let place = Int(storage.place)
    storages[place].users -= 1
    guard storages[place].users == 0 else { return }
    bytesInUse -= storages[place].bytes
    freeStorages.append(storage)
  }

  var countInUse: Int { places.count - free.count }

  func countInUse(of app: AppIndex?) -> Int {
    let row = Self.row(of: app)
    return row < countsByApp.count ? countsByApp[row] : 0
  }

  private static func row(of app: AppIndex?) -> Int { app.map { Int($0.value) + 1 } ?? 0 }

  mutating func insert(_ push: consuming Push) -> PushSlot {
    storages[Int(push.storage.place)].users += 1
    let row = Self.row(of: push.subject.app)
    while countsByApp.count <= row { countsByApp.append(0) }
    countsByApp[row] += 1
    if let index = free.popLast() {
      let generation = places[Int(index)].generation &+ 1
      push.generation = generation
      places[Int(index)] = push
      return PushSlot(index: index, generation: generation)
    }
    push.generation = 1
    places.append(push)
    endings.append(nil)
    return PushSlot(index: UInt32(places.count - 1), generation: 1)
  }

  /// Whether the slot still belongs to the push that it was given to.
  func contains(_ slot: PushSlot) -> Bool {
    guard Int(slot.index) < places.count, places[Int(slot.index)].generation == slot.generation else { return false }
    if case .free = places[Int(slot.index)].state { return false }
    return true
  }

  /// - Precondition: `contains(slot)`.
  subscript(slot: PushSlot) -> Push {
    // No `_read`: Swift 6.3 without optimization uses what a coroutine lent after its end, for values of this size.
    get { places[Int(slot.index)] }
    _modify { yield &places[Int(slot.index)] }
  }

  /// How it ended; `nil` as long as it has not, or was parked.
  func ending(of slot: PushSlot) -> Ending? { endings[Int(slot.index)] }

  mutating func end(_ slot: PushSlot, as ending: Ending, at time: UnixTime) {
    endings[Int(slot.index)] = ending
    places[Int(slot.index)].completedAt = time
  }

  /// Frees the place and what it refers to.
  mutating func remove(_ slot: PushSlot) {
    let index = Int(slot.index)
    release(places[index].storage)
    countsByApp[Self.row(of: places[index].subject.app)] -= 1
    places[index].state = .free
    places[index].subject.notification.storage = []
    places[index].subject.headers = []
    endings[index] = nil
    free.append(slot.index)
  }

  /// The slots in use that `isIncluded`; looks at every place.
  func slots(where isIncluded: (Push) -> Bool) -> [PushSlot] {
    places.indices.compactMap { index in
      if case .free = places[index].state { return nil }
      guard isIncluded(places[index]) else { return nil }
      return PushSlot(index: UInt32(index), generation: places[index].generation)
    }
  }
}
