import APNs
import Delivery
import Synchronization
import Transport
import Wire

/// One event loop that owns connections to APNs: the shell around the pools of all apps that send here.
///
/// Submissions come in and outcomes go out in batches: one lock and one wake-up each. Everything else happens on the
/// loop's own thread. What is submitted during a turn goes out at the turn's end, many frames in one TLS record.
///
/// `@unchecked Sendable` holds because all state but the inbox is touched on the loop alone, which is asserted.
final class Lane: @unchecked Sendable {
  /// Takes a batch of outcomes and leaves the array empty; called on the lane's loop.
  typealias OutcomeSink = @Sendable (inout [LaneOutcome]) -> Void

  let index: LaneIndex
  let loop: EventLoop
  let requestTimeout: Duration
  let metrics: MetricShard
  let log: Log
  private let deliver: OutcomeSink
  private let inbox = Mutex<[Submission]>([])
  private var wakeup: Wakeup?

  private var batch: [Submission] = []
  private var outcomes: [LaneOutcome] = []
  /// The apps that take submissions, by index.
  private var apps: [LaneApp?] = []
  /// Those, and the ones that drain after a reload; a request knows its app by its seat.
  private var seats: [LaneApp?] = []
  private var freeSeats: [Int32] = []
  /// Apps whose pool must be looked at before this turn ends.
  private var dirty: [LaneApp] = []
  private var isTurnScheduled = false
  private var timer: (deadline: Instant, timer: Timer)?
  private var drainDeadline: Instant?
  var requests = RequestTable()
  var ownHeaders = HeaderList()

  /// - Throws: when the loop cannot be started.
  init(
    index: LaneIndex, requestTimeout: Duration, metrics: MetricShard, log: Log, deliver: @escaping OutcomeSink
  ) throws(TransportError) {
    self.index = index
    self.requestTimeout = requestTimeout
    self.metrics = metrics
    self.log = log
    self.deliver = deliver
    loop = try EventLoop.start(name: "lane-\(index.value)")
    // Not `weak`: an object that has had a weak reference pays for it at each of the lane's many others. Whoever made the
    // lane stops it before letting go of it.
    wakeup = try loop.makeWakeup { [unowned self] in takeInbox() }
  }

  /// Hands a batch over, from any thread; leaves the array empty with its memory.
  func submit(_ submissions: inout [Submission]) {
    guard !submissions.isEmpty else { return }
    let wasEmpty = inbox.withLock { inbox in
      let wasEmpty = inbox.isEmpty
      if wasEmpty { swap(&inbox, &submissions) } else { inbox.append(contentsOf: submissions) }
      return wasEmpty
    }
    submissions.removeAll(keepingCapacity: true)
    if wasEmpty { wakeup?.signal() }
  }

  /// Makes an app known, or replaces what it is sent with: what waits goes out on new connections, and those that are
  /// open finish and close. From any thread.
  func install(_ runtime: AppRuntime, at app: AppIndex) {
    loop.execute { [self] in
      guard drainDeadline == nil else { return }
      let index = Int(app.value)
      while apps.count <= index { apps.append(nil) }
      let next = LaneApp(index: app, seat: freeSeats.popLast() ?? Int32(seats.count), runtime: runtime, lane: self)
      if next.seat == seats.count { seats.append(next) } else { seats[Int(next.seat)] = next }
      let former = exchange(&apps[index], with: next)
      guard let former else { return }
      next.takePending(of: former)
      former.drain(by: loop.now + requestTimeout)
    }
  }

  /// Sends back what waits for an app that was removed; its open requests finish, and its connections close. From any
  /// thread.
  func remove(at app: AppIndex) {
    loop.execute { [self] in
      let index = Int(app.value)
      guard index < apps.count else { return }
      exchange(&apps[index], with: nil)?.drain(by: loop.now + requestTimeout)
    }
  }

  /// Returns when all that was asked for before has been done, or never will be.
  func caughtUp() async {
    await withCheckedContinuation { continuation in
      if !loop.execute({ continuation.resume() }) { continuation.resume() }
    }
  }

  /// Sends back what has not been sent yet, lets open requests finish, and closes the connections; from any thread.
  func drain(by deadline: Instant) {
    loop.execute { [self] in
      drainDeadline = deadline
      for app in seats { app?.drain(by: deadline) }
    }
  }

  /// Ends the loop and all connections; not from the lane's own thread.
  func stop() {
    wakeup?.cancel()
    loop.stop()
  }

  // MARK: On the loop

  private func takeInbox() {
    inbox.withLock { swap(&$0, &batch) }
    for submission in batch {
      guard drainDeadline == nil else {
        report(LaneOutcome(slot: submission.slot, result: .notSent(.draining), sentAt: nil, completedAt: loop.now))
        continue
      }
      let index = Int(submission.app.value)
      guard index < apps.count, let app = apps[index] else {
        report(LaneOutcome(slot: submission.slot, result: .notSent(.credentials), sentAt: nil, completedAt: loop.now))
        continue
      }
      app.enqueue(submission)
    }
    batch.removeAll(keepingCapacity: true)
  }

  /// An outcome goes out at the end of the turn.
  func report(_ outcome: LaneOutcome) {
    outcomes.append(outcome)
    scheduleTurn()
  }

  /// Has an app looked at before the turn ends.
  func touch(_ app: LaneApp) {
    guard !app.isTouched else { return }
    app.isTouched = true
    dirty.append(app)
    scheduleTurn()
  }

  private func scheduleTurn() {
    guard !isTurnScheduled else { return }
    isTurnScheduled = true
    loop.atEndOfTurn(self)
  }

  /// Sets the one timer of the lane to the earliest of all deadlines; a timer that fires early does no harm.
  func wake(at deadline: Instant) {
    guard deadline != .distantFuture else { return }
    if let timer {
      guard deadline < timer.deadline else { return }
      loop.cancel(timer.timer)
    }
    timer = (deadline, loop.schedule(at: deadline, self))
  }

  private func vacate(_ app: LaneApp) {
    guard seats[Int(app.seat)] === app else { return }
    seats[Int(app.seat)] = nil
    freeSeats.append(app.seat)
  }

  private func timeOutRequests() {
    let limit = loop.now
    while let first = requests.first, first.sentAt + requestTimeout <= limit {
      guard let request = requests.remove(first.tag) else { continue }
      if let app = seats[Int(request.seat)] {
        app.timedOut(request, tag: first.tag)
      } else {
        // An app keeps its seat until its connections have ended, and their requests with them. If one were left, its
        // end must be told all the same.
        report(LaneOutcome(slot: request.slot, result: .timedOut, sentAt: request.sentAt, completedAt: limit))
      }
    }
  }
}

extension Lane: TurnHandler, TimerHandler {
  func turnEnded() {
    isTurnScheduled = false
    // Looking at one app may touch another turn's worth of work; that waits for the next turn.
    let touched = dirty
    dirty.removeAll(keepingCapacity: true)
    for app in touched {
      app.isTouched = false
      app.pump()
      if app.isFinished { vacate(app) }
    }
    if let first = requests.first { wake(at: first.sentAt + requestTimeout) }
    if !outcomes.isEmpty { deliver(&outcomes) }
  }

  func timerFired(_ timer: Timer) {
    self.timer = nil
    timeOutRequests()
    for app in seats { app?.tick() }
    scheduleTurn()
  }
}
