import CLinux
import Glibc
package import Synchronization
import Wire

/// Accepts connections on one address and hands them, as streams, to the loops in turn.
///
/// `@unchecked Sendable` holds because its mutable state is touched on the first loop only; the count is atomic.
package final class Listener: EventHandler, TimerHandler, @unchecked Sendable {
  /// Gives an accepted stream its delegate; runs on the stream's loop.
  package typealias Handler = @Sendable (ByteStream) -> any ByteStreamDelegate

  /// What it is bound to, with the port that the kernel chose if 0 was asked for.
  package let endpoint: Endpoint
  /// Connections open now; readable from any thread.
  package let connections = Atomic<Int>(0)

  private let descriptor: Int32
  private let loops: [EventLoop]
  private let tls: TLSContext?
  private let limit: Int
  private let handshakeLimit: Duration
  private let handler: Handler
  private var turn = 0
  private var accepting = true
  private var closed = false

  /// How long to leave new connections in the backlog when descriptors or memory ran out.
  private static let pause = Duration.milliseconds(100)
  private static let acceptsAtOnce = 64

  /// Binds and listens. The port is known on return; accepting begins on the first loop.
  ///
  /// - Parameters:
  ///   - loops: where accepted streams live, in turn; the first also accepts.
  ///   - endpoint: the address; port 0 lets the kernel choose one.
  ///   - tls: of a server; `nil`: in the clear.
  ///   - limit: connections at one time; more wait in the kernel's backlog.
  ///   - handshakeLimit: how long a peer may take for its TLS handshake.
  ///   - handler: gives each stream its delegate.
  package static func listen(
    on loops: [EventLoop], at endpoint: Endpoint, tls: TLSContext? = nil, limit: Int = 1024,
    handshakeLimit: Duration = .seconds(10), handler: @escaping Handler
  ) throws(TransportError) -> Listener {
    let (descriptor, bound) = try bind(endpoint)
    let listener = Listener(
      descriptor: descriptor, endpoint: bound, loops: loops, tls: tls, limit: limit, handshakeLimit: handshakeLimit,
      handler: handler)
    loops[0].execute {
      do {
        try loops[0].register(descriptor, interest: .readable, handler: listener)
      } catch {
        listener.closeDescriptor()
      }
    }
    return listener
  }

  private init(
    descriptor: Int32, endpoint: Endpoint, loops: [EventLoop], tls: TLSContext?, limit: Int, handshakeLimit: Duration,
    handler: @escaping Handler
  ) {
    self.descriptor = descriptor
    self.endpoint = endpoint
    self.loops = loops
    self.tls = tls
    self.limit = limit
    self.handshakeLimit = handshakeLimit
    self.handler = handler
  }

  deinit {
    if !closed { Syscalls.close(descriptor) }
  }

  /// Stops accepting; streams that were accepted live on. From any thread.
  package func close() {
    loops[0].execute { self.closeDescriptor() }
  }

  private static func bind(_ endpoint: Endpoint) throws(TransportError) -> (Int32, Endpoint) {
    var failure = TransportError(.bind, endpoint.description, "no address")
    for address in try addresses(of: endpoint) {
      guard case .value(let descriptor) = Socket.make(family: address.family) else {
        failure = TransportError(.bind, endpoint.description, "socket", errno: errno)
        continue
      }
      Socket.set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
      let status = unsafe address.withPointer { address, length in unsafe Glibc.bind(descriptor, address, length) }
      if status == 0 && Glibc.listen(descriptor, 1024) == 0 {
        return (descriptor, Socket.localAddress(descriptor)?.endpoint ?? endpoint)
      }
      failure = TransportError(.bind, endpoint.description, "bind", errno: errno)
      Syscalls.close(descriptor)
    }
    throw failure
  }

  private static func addresses(of endpoint: Endpoint) throws(TransportError) -> [SocketAddress] {
    guard let path = endpoint.path else {
      return try Resolver.passiveAddresses(of: endpoint.host, port: endpoint.port)
    }
    guard let address = SocketAddress(path: path) else {
      throw TransportError(.bind, endpoint.description, "the path is too long for a socket")
    }
    // A socket file left behind by an earlier process would refuse the address for ever.
    if case .value(let probe) = Socket.make(family: AF_UNIX) {
      if case .failed(ECONNREFUSED) = Socket.connect(probe, to: address) { unsafe unlink(path) }
      Syscalls.close(probe)
    }
    return [address]
  }

  package func descriptorReady(_ descriptor: Int32, _ readiness: Readiness) {
    for _ in 0..<Self.acceptsAtOnce {
      guard connections.load(ordering: .relaxed) < limit else { return stopAccepting(retryAfter: nil) }
      let flags = Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
      switch Syscalls.outcome({ accept4(descriptor, nil, nil, flags) }) {
      case .value(let accepted):
        hand(over: accepted)
      case .failed(EAGAIN):
        return
      case .failed(EMFILE), .failed(ENFILE), .failed(ENOBUFS), .failed(ENOMEM):
        // The waiting connection would be reported at once again; give the process time to free something.
        return stopAccepting(retryAfter: Self.pause)
      case .failed:
        // That one connection broke before it was accepted.
        continue
      }
    }
  }

  package func timerFired(_ timer: Timer) { resumeAccepting() }

  package func loopStopped(_ loop: EventLoop) { closeDescriptor() }

  private func hand(over accepted: Int32) {
    connections.add(1, ordering: .relaxed)
    let loop = loops[turn % loops.count]
    turn &+= 1
    if loop.isCurrent {
      start(accepted, on: loop)
    } else if !loop.execute({ self.start(accepted, on: loop) }) {
      Syscalls.close(accepted)
      released()
    }
  }

  private func start(_ accepted: Int32, on loop: EventLoop) {
    let peer = Socket.peerAddress(accepted)?.description ?? "a peer that has gone"
    ByteStream.accepted(
      accepted, on: loop, peer: peer, tls: tls, deadline: loop.now + handshakeLimit,
      onRelease: { self.released() }, delegate: handler)
  }

  private func released() {
    let before = connections.subtract(1, ordering: .relaxed).oldValue
    if before >= limit { loops[0].execute { self.resumeAccepting() } }
  }

  private func stopAccepting(retryAfter pause: Duration?) {
    guard accepting, !closed else { return }
    accepting = false
    loops[0].modify(descriptor, interest: [])
    if let pause { _ = loops[0].schedule(at: loops[0].now + pause, self) }
    // A stream may have been released between the look at the count and this point.
    if pause == nil && connections.load(ordering: .relaxed) < limit { resumeAccepting() }
  }

  private func resumeAccepting() {
    guard !accepting, !closed else { return }
    accepting = true
    loops[0].modify(descriptor, interest: .readable)
  }

  private func closeDescriptor() {
    guard !closed else { return }
    closed = true
    loops[0].deregister(descriptor)
    Syscalls.close(descriptor)
    if let path = endpoint.path { unsafe unlink(path) }
  }
}
