import Glibc
import Wire

/// What a stream waits for before it has a descriptor.
protocol Connecting: AnyObject {
  /// For the message when the deadline passes.
  var waitsFor: String { get }
  func cancel()
}

/// Makes one TCP connection: looks the host up, tries its addresses in turn, each with a head start of 250 ms over the
/// next (RFC 8305, section 5, in simple form), and keeps the first that answers.
///
/// `@unchecked Sendable` holds because every method runs on the loop; only the reference crosses threads.
final class Connector: Connecting, EventHandler, TimerHandler, @unchecked Sendable {
  typealias Completion = (Result<Int32, TransportError>) -> Void

  private let loop: EventLoop
  private let endpoint: Endpoint
  private var completion: Completion?
  private var waiting: ArraySlice<SocketAddress> = []
  private var attempts: [(descriptor: Int32, address: SocketAddress)] = []
  private var headStart: Timer?
  private var failure: TransportError?

  private static let headStartOfEach = Duration.milliseconds(250)

  /// `completion` is called once, on the loop, never inside this call, unless `cancel` comes first. It owns the
  /// descriptor then. Whoever waits keeps the deadline.
  init(loop: EventLoop, endpoint: Endpoint, completion: @escaping Completion) {
    self.loop = loop
    self.endpoint = endpoint
    self.completion = completion
    if let path = endpoint.path {
      loop.execute { self.start(unixPath: path) }
    } else {
      Resolver.resolve(endpoint.host, port: endpoint.port, on: loop) { [weak self] in self?.resolved($0) }
    }
  }

  /// The same for addresses that are known.
  init(loop: EventLoop, addresses: [SocketAddress], of endpoint: Endpoint, completion: @escaping Completion) {
    self.loop = loop
    self.endpoint = endpoint
    self.completion = completion
    loop.execute { self.resolved(.success(addresses)) }
  }

  var waitsFor: String { attempts.isEmpty ? "look-up" : "connect" }

  func cancel() {
    completion = nil
    closeAttempts()
  }

  private func start(unixPath path: String) {
    if let address = SocketAddress(path: path) {
      resolved(.success([address]))
    } else {
      resolved(.failure(TransportError(.connect, endpoint.description, "the path is too long for a socket")))
    }
  }

  private func resolved(_ answer: Resolver.Answer) {
    guard completion != nil else { return }
    switch answer {
    case .success(let addresses):
      waiting = addresses[...]
      startNext()
    case .failure(let error):
      finish(.failure(error))
    }
  }

  /// Starts attempts until one is under way or none is left.
  private func startNext() {
    loop.cancel(headStart)
    headStart = nil
    while let address = waiting.popFirst() {
      switch Socket.make(family: address.family) {
      case .failed(let number):
        note(number, address)
      case .value(let descriptor):
        if begin(descriptor, address) { return }
      }
      if completion == nil { return }
    }
    if attempts.isEmpty { finish(.failure(failure ?? TransportError(.connect, endpoint.description, "no address"))) }
  }

  /// - Returns: whether the attempt is under way (or the matter settled), so that no other need be started now.
  private func begin(_ descriptor: Int32, _ address: SocketAddress) -> Bool {
    switch Socket.connect(descriptor, to: address) {
    case .value:
      finish(.success(descriptor))
      return true
    case .failed(let number) where number == EINPROGRESS:
      do {
        try loop.register(descriptor, interest: .writable, handler: self)
      } catch {
        Syscalls.close(descriptor)
        failure = error
        return false
      }
      attempts.append((descriptor, address))
      if !waiting.isEmpty { headStart = loop.schedule(at: loop.now + Self.headStartOfEach, self) }
      return true
    case .failed(let number):
      Syscalls.close(descriptor)
      note(number, address)
      return false
    }
  }

  private func note(_ number: Int32, _ address: SocketAddress) {
    failure = TransportError(.connect, endpoint.description, "connect to \(address.description)", errno: number)
  }

  func timerFired(_ timer: Timer) { startNext() }

  func descriptorReady(_ descriptor: Int32, _ readiness: Readiness) {
    guard let index = attempts.firstIndex(where: { $0.descriptor == descriptor }) else { return }
    let attempt = attempts.remove(at: index)
    loop.deregister(descriptor)
    let number = Socket.pendingError(descriptor)
    if number == 0 {
      finish(.success(descriptor))
    } else {
      Syscalls.close(descriptor)
      note(number, attempt.address)
      startNext()
    }
  }

  func loopStopped(_ loop: EventLoop) {
    finish(.failure(TransportError(.cancelled, endpoint.description, "the loop was stopped")))
  }

  private func finish(_ result: Result<Int32, TransportError>) {
    closeAttempts()
    let completion = exchange(&completion, with: nil)
    completion?(result)
  }

  private func closeAttempts() {
    loop.cancel(headStart)
    headStart = nil
    waiting = []
    for attempt in attempts {
      loop.deregister(attempt.descriptor)
      Syscalls.close(attempt.descriptor)
    }
    attempts.removeAll()
  }
}
