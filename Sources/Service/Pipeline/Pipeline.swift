import Delivery
import Kafka
import Synchronization
import Transport
import Wire

/// The shell around the `DeliveryMachine`: one event loop on which records come in, outcomes and receipts come back,
/// and everything that the machine decides is done.
///
/// A turn is the way of a batch: outcomes, receipts, records, time; then submissions, publications, pauses, commits.
/// Kafka and the lanes wake the loop, and a timer stands for the machine's next deadline. Only an assignment waits, for
/// the offsets that the group has committed.
///
/// `@unchecked Sendable` holds because all state but `outcomeInbox` is touched on the loop alone.
final class Pipeline: @unchecked Sendable {
  /// Records polled at a time: large enough to make hand-overs cheap, small enough to keep outcomes flowing.
  private static let batchLimit = 1024
  /// How long the committed offsets of an assignment are waited for. Within it nothing else moves; the group waits as
  /// well, and without the offsets' metadata what was settled beyond them would be repeated.
  private static let offsetsTimeout: Duration = .seconds(5)

  let loop: EventLoop
  private let lanes: [Lane]
  private let consumer: Consumer
  private var publisher: Publisher
  private var machine: DeliveryMachine
  private var commits: CommitPlan
  private var observer: PipelineObserver
  private let outcomeInbox: OutcomeInbox
  private let onEnd: @Sendable (Service.End) -> Void
  private var phase = DrainPhase.running

  private var wakeups: [Wakeup] = []
  private var again: Wakeup?
  private var isTurnScheduled = false
  private var timer: (deadline: Instant, timer: Timer)?
  private var records: [Record] = []
  private var outcomes: [LaneOutcome] = []

  /// - Parameters:
  ///   - outcomeInbox: where the lanes put their outcomes.
  ///   - onEnd: called once, on the loop, when the pipeline has ended.
  init(
    loop: EventLoop, lanes: [Lane], consumer: Consumer, publisher: consuming Publisher, machine: DeliveryMachine,
    commitInterval: Duration, outcomeInbox: OutcomeInbox, observer: PipelineObserver,
    onEnd: @escaping @Sendable (Service.End) -> Void
  ) throws(TransportError) {
    self.loop = loop
    self.lanes = lanes
    self.consumer = consumer
    self.publisher = publisher
    self.machine = machine
    self.commits = CommitPlan(interval: commitInterval, now: ServiceClock.now().instant)
    self.outcomeInbox = outcomeInbox
    self.observer = observer
    self.onEnd = onEnd
    let consumed = try loop.makeWakeup { [weak self] in self?.scheduleTurn() }
    let produced = try loop.makeWakeup { [weak self] in self?.scheduleTurn() }
    let answered = try loop.makeWakeup { [weak self] in self?.scheduleTurn() }
    again = try loop.makeWakeup { [weak self] in self?.scheduleTurn() }
    wakeups = [consumed, produced, answered]
    // On the loop: the first wake-up may begin a turn while others are still being set.
    loop.execute { [self] in
      self.consumer.wake(fileDescriptor: consumed.fileDescriptor)
      self.publisher.wake(fileDescriptor: produced.fileDescriptor)
      outcomeInbox.wake(answered)
      scheduleTurn()
    }
  }

  /// Stops the intake, finishes what is out within `timeout`, commits and leaves the group; from any thread.
  func drain(within timeout: Duration) {
    loop.execute { [self] in
      guard case .running = phase else { return }
      let deadline = loop.now + timeout
      phase = .draining(deadline: deadline)
      machine.beginDrain(at: loop.moment)
      for lane in lanes { lane.drain(by: deadline) }
      scheduleTurn()
    }
  }

  /// Takes a new table of apps, and has the lanes let go of those that were removed; from any thread. Returns when that
  /// is done.
  ///
  /// The lanes must have what they need of apps that are new or changed. Removed ones are taken from them here, after the
  /// last submission for them.
  func update(_ update: AppsUpdate) async {
    await withCheckedContinuation { continuation in
      let isAccepted = loop.execute { [self] in
        machine.update(apps: update.table, renewed: update.renewed, at: loop.moment)
        observer.update(update)
        for app in update.removed { for lane in lanes { lane.remove(at: app) } }
        scheduleTurn()
        continuation.resume()
      }
      if !isAccepted { continuation.resume() }
    }
  }

  // MARK: The turn

  private func scheduleTurn() {
    guard !isTurnScheduled else { return }
    isTurnScheduled = true
    loop.atEndOfTurn(self)
  }

  private func turn() {
    if case .ended = phase { return }
    let moment = loop.moment
    takeOutcomes(moment)
    takeReceipts(moment)
    poll(moment)
    machine.advance(to: moment)
    act(moment)
    commit(moment)
    endPhase(moment)
    observer.note(&machine, consumer: consumer, queued: publisher.queued, at: moment)
    if case .ended = phase {
      // The process ends now: it does not wait for what nobody answers.
      if !consumer.isClosed { consumer.abandon() }
    } else {
      scheduleNext(moment)
    }
  }

  private func takeOutcomes(_ moment: Moment) {
    outcomeInbox.take(into: &outcomes)
    guard !outcomes.isEmpty else { return }
    machine.take(outcomes: outcomes, at: moment)
    outcomes.removeAll(keepingCapacity: true)
  }

  private func takeReceipts(_ moment: Moment) {
    let (receipts, error) = publisher.takeReceipts(limit: 4 * Self.batchLimit, now: moment.instant)
    if !receipts.isEmpty { machine.take(receipts: receipts, at: moment) }
    if let error { observer.kafkaError(error, of: .producer, at: moment.instant) }
    for change in publisher.advance(to: moment.instant) {
      observer.note(change)
      if case .lost(let error) = change { end(.failed("the Kafka producer cannot go on: \(error)")) }
    }
    for change in publisher.takeOutputChanges(now: moment.instant) { observer.note(change) }
  }

  /// Polls records while there is room, and control events in any case.
  private func poll(_ moment: Moment) {
    let room = publisher.isBlocked ? 0 : min(machine.recordRoom(), Self.batchLimit)
    let event = consumer.poll(into: &records, limit: room)
    if !records.isEmpty {
      machine.take(records, at: moment)
      records.removeAll(keepingCapacity: true)
    }
    for end in consumer.ends { if let offset = end.offset { machine.reachedEnd(of: end.partition, at: offset) } }
    if let event { handle(event, moment) }
  }

  /// Does what the machine has decided.
  private func act(_ moment: Moment) {
    for (index, lane) in lanes.enumerated() { lane.submit(&machine.submissions[index]) }
    publisher.publish(&machine.outbox, now: moment.instant)
    if !machine.pauses.isEmpty || !machine.resumes.isEmpty {
      do {
        try consumer.pause(machine.pauses)
        try consumer.resume(machine.resumes)
      } catch {
        observer.kafkaError(error, of: .consumer, at: loop.now)
      }
      machine.pauses.removeAll()
      machine.resumes.removeAll()
    }
  }

  /// Sleeps until something happens; goes on at once while Kafka's queues are not empty, since they announce only that
  /// they are no longer empty.
  private func scheduleNext(_ moment: Moment) {
    let canPoll = consumer.hasRecords && !publisher.isBlocked && machine.recordRoom() > 0
    if canPoll || publisher.hasMore || consumer.hasControlEvents { again?.signal() }
    let next = min(
      machine.nextDeadline ?? .distantFuture, moment.instant + .milliseconds(100),
      mayCommit ? commits.due : .distantFuture)
    if let timer {
      guard next < timer.deadline || timer.deadline <= moment.instant else { return }
      loop.cancel(timer.timer)
    }
    timer = (next, loop.schedule(at: next, self))
  }
}

extension Pipeline: TurnHandler, TimerHandler {
  func turnEnded() {
    isTurnScheduled = false
    turn()
  }

  func timerFired(_ timer: Timer) {
    self.timer = nil
    scheduleTurn()
  }
}

// MARK: - The group: assignment, revocation, commits

extension Pipeline {
  private func handle(_ event: ConsumerEvent, _ moment: Moment) {
    switch event {
    case .assign(let partitions): assign(partitions)
    case .revoke(let partitions, let isLost):
      observer.revoked(partitions, isLost: isLost)
      let timeout = phase.timeToFinish(machine.limits.revocationTimeout, now: moment.instant)
      machine.revoke(partitions, isLost: isLost, within: timeout, at: moment)
    case .committed(let result):
      let all = commits.answered(result.ticket)
      let failed = result.error != nil ? all : result.entries.filter { $0.error != nil }.map(\.partition)
      for id in failed { machine.commitFailed(id) }
      observer.committed(result, failed: failed)
    case .error(let error):
      observer.kafkaError(error, of: .consumer, at: loop.now)
      if let fatal = consumer.fatalError { end(.failed("the Kafka consumer cannot go on: \(fatal)")) }
    }
  }

  /// Begins where the group has committed, and skips what the commit's metadata names as settled.
  private func assign(_ partitions: [PartitionID]) {
    var committed: [CommittedOffset] = []
    do {
      committed = try consumer.committed(partitions, timeout: Self.offsetsTimeout)
    } catch {
      // Without the metadata nothing is skipped: repeats, no loss. The library itself finds the offsets.
      observer.kafkaError(error, of: .consumer, at: loop.now)
    }
    let known = Dictionary(committed.map { ($0.partition, $0) }, uniquingKeysWith: { first, _ in first })
    machine.assign(
      partitions.map { id in
        (id, known[id].flatMap { entry in entry.offset.map { ($0, entry.metadata) } })
      })
    do {
      try consumer.assign(partitions.map { StartingPoint(partition: $0, offset: known[$0]?.offset) })
    } catch {
      observer.kafkaError(error, of: .consumer, at: loop.now)
    }
    observer.assigned(partitions)
    for id in partitions { observer.began(id, at: known[id]?.offset) }
  }

  private func commit(_ moment: Moment) {
    if let release = machine.takeRelease(at: moment) {
      let ticket = send(release.commits)
      commits.release(release.partitions, after: ticket, now: moment.instant)
    }
    if let partitions = commits.takeRelease(now: moment.instant) {
      do {
        try consumer.unassign(partitions)
      } catch {
        observer.kafkaError(error, of: .consumer, at: loop.now)
      }
    }
    guard mayCommit, commits.isDue(now: moment.instant) else { return }
    send(machine.takeCommits())
  }

  private var mayCommit: Bool { phase.mayCommit(isJoining: consumer.isJoining) }

  @discardableResult
  private func send(_ offsets: [OffsetCommit]) -> UInt64 {
    let ticket = commits.begin(offsets.map(\.partition))
    guard !offsets.isEmpty else { return ticket }
    do {
      try consumer.commit(offsets, ticket: ticket)
    } catch {
      for id in commits.answered(ticket) { machine.commitFailed(id) }
      observer.commitNotSent(error)
    }
    return ticket
  }
}

// MARK: - The end

extension Pipeline {
  /// Does the next step towards the end, when it is time for it.
  private func endPhase(_ moment: Moment) {
    if case .running = phase { return }
    let view = DrainPhase.View(
      isIdle: machine.isIdle && publisher.isIdle, isJoining: consumer.isJoining,
      isCommitted: commits.isIdle && machine.isAllCommitted, hasLeft: consumer.isClosed)
    switch phase.advance(view, now: moment.instant) {
    case nil: break
    case .commit:
      commits.hurry(now: moment.instant)
      commit(moment)
    case .leave:
      do {
        try consumer.close()
        again?.signal()
      } catch {
        observer.kafkaError(error, of: .consumer, at: loop.now)
        end(.drained(unfinished: machine.inFlight))
      }
    case .end:
      end(.drained(unfinished: machine.inFlight))
    }
  }

  private func end(_ end: Service.End) {
    if case .ended = phase { return }
    phase = .ended
    if let timer { loop.cancel(timer.timer) }
    timer = nil
    onEnd(end)
  }
}

/// What a reload changes of the apps.
struct AppsUpdate: Sendable {
  var table: AppTable
  /// Apps that the lanes have new credentials or another server for, new apps among them.
  var renewed: [AppIndex]
  var removed: [AppIndex]
  /// The names of the configured apps.
  var names: [String]
  /// Those of them about whose credentials nothing has changed.
  var unchanged: Set<String>
}

/// Where the lanes put their outcomes for the pipeline: one lock and one wake-up a batch.
final class OutcomeInbox: Sendable {
  private struct State {
    var outcomes: [LaneOutcome] = []
    var wakeup: Wakeup?
  }

  private let state = Mutex(State())

  func wake(_ wakeup: Wakeup) { state.withLock { $0.wakeup = wakeup } }

  /// From any thread; leaves the array empty with its memory.
  func put(_ outcomes: inout [LaneOutcome]) {
    let wakeup: Wakeup? = state.withLock { state in
      let wasEmpty = state.outcomes.isEmpty
      if wasEmpty { swap(&state.outcomes, &outcomes) } else { state.outcomes.append(contentsOf: outcomes) }
      return wasEmpty ? state.wakeup : nil
    }
    outcomes.removeAll(keepingCapacity: true)
    wakeup?.signal()
  }

  /// - Parameter outcomes: empty; its memory is used for the next batch.
  func take(into outcomes: inout [LaneOutcome]) {
    state.withLock { swap(&$0.outcomes, &outcomes) }
  }
}
