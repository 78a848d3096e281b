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
  private var apps: [LaneApp?] = []
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
    wakeup = try loop.makeWakeup { [weak self] in self?.takeInbox() }
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

  /// Makes an app known, or gives it new credentials or another server; from any thread.
  func install(_ runtime: AppRuntime, at app: AppIndex) {
    loop.execute { [self] in
      let index = Int(app.value)
      while apps.count <= index { apps.append(nil) }
      if let known = apps[index] {
        known.replace(with: runtime)
      } else {
        apps[index] = LaneApp(index: app, runtime: runtime, lane: self)
      }
    }
  }

  /// Sends back what has not been sent yet, lets open requests finish, and closes the connections; from any thread.
  func drain(by deadline: Instant) {
    loop.execute { [self] in
      drainDeadline = deadline
      for app in apps { app?.drain(by: deadline) }
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

  private func timeOutRequests() {
    let limit = loop.now
    while let first = requests.first, first.sentAt + requestTimeout <= limit {
      guard let request = requests.remove(first.tag), let app = apps[Int(request.app)] else { continue }
      app.timedOut(request, tag: first.tag)
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
    }
    if let first = requests.first { wake(at: first.sentAt + requestTimeout) }
    if !outcomes.isEmpty { deliver(&outcomes) }
  }

  func timerFired(_ timer: Timer) {
    self.timer = nil
    timeOutRequests()
    for app in apps { app?.tick() }
    scheduleTurn()
  }
}
