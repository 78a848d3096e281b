import CLinux
import Glibc
package import Synchronization
package import Wire

/// One thread that waits for descriptors, timers and work from other threads, and runs their handlers one by one.
///
/// A turn: wait; then descriptors, handed-over work, timers, and last the end-of-turn handlers. It turns at least once
/// a second, so that a watcher can tell a stuck loop by `lastTurn`.
///
/// `@unchecked Sendable` holds because what any thread may touch (`execute`, `stop`, `isCurrent`, the counters) goes
/// through a mutex or atomics, and everything else asserts that it runs on the loop's own thread.
@safe
package final class EventLoop: @unchecked Sendable {
  private struct Inbox {
    var work: [@Sendable () -> Void] = []
    var stopRequested = false
    var ended = false
  }

  private struct Registration {
    var handler: (any EventHandler)?
    /// Raised when the descriptor is given up, so that an event already fetched for an earlier owner is dropped.
    var generation: UInt32 = 0
  }

  /// The thread's name, as `ps -L` and `top -H` show it (15 characters of it).
  package let name: String
  /// Turns made so far; readable from any thread.
  package let turns = Atomic<UInt64>(0)

  private let lastTurnNanoseconds: Atomic<Int64>
  private let inbox = Mutex(Inbox())
  private let owner = Atomic<UInt>(0)
  private var thread: NativeThread?

  private let poller: Int32
  private let waker: Int32
  private var registrations: [Registration] = []
  private var timers = Timers<any TimerHandler>()
  private var turnHandlers: [any TurnHandler] = []
  private var spareTurnHandlers: [any TurnHandler] = []
  private var running: [@Sendable () -> Void] = []
  private var current: Moment
  private let events: UnsafeMutableBufferPointer<epoll_event>

  /// Where streams of this loop read ciphertext (or plain bytes) and decrypt it. Their content holds only within one
  /// callback, so all streams of a loop share them.
  let receiveBuffer: UnsafeMutableRawBufferPointer
  let plainBuffer: UnsafeMutableRawBufferPointer

  private static let eventCapacity = 256
  private static let bufferSize = 64 * 1024
  /// End-of-turn handlers may ask for another pass (output that makes room for more output); after so many, what is
  /// left waits for the next turn, so that descriptors are not starved.
  private static let endOfTurnPasses = 8

  private init(name: String, poller: Int32, waker: Int32) {
    self.name = name
    self.poller = poller
    self.waker = waker
    current = Clock.moment
    lastTurnNanoseconds = Atomic(current.instant.nanoseconds)
    unsafe events = .allocate(capacity: Self.eventCapacity)
    unsafe events.initialize(repeating: epoll_event())
    unsafe receiveBuffer = .allocate(byteCount: Self.bufferSize, alignment: 64)
    unsafe plainBuffer = .allocate(byteCount: Self.bufferSize, alignment: 64)
  }

  deinit {
    Syscalls.close(poller)
    Syscalls.close(waker)
    unsafe events.deallocate()
    unsafe receiveBuffer.deallocate()
    unsafe plainBuffer.deallocate()
  }

  // MARK: From any thread

  /// Starts a loop on a new thread. It runs, and stays alive, until `stop`.
  package static func start(name: String) throws(TransportError) -> EventLoop {
    // A write to a broken pipe or socket must be an error of that call, never the end of the process.
    signal(SIGPIPE, SIG_IGN)
    guard case .value(let poller) = Syscalls.outcome({ epoll_create1(Int32(EPOLL_CLOEXEC)) }) else {
      throw TransportError(.system, name, "epoll_create1", errno: errno)
    }
    guard case .value(let waker) = Syscalls.makeEventDescriptor() else {
      let number = errno
      Syscalls.close(poller)
      throw TransportError(.system, name, "eventfd", errno: number)
    }
    let loop = EventLoop(name: name, poller: poller, waker: waker)
    // Edge-triggered: each write to an eventfd is a new edge, so it never needs to be read.
    if let number = loop.control(EPOLL_CTL_ADD, waker, EPOLLIN.rawValue | EPOLLET.rawValue, generation: 0) {
      throw TransportError(.system, name, "epoll_ctl", errno: number)
    }
    loop.thread = try NativeThread.start(name) { loop.run() }
    return loop
  }

  /// Whether the caller runs on this loop's thread.
  package var isCurrent: Bool { owner.load(ordering: .relaxed) == pthread_self() }

  /// When the last turn began. More than a few seconds ago means that a handler is stuck.
  package var lastTurn: Instant { Instant(nanoseconds: lastTurnNanoseconds.load(ordering: .relaxed)) }

  /// Has the loop run `work` in its next turn, in the order of the calls; one wake-up serves all that wait together.
  ///
  /// - Returns: false if the loop has ended and the work will never run.
  @discardableResult
  package func execute(_ work: @escaping @Sendable () -> Void) -> Bool {
    let (accepted, mustWake) = inbox.withLock { inbox in
      guard !inbox.ended else { return (false, false) }
      inbox.work.append(work)
      return (true, inbox.work.count == 1)
    }
    // The loop's own thread looks into the inbox before it waits.
    if mustWake && !isCurrent { Syscalls.signal(waker) }
    return accepted
  }

  /// Runs what was handed over before, tells the handlers of all descriptors that the loop ended (streams close), and
  /// waits for the thread. Only the first call does anything. Not from the loop's own thread.
  package func stop() {
    precondition(!isCurrent, "a loop cannot wait for its own end")
    let first = inbox.withLock { inbox in
      defer { inbox.stopRequested = true }
      return !inbox.stopRequested
    }
    guard first else { return }
    Syscalls.signal(waker)
    thread?.join()
  }

  /// An event descriptor on this loop: `signal` from any thread, or 8 bytes written to `fileDescriptor` by a C library,
  /// run `handler` on the loop; signals that come together run it once.
  package func makeWakeup(_ handler: @escaping @Sendable () -> Void) throws(TransportError) -> Wakeup {
    guard case .value(let descriptor) = Syscalls.makeEventDescriptor() else {
      throw TransportError(.system, name, "eventfd", errno: errno)
    }
    let wakeup = Wakeup(loop: self, fileDescriptor: descriptor, handler: handler)
    if isCurrent { wakeup.begin() } else { execute { wakeup.begin() } }
    return wakeup
  }

  // MARK: On the loop

  /// The monotonic time at which this turn's work began.
  package var now: Instant { moment.instant }

  /// Both clocks at the beginning of this turn's work.
  package var moment: Moment {
    precondition(isCurrent)
    return current
  }

  /// Watches a descriptor. The loop keeps the handler until `deregister`.
  package func register(
    _ descriptor: Int32, interest: Interest, handler: any EventHandler
  ) throws(TransportError) {
    precondition(isCurrent)
    let index = Int(descriptor)
    while registrations.count <= index { registrations.append(Registration()) }
    precondition(registrations[index].handler == nil, "a descriptor is registered once")
    registrations[index].handler = handler
    if let number = control(EPOLL_CTL_ADD, descriptor, interest.mask, generation: registrations[index].generation) {
      registrations[index].handler = nil
      throw TransportError(.system, name, "epoll_ctl", errno: number)
    }
  }

  /// Changes what a registered descriptor is watched for.
  package func modify(_ descriptor: Int32, interest: Interest) {
    precondition(isCurrent)
    let failed = control(
      EPOLL_CTL_MOD, descriptor, interest.mask, generation: registrations[Int(descriptor)].generation)
    precondition(failed == nil || failed == ENOMEM, "only a registered descriptor can be modified")
  }

  /// Gives a descriptor up, before it is closed. Events that were already fetched for it are dropped.
  package func deregister(_ descriptor: Int32) {
    precondition(isCurrent)
    let index = Int(descriptor)
    guard index < registrations.count, registrations[index].handler != nil else { return }
    _ = control(EPOLL_CTL_DEL, descriptor, 0, generation: 0)
    registrations[index].handler = nil
    registrations[index].generation &+= 1
  }

  /// Sets a timer; it fires once, in the first turn at or after `deadline` (to the millisecond, never early).
  package func schedule(at deadline: Instant, _ handler: any TimerHandler) -> Timer {
    precondition(isCurrent)
    return timers.insert(handler, at: deadline)
  }

  /// The same with a closure; for timers that are set now and then.
  package func schedule(at deadline: Instant, _ work: @escaping () -> Void) -> Timer {
    schedule(at: deadline, TimerClosure(work: work))
  }

  /// Unsets a timer; one that has fired, or nil, is ignored.
  package func cancel(_ timer: Timer?) {
    precondition(isCurrent)
    if let timer { timers.remove(timer) }
  }

  /// Calls `handler.turnEnded()` once at the end of this turn. The caller sees to it that it asks only once a turn.
  package func atEndOfTurn(_ handler: any TurnHandler) {
    precondition(isCurrent)
    turnHandlers.append(handler)
  }

  // MARK: The thread

  private func run() {
    owner.store(pthread_self(), ordering: .relaxed)
    while true {
      let count = wait()
      current = Clock.moment
      lastTurnNanoseconds.store(current.instant.nanoseconds, ordering: .relaxed)
      turns.add(1, ordering: .relaxed)
      for index in 0..<count { unsafe dispatch(events[index]) }
      let stopping = runHandedOver()
      while let (timer, handler) = timers.popDue(current.instant) { handler.timerFired(timer) }
      runTurnHandlers()
      if stopping && turnHandlers.isEmpty { break }
    }
    end()
  }

  private func wait() -> Int {
    let idle = inbox.withLock { $0.work.isEmpty && !$0.stopRequested }
    var milliseconds: Int32 = 0
    if idle && turnHandlers.isEmpty {
      milliseconds = 1000
      if let next = timers.next {
        // Rounded up: a timer must not find its turn a moment too early and spin.
        let left = (next.nanoseconds &- Clock.now.nanoseconds &+ 999_999) / 1_000_000
        milliseconds = Int32(max(0, min(1000, left)))
      }
    }
    switch Syscalls.outcome({ unsafe epoll_wait(poller, events.baseAddress, Int32(events.count), milliseconds) }) {
    case .value(let count): return Int(count)
    case .failed: return 0
    }
  }

  private func dispatch(_ event: epoll_event) {
    let tag = unsafe event.data.u64
    let descriptor = Int32(truncatingIfNeeded: tag & 0xffff_ffff)
    guard descriptor != waker, Int(descriptor) < registrations.count else { return }
    let registration = registrations[Int(descriptor)]
    guard registration.generation == UInt32(tag >> 32), let handler = registration.handler else { return }
    handler.descriptorReady(descriptor, Readiness(mask: unsafe event.events))
  }

  /// Runs the inbox once; work handed over meanwhile waits for the next turn, so that descriptors get theirs.
  private func runHandedOver() -> Bool {
    let stopping = inbox.withLock { inbox in
      swap(&inbox.work, &running)
      return inbox.stopRequested && inbox.work.isEmpty
    }
    for work in running { work() }
    let nothingRan = running.isEmpty
    running.removeAll(keepingCapacity: true)
    // What ran may have handed over more: the loop ends only after a turn in which nothing was left to do.
    return stopping && nothingRan
  }

  private func runTurnHandlers() {
    for _ in 0..<Self.endOfTurnPasses where !turnHandlers.isEmpty {
      swap(&turnHandlers, &spareTurnHandlers)
      for handler in spareTurnHandlers { handler.turnEnded() }
      spareTurnHandlers.removeAll(keepingCapacity: true)
    }
  }

  /// Work that came too late for the last turn still runs; from then on `execute` refuses. Then the handlers hear the
  /// news. What they start on this loop never runs, so it is let go: it would keep the loop for ever.
  private func end() {
    let late = inbox.withLock { inbox in
      inbox.ended = true
      return exchange(&inbox.work, with: [])
    }
    for work in late { work() }
    for index in registrations.indices {
      guard let handler = registrations[index].handler else { continue }
      handler.loopStopped(self)
      deregister(Int32(index))
    }
    // A stream that still looks its host up has no descriptor yet, but a deadline.
    while let (_, handler) = timers.popDue(.distantFuture) {
      if let handler = handler as? any EventHandler { handler.loopStopped(self) }
    }
    runTurnHandlers()
    turnHandlers.removeAll()
    timers = Timers()
    registrations.removeAll()
  }

  /// - Returns: the `errno` of a failure.
  private func control(_ operation: Int32, _ descriptor: Int32, _ mask: UInt32, generation: UInt32) -> Int32? {
    var event = unsafe epoll_event()
    unsafe event.events = mask
    unsafe event.data.u64 = UInt64(generation) << 32 | UInt64(UInt32(bitPattern: descriptor))
    switch Syscalls.outcome({ unsafe epoll_ctl(poller, operation, descriptor, &event) }) {
    case .value: return nil
    case .failed(let number): return number
    }
  }
}
