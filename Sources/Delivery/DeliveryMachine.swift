package import Wire

/// Every decision between a polled record and its committed offset: events in, actions out.
///
/// The machine is a value. It has no clock, thread, socket or lock; time comes in with each event and randomness from a
/// seed, so that the same events always give the same actions, in production and in simulation. The shell around it
/// (`Service`) calls the methods named for events and then picks up what there is to do:
///
/// - `submissions`, by lane;
/// - `outbox`, to produce to Kafka in order;
/// - `pauses` and `resumes` of partitions;
/// - `takeCommits()`, each commit interval;
/// - `takeRelease(at:)`, the partitions that may be given back now;
/// - `events` and `tally`, to count and log.
///
/// A notification's way: `take(_:at:)` → `submissions` → `take(outcomes:at:)` → `outbox` → `take(receipts:at:)`.
package struct DeliveryMachine: Sendable {
  /// The bounds of what is in flight, and of the time that a revocation may take.
  package struct Limits: Sendable {
    package var lanes = 2
    /// How many of them one app may use.
    package var lanesPerApp = 2
    /// Notifications between poll and settlement, and their bytes.
    package var maxInFlight = 20_000
    package var maxInFlightBytes = 32 << 20
    package var maxInFlightPerApp = 5_000
    /// How long all apps may take for their first connections: that they have not answered yet says nothing of them.
    package var startup: Duration = .seconds(1)
    /// How long what is in flight of a revoked partition may take to finish.
    package var revocationTimeout: Duration = .seconds(5)
    /// The most bytes of a commit's metadata; brokers take 4,096 by default.
    package var metadataBytes = LedgerCodec.maximumBytes
    /// The most records of a partition that are remembered beyond its commit point, 16 bytes each. From half of them on
    /// nothing waits in memory that holds the commit point back; beyond them no more is read.
    package var maxTracked = 250_000
    /// How many parked requests of a partition may wait in memory until they are due, so that those behind them in the
    /// partition can be read.
    package var maxEarly = 256
    /// How long another one may have lain there before it is parked anew, at the end of its partition, for the same
    /// time: those behind it wait that long for it and no longer.
    package var parkAnewAfter: Duration = .seconds(60)
    /// At most one request of a record key is out at a time, and they go out in order.
    package var isOrderedByKey = false
    /// How many parked requests are remembered, so that later ones of their keys do not overtake them.
    package var maxRemembered = 100_000

    package init() {}

    /// Where an intake that was stopped at a cap starts again.
    var lowWater: Int { maxInFlight / 4 * 3 }
    var lowWaterBytes: Int { maxInFlightBytes / 4 * 3 }
  }

  /// A partition whose next record waits for its app, or for all together (`nil`), to fall below the cap.
  struct WaitingPlace: Sendable {
    var place: Int
    /// Whose cap it waits for; `nil`: that of all together.
    var app: AppIndex?
    /// The request was parked before. It is waited for where it lies, and others with it; not on the topics of requests.
    var isBack: Bool
  }

  package let limits: Limits
  package var retryPolicy: RetryPolicy
  package internal(set) var apps: AppTable
  /// The names of the topics that are read, by `PartitionID.topic`.
  package let topics: [String]

  var decoder: RequestDecoder
  var encoder: ResultEncoder
  var partitions = Partitions()
  var pushes = PushSlab()
  var waits = WaitQueue()
  var router: Router
  var health: [AppHealth] = []
  /// By app, like `health`.
  var environments: [EnvironmentGuard] = []
  var random: SeededRandom
  var revocation: Revocation?
  var waitingForRoom: [WaitingPlace] = []
  /// When those are to be looked at again, if nothing happens before.
  var roomCheck = Instant.distantFuture
  var patience = IntakePatience()
  var stay = TypicalStay()
  /// Until when an app that has not answered yet is waited for: once, from the first record on.
  var startupEnds: Instant?
  /// Whether there were others with room, and when that was looked at: once a turn, however many apps there are.
  var othersHaveRoom: (at: Instant, Bool)?
  /// Device tokens that are left alone for a while.
  var tokenPauses = TokenPauses()
  var copies: ParkedCopies
  var keys: KeyOrder
  var isIntakeStopped = false
  package internal(set) var isDraining = false
  /// Whether the ends of notifications are told with their traces, which takes time to look up.
  package var namesTraces = false

  package var submissions: [[Submission]]
  package var outbox = Outbox()
  package var pauses: [PartitionID] = []
  package var resumes: [PartitionID] = []
  package var events: [DeliveryEvent] = []
  package var tally = Tally()

  /// - Parameters:
  ///   - limits: the caps on what is in flight, and times.
  ///   - retryPolicy: when and how often a notification is sent again.
  ///   - apps: the configured apps.
  ///   - topics: the names of the topics that are read, in the order in which `PartitionID.topic` counts.
  ///   - deferredTopic: the one among them that parked requests come back from.
  ///   - output: how results and events are written.
  ///   - seed: of all chance: jitter, and which lane.
  package init(
    limits: Limits, retryPolicy: RetryPolicy, apps: AppTable, topics: [String], deferredTopic: String?,
    output: OutputForm = OutputForm(), seed: UInt64
  ) {
    self.limits = limits
    self.retryPolicy = retryPolicy
    self.apps = apps
    self.topics = topics
    self.decoder = RequestDecoder(topics: topics, deferredTopic: deferredTopic)
    self.encoder = ResultEncoder(topics: topics, output: output)
    self.router = Router(laneCount: limits.lanes, lanesPerApp: limits.lanesPerApp)
    self.random = SeededRandom(seed: seed)
    self.keys = KeyOrder(limit: limits.maxRemembered)
    self.copies = ParkedCopies(limit: min(limits.maxRemembered, 20_000))
    self.submissions = Array(repeating: [], count: limits.lanes)
    grow()
  }

  // MARK: What the shell may ask

  /// Notifications between poll and settlement.
  package var inFlight: Int { pushes.countInUse }
  package var inFlightBytes: Int { pushes.bytesInUse }
  /// Bytes of records that were polled and are held until they are due or there is room.
  package var heldBytes: Int { partitions.slots.reduce(0) { $0 + ($1?.heldBytes ?? 0) } }
  /// Those of them that wait in memory to be sent again.
  package var waiting: Int { waits.count }
  /// Notifications of one app between poll and settlement; `nil`: of no known app.
  package func unsettled(of app: AppIndex?) -> Int { pushes.countInUse(of: app) }
  /// Notifications of one app between poll and end: what its cap bounds.
  package func inFlight(of app: AppIndex) -> Int { health[Int(app.value)].inFlight }
  /// Whether the app's breaker is open: it cannot be reached, or its credentials are refused.
  package func isBroken(_ app: AppIndex) -> Bool { health[Int(app.value)].isBroken }
  /// Whether most of the app's tokens are called bad, as by the wrong environment.
  package func isSuspect(_ app: AppIndex) -> Bool { environments[Int(app.value)].isSuspect }
  package var assignedPartitions: [PartitionID] { partitions.assigned }
  /// Whether the consumer was told to pause the partition.
  package func isPaused(_ id: PartitionID) -> Bool { partitions.place(of: id).map { partitions[$0].isPaused } ?? false }

  /// Whether no records are taken up because of what is in flight: in all, or of an app that the next record is for.
  package var isIntakeHeld: Bool { isIntakeStopped || holdsIntake }
  /// Whether what waits for room holds all that would follow. What comes back holds only its own partition.
  private var holdsIntake: Bool { waitingForRoom.contains { !$0.isBack } }
  /// Whether records of a partition are held until there is room.
  package func waitsForRoom(_ id: PartitionID) -> Bool {
    partitions.place(of: id).map { place in waitingForRoom.contains { $0.place == place } } ?? false
  }

  /// How many more records may be polled now; 0 while the intake is paused.
  ///
  /// At a cap the intake stops, and it starts again at three quarters of it, so that it does not flutter. What is held
  /// does not stop it, or what waits for its time would stop the others; but while that is much, a poll brings no more
  /// than 64 KiB of the like: that is what each further partition costs then that must be held.
  package mutating func recordRoom() -> Int {
    if isDraining || holdsIntake { return 0 }
    let room = limits.maxInFlight - inFlight
    if room <= 0 || inFlightBytes >= limits.maxInFlightBytes {
      isIntakeStopped = true
    } else if isIntakeStopped, inFlight <= limits.lowWater, inFlightBytes <= limits.lowWaterBytes {
      isIntakeStopped = false
    }
    if isIntakeStopped { return 0 }
    let held = heldBytes
    guard held > limits.maxInFlightBytes / 4 else { return room }
    let count = partitions.slots.reduce(0) { $0 + ($1?.heldCount ?? 0) }
    return min(room, max(1, 65_536 * count / held))
  }

  /// The next time at which `advance(to:)` has something to do.
  package var nextDeadline: Instant? {
    var next = waits.nextDue ?? .distantFuture
    for place in partitions.indices {
      if let until = partitions.slots[place]?.heldUntil { next = min(next, until) }
    }
    if let revocation { next = min(next, revocation.deadline) }
    if !waitingForRoom.isEmpty { next = min(next, roomCheck) }
    return next == .distantFuture ? nil : next
  }

  // MARK: Time

  /// Sends again what is due, takes up records that were held and are due now.
  package mutating func advance(to moment: Moment) {
    while let slot = waits.popDue(now: moment.instant) {
      guard pushes.contains(slot) else { continue }
      switch pushes[slot].state {
      case .waiting: waitIsOver(slot, at: moment)
      case .publishing: repeatPublications(slot)
      case .free, .submitted: continue
      }
    }
    for place in partitions.indices {
      guard let until = partitions.slots[place]?.heldUntil, until <= moment.instant else { continue }
      partitions[place].heldUntil = nil
      takeHeld(place, at: moment)
      updatePause(place)
    }
    for place in partitions.indices where partitions.slots[place]?.mustThin == true { thin(place, at: moment) }
    takeWaitingForRoom(at: moment)
    takeTurns(at: moment)
  }

  /// Tells the consumer where a partition's pause has changed.
  mutating func updatePause(_ place: Int) {
    let shouldPause = partitions[place].shouldPause
    guard partitions[place].isPaused != shouldPause else { return }
    partitions[place].isPaused = shouldPause
    let id = partitions[place].id
    // What changes to and fro within one turn leaves the consumer as it is: it is told of pauses and resumes apart, and
    // the last word must count.
    if shouldPause {
      if let taken = resumes.firstIndex(of: id) { resumes.remove(at: taken) } else { pauses.append(id) }
    } else {
      if let taken = pauses.firstIndex(of: id) { pauses.remove(at: taken) } else { resumes.append(id) }
    }
  }
}
