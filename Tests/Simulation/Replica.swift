import APNs
import Delivery
import Wire

/// One process of the service: a real `DeliveryMachine`, and around it what the service's pipeline does, in the same
/// order, over the simulated Kafka and the simulated Apple.
final class Replica {
  /// An item of a record in a partition.
  struct Part: Hashable {
    var offset: Int64
    var item: Int
  }

  /// The record that an item last came with.
  struct Carrier {
    var partition: PartitionID
    var offset: Int64
    var epoch: Int
    /// How often it had been sent before.
    var attempts: Int
    /// When it may be sent.
    var notBefore: UnixTime
    var storedAt: UnixTime?
  }

  /// A push in the machine as the checks see it.
  struct Tracked {
    var item: Int
    var carrier: Carrier
    var attempts: Int
    /// With a lane.
    var isOut = false
    var awaited: UInt8 = 0
    var refused: UInt8 = 0
  }

  struct Settings {
    var limits: DeliveryMachine.Limits
    var policy: RetryPolicy
    var pool: PoolLimits
    var drainTimeout: Duration
    var pollLimit: Int
    var producerCapacity: Int
    /// The most items that one request has.
    var largestBatch: Int
    /// One replica that keeps its memory: then the order of each key can be checked from the first request to the last.
    var isOrderStrict: Bool
  }

  let id: Int
  let world: World
  let broker: Broker
  let group: Group
  let settings: Settings
  /// The apps that it knows now.
  var apps: AppTable
  var oracle: Oracle { broker.oracle }
  var machine: DeliveryMachine
  var lanes: [[SimulatedLaneApp]] = []
  /// Those that drain after a reload.
  var drainingLaneApps: [SimulatedLaneApp] = []
  var onEnd: () -> Void = {}

  var phase = DrainPhase.running
  var isDead = false
  var owned: [PartitionID: Assigned] = [:]
  var controls: [Control] = []
  var outcomes: [LaneOutcome] = []
  var receipts: [Receipt] = []
  var tracked: [PushSlot: Tracked] = [:]
  var carriers: [Int: Carrier] = [:]
  /// Items that came with more than one record.
  var carriedTwice: Set<Int> = []
  /// Items whose partition was read again from an earlier offset: a push from before outlives the book that it was in.
  var readAgain: Set<Int> = []
  /// Items that a commit named as settled, so that this machine must not send them.
  var covered: Set<Int> = []
  var backlog: [(record: ProducedRecord, ticket: UInt64)] = []
  var outstanding = 0
  var plan: CommitPlan
  /// By when what was revoked must be given back.
  var releaseBound: Instant?
  /// How many copies the machine has let go.
  private var known = 0
  /// Until when what is out of it may finish.
  var releaseDeadline: Instant?
  /// The group has gone on without it; it joins again when it has let go of what it had.
  var isThrownOut = false
  private var timer: Instant?

  enum Control {
    case assign([PartitionID: Int])
    case revoke([PartitionID], isLost: Bool)
  }

  init(
    id: Int, world: World, broker: Broker, group: Group, servers: [AppleServer], settings: Settings, apps: AppTable
  ) {
    self.id = id
    self.world = world
    self.broker = broker
    self.group = group
    self.settings = settings
    self.apps = apps
    plan = CommitPlan(interval: .seconds(1), now: world.now)
    machine = DeliveryMachine(
      limits: settings.limits, retryPolicy: settings.policy, apps: apps, topics: Broker.topics,
      deferredTopic: Broker.topics[Int(Broker.deferred)], seed: world.random.next())
    for _ in 0..<settings.limits.lanes { lanes.append(servers.map(makeLaneApp)) }
  }

  var name: String { "replica \(id)" }
  var isRunning: Bool { if case .running = phase { !isDead } else { false } }

  // MARK: The turn

  func wake(after delay: Duration = .microseconds(200)) { wake(at: world.now + delay) }

  private func wake(at deadline: Instant) {
    guard !isDead, deadline < timer ?? .distantFuture else { return }
    timer = deadline
    world.after(deadline - world.now) { [self] in
      guard timer == deadline else { return }
      timer = nil
      turn()
    }
  }

  private func turn() {
    if isDead { return }
    if case .ended = phase { return }
    let moment = world.moment
    takeOutcomes(moment)
    takeReceipts(moment)
    poll(moment)
    machine.advance(to: moment)
    learnRewinds()
    act()
    commit(moment)
    endPhase(moment)
    act()
    check(moment)
    machine.events.removeAll(keepingCapacity: true)
    if case .ended = phase { return }
    let hasMore = !controls.isEmpty || (hasRecords && backlog.isEmpty && machine.recordRoom() > 0)
    if hasMore { wake(after: .milliseconds(1)) }
    wake(at: max(min(machine.nextDeadline ?? .distantFuture, nextDeadline), moment.instant + .microseconds(100)))
  }

  private var nextDeadline: Instant {
    let deadline = min(mayCommit ? plan.due : .distantFuture, plan.release?.deadline ?? .distantFuture)
    switch phase {
    case .running, .ended: return deadline
    case .draining(let end), .committing(let end, _), .leaving(let end): return min(deadline, end)
    }
  }

  private func takeOutcomes(_ moment: Moment) {
    let taken = outcomes
    outcomes = []
    for outcome in taken { tracked[outcome.slot]?.isOut = false }
    for outcome in taken where outcome.sentAt != nil {
      if case .notSent = outcome.result { continue }
      tracked[outcome.slot]?.attempts += 1
      if case .answered(let response) = outcome.result, response.namesDeadToken, let push = tracked[outcome.slot] {
        oracle[push.item].deaths += 1
      }
    }
    if !taken.isEmpty { machine.take(outcomes: taken, at: moment) }
  }

  /// Does what the machine has decided.
  private func act() {
    // First, so that the checks know what has ended when they see what is sent.
    publish()
    for lane in machine.submissions.indices {
      for submission in machine.submissions[lane] {
        note(submission)
        lanes[lane][Int(submission.app.value)].enqueue(submission)
      }
      machine.submissions[lane].removeAll(keepingCapacity: true)
    }
    for id in machine.pauses { owned[id]?.isPaused = true }
    for id in machine.resumes { owned[id]?.isPaused = false }
    machine.pauses = []
    machine.resumes = []
  }

  private func note(_ submission: Submission) {
    let notification = submission.notification
    guard let item = Oracle.item(ofToken: notification.storage.span.extracting(notification.token.indices)) else {
      world.fail("\(name) sends a token that nobody asked for")
      return
    }
    oracle.submitted(item, apnsID: notification.apnsID, app: Int(submission.app.value))
    world.check(!covered.contains(item), "\(name) sends item \(item), which the commit named as settled")
    if let expiration = notification.expiration, expiration > 0 {
      world.check(world.time.seconds < expiration, "\(name) sends item \(item), which has expired")
    }
    world.check(!apps.isRemoved(submission.app), "\(name) sends item \(item), whose app was removed")
    track(submission.slot, item)
    if !carriedTwice.contains(item), !readAgain.contains(item), let push = tracked[submission.slot] {
      checkCarrier(of: push)
    }
    if settings.limits.isOrderedByKey { checkOrder(of: item) }
    oracle[item].isSent = true
    tracked[submission.slot]?.isOut = true
    if notification.expiration == 0 {
      world.check(
        tracked[submission.slot]?.attempts == 0, "\(name) sends item \(item) again, which asks for one attempt")
    }
  }

  /// What was revoked is let go, and what was parked waits for its time.
  private func checkCarrier(of push: Tracked) {
    let assigned = owned[push.carrier.partition]
    world.check(
      assigned?.epoch == push.carrier.epoch && assigned?.leavingSince ?? world.now == world.now,
      "\(name) sends item \(push.item) of \(push.carrier.partition), which it must give back")
    world.check(world.time >= push.carrier.notBefore, "\(name) sends item \(push.item) before its time")
  }

  /// One request of a key at a time, and in order.
  private func checkOrder(of item: Int) {
    let known = oracle[item]
    guard let key = known.key else { return }
    for push in tracked.values where push.isOut && oracle[push.item].key == key {
      let other = oracle[push.item]
      world.check(
        other.source.partition != known.source.partition || other.source.offset == known.source.offset,
        "\(name) sends item \(item) while item \(push.item) of the same key is out")
      world.check(push.item != item, "\(name) sends item \(item) while it is out")
    }
    guard settings.isOrderStrict, !known.isSent, let before = oracle.firstOpen(before: item) else { return }
    world.fail("\(name) sends item \(item) before item \(before), which has the same key, has ended")
  }

  /// The consumer begins the partition again from its start.
  func rewind() {
    guard let id = broker.partitions.filter({ owned[$0]?.isLeaving == false }).randomElement(using: &world.random)
    else { return }
    reset(id)
    wake()
  }

  func track(_ slot: PushSlot, _ item: Int) {
    guard tracked[slot] == nil else {
      world.check(tracked[slot]?.item == item, "a place in the machine has changed its tenant")
      return
    }
    guard let carrier = carriers[item] else {
      world.fail("\(name) speaks of item \(item), which it never polled")
      return
    }
    tracked[slot] = Tracked(item: item, carrier: carrier, attempts: carrier.attempts)
  }

  // MARK: Checks

  private func check(_ moment: Moment) {
    let spare = settings.largestBatch - 1
    let vitals = machine.vitals()
    world.check(
      vitals.inFlight <= settings.limits.maxInFlight + spare,
      "\(name) has \(vitals.inFlight) in flight, and may have \(settings.limits.maxInFlight)")
    // What was polled at one time for each partition may go beyond it, and no record here has more than 600 bytes.
    world.check(
      vitals.bytes <= settings.limits.maxInFlightBytes + broker.partitions.count * settings.pollLimit * 600,
      "\(name) has \(vitals.bytes) bytes in flight, and may have \(settings.limits.maxInFlightBytes)")
    for app in apps.active {
      let count = vitals.inFlightOfApps[Int(app.value)]
      world.check(
        count >= 0 && count <= settings.limits.maxInFlightPerApp + spare,
        "\(name) has \(count) of app \(app.value) in flight, and may have \(settings.limits.maxInFlightPerApp)")
    }
    if machine.tally.known + machine.tally.alreadySettled != known {
      // Copies were let go, and need not be waited for.
      forgetDue()
      known = machine.tally.known + machine.tally.alreadySettled
    }
    for (id, assigned) in owned where !assigned.isLeaving {
      world.check(
        vitals.paused.contains(id) == assigned.isPaused, "\(name) and its consumer disagree on the pause of \(id)")
      // While it waits for room, it has not looked at the next record.
      guard isRunning, settings.limits.maxEarly == 0, assigned.notBefore > moment.time, vitals.room > 0,
        !vitals.waiting.contains(id)
      else { continue }
      world.check(assigned.isPaused, "\(name) goes on polling \(id), though its next record is not due")
    }
    checkRelease()
    if let releaseBound {
      world.check(moment.instant <= releaseBound, "\(name) has not given back what was revoked")
    }
    if case .running = phase {} else { checkEnd(moment) }
  }

  private func checkEnd(_ moment: Moment) {
    guard let drainBound else { return }
    world.check(moment.instant <= drainBound, "\(name) does not end its drain")
  }

  var drainBound: Instant?

  // MARK: The end

  /// Killed: all that it had in memory is gone.
  func crash() {
    world.note("\(name) crashes")
    isDead = true
    for app in allLaneApps { app.vanish() }
    group.crashed(self)
  }

  func drain() {
    guard case .running = phase, !isDead else { return }
    world.note("\(name) drains")
    let deadline = world.now + settings.drainTimeout
    phase = .draining(deadline: deadline)
    drainBound = deadline + .seconds(8)
    machine.beginDrain(at: world.moment)
    for app in allLaneApps { app.drain(by: deadline) }
    wake()
  }

  private func endPhase(_ moment: Moment) {
    if isRunning { return }
    let view = DrainPhase.View(
      isIdle: machine.isIdle && outstanding == 0 && backlog.isEmpty, isJoining: group.isJoining(self),
      isCommitted: plan.isIdle && machine.isAllCommitted, hasLeft: owned.isEmpty && controls.isEmpty)
    switch phase.advance(view, now: moment.instant) {
    case nil: break
    case .commit:
      plan.hurry(now: moment.instant)
      commit(moment)
    case .leave:
      group.leave(self)
      wake()
    case .end:
      world.note("\(name) ends")
      phase = .ended
      isDead = true
      for app in allLaneApps { app.vanish() }
      group.crashed(self)
      onEnd()
    }
  }
}

extension DeliveryMachine {
  /// What the checks after each turn ask.
  struct Vitals {
    var inFlight: Int
    var bytes: Int
    var inFlightOfApps: [Int]
    var paused: [PartitionID]
    var waiting: [PartitionID]
    var room: Int
  }

  /// Reads them in place: a method that does not mutate, called on a class's property, would have the machine copied.
  mutating func vitals() -> Vitals {
    Vitals(
      inFlight: inFlight, bytes: inFlightBytes,
      inFlightOfApps: (0..<apps.count).map { inFlight(of: AppIndex(Int32($0))) },
      paused: assignedPartitions.filter { isPaused($0) }, waiting: assignedPartitions.filter { waitsForRoom($0) },
      room: recordRoom())
  }
}
