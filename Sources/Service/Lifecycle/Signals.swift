internal import Glibc
internal import Synchronization
internal import Transport

/// What a signal asks of the service.
package enum SignalRequest: Sendable, Equatable {
  /// SIGTERM or SIGINT for the first time: finish what is in flight, then end.
  case drain
  /// SIGTERM or SIGINT again: end at once.
  case exitNow(signal: Int32)
  /// SIGHUP: read the configuration again.
  case reload
}

/// Tells the first request to stop from the second.
package struct SignalPolicy: Sendable {
  private var isDraining = false

  package init() {}

  /// - Returns: `nil` for a signal that asks for nothing.
  package mutating func receive(_ signal: Int32) -> SignalRequest? {
    switch signal {
    case SIGHUP: return .reload
    case SIGTERM, SIGINT:
      if isDraining { return .exitNow(signal: signal) }
      isDraining = true
      return .drain
    default: return nil
    }
  }
}

/// Catches SIGTERM, SIGINT and SIGHUP for the whole process, and ignores SIGPIPE.
///
/// The handler does nothing but write the signal's number into a pipe; a thread of its own reads it there and acts.
/// Unlike signals that are blocked and waited for, this does not depend on which threads run already: a library's
/// thread that was started earlier, with its own mask, cannot let the default action end the process.
package enum Signals {
  /// The pipe's end that the handler writes to; -1 until it is installed.
  private static let writeEnd = Atomic<Int32>(-1)

  /// Installs the handlers; call it before anything else, and once. A second call changes nothing and gives `nil`.
  ///
  /// A second request to stop ends the process on the spot, with 128 and the signal's number as the status: even when
  /// nobody listens any more.
  ///
  /// - Returns: the requests, in the order of the signals.
  package static func install() -> AsyncStream<SignalRequest>? {
    let (stream, continuation) = AsyncStream.makeStream(of: SignalRequest.self)
    let isInstalled = install { request in
      if case .exitNow(let signal) = request { _exit(128 + signal) }
      continuation.yield(request)
    }
    return isInstalled ? stream : nil
  }

  /// The same with a callback, which is run on the thread that waits for signals; it decides what a second request does.
  ///
  /// - Returns: whether the handlers are in place now because of this call.
  package static func install(_ handle: @escaping @Sendable (SignalRequest) -> Void) -> Bool {
    var ends: [Int32] = [-1, -1]
    guard unsafe pipe(&ends) == 0 else { return false }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    guard writeEnd.compareExchange(expected: -1, desired: ends[1], ordering: .sequentiallyConsistent).exchanged else {
      close(ends[0])
      close(ends[1])
      return false
    }
    // A full pipe must not stop the handler: a signal more or less does not matter then.
    _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
    let readEnd = ends[0]
    guard let thread = try? NativeThread.start("signals", { read(from: readEnd, handle) }) else { return false }
    thread.detach()
    var action = sigaction()
    unsafe action.__sigaction_handler.sa_handler = { signal in Signals.note(signal) }
    action.sa_flags = SA_RESTART
    for signal in [SIGTERM, SIGINT, SIGHUP] { _ = unsafe sigaction(signal, &action, nil) }
    unsafe action.__sigaction_handler.sa_handler = SIG_IGN
    _ = unsafe sigaction(SIGPIPE, &action, nil)
    return true
  }

  /// Waits for the numbers of signals, on a thread of its own.
  private static func read(from readEnd: Int32, _ handle: @Sendable (SignalRequest) -> Void) {
    var policy = SignalPolicy()
    var byte: UInt8 = 0
    while true {
      let count = unsafe Glibc.read(readEnd, &byte, 1)
      if count < 0 && errno == EINTR { continue }
      guard count == 1 else { return }
      if let request = policy.receive(Int32(byte)) { handle(request) }
    }
  }

  /// Runs inside the handler: only what is safe there (signal-safety(7)). `errno` is put back for whoever was
  /// interrupted.
  private static func note(_ signal: Int32) {
    let before = errno
    var byte = UInt8(truncatingIfNeeded: signal)
    _ = unsafe write(writeEnd.load(ordering: .relaxed), &byte, 1)
    errno = before
  }
}
