package import Wire

/// Hears what happens on a stream. Every call comes on the stream's loop, from the loop itself: never from inside a
/// call that the delegate makes into the stream.
package protocol ByteStreamDelegate: AnyObject {
  /// TCP, and TLS if wanted, are done; `stream.applicationProtocol` tells what ALPN chose.
  func streamOpened(_ stream: ByteStream)
  /// Bytes came, decrypted; they hold only within the call. In chunks of up to 64 KiB.
  func streamReceived(_ stream: ByteStream, _ bytes: Span<UInt8>)
  /// The output fell to the low-water mark or below after having been above it: there is room to produce more.
  func streamHasRoom(_ stream: ByteStream)
  /// The end; exactly once, and the last call. Nil is an orderly end by the peer or by us.
  func streamClosed(_ stream: ByteStream, _ error: TransportError?)
}

/// A connection that carries bytes both ways, over TCP or a Unix socket, plain or under TLS, as client or as server.
///
/// It belongs to one loop and is used there only. The loop and the stream keep each other, and the stream its delegate,
/// until `streamClosed`; nobody else need hold it. Output is collected and sent at the end of the turn, in as few
/// system calls and TLS records as it fits.
///
/// `@unchecked Sendable` holds because every method asserts that it runs on the loop; only the reference may travel.
package final class ByteStream: @unchecked Sendable {
  enum State {
    case connecting
    case handshaking
    case open
    /// No more from the delegate (unless the peer ended first): what is buffered goes out, then the end is told to the
    /// peer.
    case closing
    /// Our side is shut; waiting for the peer to shut its own, so that nothing it has yet to read is lost to a reset.
    case lingering
    case closed
  }

  /// Callers stop producing when `bufferedOutput` is above this, and go on after `streamHasRoom`.
  package static let highWaterMark = 256 * 1024
  /// See `streamHasRoom`.
  package static let lowWaterMark = 64 * 1024

  package let loop: EventLoop
  /// The other side, for people: `host:port` as given to `connect`, or the address of an accepted peer.
  package let peer: String
  /// What ALPN chose ("h2"); nil before the handshake, without TLS, or if the peer did not take part.
  package internal(set) var applicationProtocol: String?
  /// When the connection was asked for or accepted.
  package let began: Instant

  var state: State
  var descriptor: Int32 = -1
  var connector: (any Connecting)?
  var tls: TLSSession?
  var output = OutputBuffer()
  var interest: Interest = []
  /// For the deadline of connecting, and of closing.
  var timer: Timer?
  var delegate: (any ByteStreamDelegate)?
  var endedBy: TransportError?
  /// The `errno` with which the kernel refused our output for good. The reading side still tells why: a TLS alert may
  /// have come just before the reset.
  var writeFailure: Int32?
  /// The peer has said its last word.
  var peerEnded = false
  var readingPaused = false
  /// The kernel refused more output; to be told when it has room.
  var wantsWritable = false
  var aboveLowWater = false
  var owesOpened = false
  var owesRoom = false
  var turnScheduled = false
  private let tlsContext: TLSContext?
  private let sessions: TLSSessionCache?
  private let serverName: String
  /// Called when the stream is closed, for whoever counts them.
  var onRelease: (() -> Void)?

  private init(
    loop: EventLoop, peer: String, serverName: String, tls: TLSContext?, sessions: TLSSessionCache? = nil,
    delegate: any ByteStreamDelegate
  ) {
    self.sessions = sessions
    self.loop = loop
    self.peer = peer
    self.serverName = serverName
    self.tlsContext = tls
    self.delegate = delegate
    state = .connecting
    began = loop.now
  }

  deinit {
    if descriptor >= 0 { Syscalls.close(descriptor) }
  }

  // MARK: Making one

  /// Connects: looks the host up afresh, tries its addresses, and does the TLS handshake, all before `deadline`.
  ///
  /// Returns at once; the delegate hears `streamOpened`, or `streamClosed` with the reason.
  /// - Parameters:
  ///   - proxy: makes the tunnel that the connection goes through; it looks the host up then. `nil`: none.
  ///   - sessions: the TLS sessions of this server that may be resumed; `nil`: none.
  ///   - serverName: what the certificate must be for, and SNI; the endpoint's host unless given.
  package static func connect(
    on loop: EventLoop, to endpoint: Endpoint, through proxy: Proxy? = nil, tls: TLSContext?,
    sessions: TLSSessionCache? = nil, serverName: String? = nil, deadline: Instant, delegate: any ByteStreamDelegate
  ) -> ByteStream {
    let stream = ByteStream(
      loop: loop, peer: endpoint.description, serverName: serverName ?? endpoint.host, tls: tls, sessions: sessions,
      delegate: delegate)
    stream.timer = loop.schedule(at: deadline, stream)
    let completion: Connector.Completion = { result in
      stream.connector = nil
      switch result {
      case .success(let descriptor): stream.adopt(descriptor)
      case .failure(let error): stream.finish(error)
      }
    }
    if let proxy, endpoint.path == nil {
      stream.connector = ProxyTunnel(loop: loop, proxy: proxy, target: endpoint, completion: completion)
    } else {
      stream.connector = Connector(loop: loop, endpoint: endpoint, completion: completion)
    }
    return stream
  }

  /// Takes over an accepted, non-blocking socket. With TLS the handshake must be done before `deadline`.
  static func accepted(
    _ descriptor: Int32, on loop: EventLoop, peer: String, tls: TLSContext?, deadline: Instant,
    onRelease: @escaping () -> Void, delegate: (ByteStream) -> any ByteStreamDelegate
  ) {
    let stream = ByteStream(loop: loop, peer: peer, serverName: "", tls: tls, delegate: NoDelegate.shared)
    stream.onRelease = onRelease
    stream.delegate = delegate(stream)
    stream.timer = loop.schedule(at: deadline, stream)
    stream.adopt(descriptor)
  }

  private func adopt(_ descriptor: Int32) {
    self.descriptor = descriptor
    Socket.prepare(descriptor)
    do throws(TransportError) {
      interest = .readable
      try loop.register(descriptor, interest: .readable, handler: self)
      guard let tlsContext else { return opened() }
      tls = try TLSSession(
        tlsContext, peer: serverName.isEmpty ? peer : serverName, serverName: serverName, sessions: sessions)
      state = .handshaking
      shakeHands()
    } catch {
      finish(error)
    }
  }

  /// The subject of the certificate that the peer proved to hold ("UID=…,CN=…"); nil if it sent none.
  package var peerCertificateSubject: String? {
    precondition(loop.isCurrent)
    return tls?.peerCertificateSubject
  }

  /// Whether the TLS handshake resumed an earlier session.
  var isResumed: Bool {
    precondition(loop.isCurrent)
    return tls?.isResumed ?? false
  }

  // MARK: Output

  /// When the kernel last took some of the output.
  package internal(set) var lastTaken: Instant?
  /// Bytes that the kernel has not taken yet.
  package var bufferedOutput: Int { output.count + (tls?.output.count ?? 0) }

  /// Whether there is room to produce more (the high-water mark is not reached).
  package var hasRoom: Bool { bufferedOutput < Self.highWaterMark }

  /// Appends to the output; sent at the end of the turn. Dropped if the stream is closing or closed.
  package func write(_ bytes: Span<UInt8>) {
    guard prepareOutput() else { return }
    unsafe bytes.withUnsafeBytes { unsafe output.append($0) }
  }

  /// Sends what is buffered now rather than at the end of the turn.
  package func flush() {
    precondition(loop.isCurrent)
    pump()
  }

  private func prepareOutput() -> Bool {
    precondition(loop.isCurrent)
    guard writeFailure == nil else { return false }
    switch state {
    case .connecting, .handshaking, .open: break
    case .closing where peerEnded: break
    case .closing, .lingering, .closed: return false
    }
    scheduleTurn()
    return true
  }

  // MARK: Input

  /// Stops `streamReceived` (a chunk under way aside), so that the peer is slowed by TCP's window.
  package func pauseReading() {
    precondition(loop.isCurrent)
    readingPaused = true
    updateInterest()
  }

  /// Undoes `pauseReading`.
  package func resumeReading() {
    precondition(loop.isCurrent)
    readingPaused = false
    updateInterest()
  }

  // MARK: The end

  /// Ends in good order: sends what is buffered, tells the peer, waits for it to end too; then `streamClosed(nil)`.
  ///
  /// - Parameter limit: for all that; what is not sent by then is lost, and `streamClosed` says so.
  package func close(within limit: Duration = .seconds(5)) {
    precondition(loop.isCurrent)
    switch state {
    case .connecting, .handshaking: finish(nil)
    case .open: beginClosing(within: limit)
    case .closing, .lingering, .closed: break
    }
  }

  /// Ends at once, with a reset; what is buffered is lost. Then `streamClosed(nil)`.
  package func abort() {
    precondition(loop.isCurrent)
    if descriptor >= 0 { Socket.resetOnClose(descriptor) }
    finish(nil)
  }
}

/// Stands in for the delegate while an accepted stream asks for its own.
private final class NoDelegate: ByteStreamDelegate, Sendable {
  static let shared = NoDelegate()

  func streamOpened(_ stream: ByteStream) {}
  func streamReceived(_ stream: ByteStream, _ bytes: Span<UInt8>) {}
  func streamHasRoom(_ stream: ByteStream) {}
  func streamClosed(_ stream: ByteStream, _ error: TransportError?) {}
}
