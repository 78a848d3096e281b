package import Wire

/// Hears what happens on a client's connection. All calls come on its loop and never from within a call to the client;
/// submitting, cancelling and closing from within them is fine.
package protocol HTTP2ClientDelegate: AnyObject {
  /// TLS is done and the peer speaks HTTP/2: requests may be submitted.
  func clientReady(_ client: HTTP2Client)
  /// The peer's SETTINGS arrived, with its limit on open streams; 0 is possible, `Int.max` means no limit.
  func clientSettings(_ client: HTTP2Client, maxConcurrentStreams: Int)
  /// The complete response to a request.
  func clientResponse(_ client: HTTP2Client, tag: UInt64, _ response: HTTP2Response)
  /// There will be no complete response. Each submitted tag gets either this or `clientResponse`, once, unless it was
  /// cancelled.
  func clientStreamFailed(_ client: HTTP2Client, tag: UInt64, _ failure: StreamFailure)
  /// A GOAWAY arrived; nothing can be submitted from here on. There may be several, with ever lower `lastStream`.
  /// `debugData` is cut at the limit. Streams above `lastStream` fail as `.refused` right after this.
  func clientGoAway(_ client: HTTP2Client, lastStream: Int32, code: UInt32, debugData: [UInt8])
  func clientPingAcknowledged(_ client: HTTP2Client)
  /// The output has fallen from its high-water mark: where `submit` failed for that, it may work again.
  func clientHasRoom(_ client: HTTP2Client)
  /// The end: once, and last, after each tag got its word. `nil`: closed by us, drained, or ended by the peer after
  /// its GOAWAY.
  func clientClosed(_ client: HTTP2Client, _ error: TransportError?)
}

extension HTTP2ClientDelegate {
  package func clientHasRoom(_ client: HTTP2Client) {}
}

/// One HTTP/2 connection to a server: requests in, responses out, many at a time.
///
/// It belongs to one loop and is used there only. Whoever connects need not hold it: the loop does until
/// `clientClosed`. What is submitted during a turn of the loop goes out at the turn's end, many frames to a TLS record.
///
/// `@unchecked Sendable` holds because all methods run on the loop, which is asserted; only the reference may travel.
package final class HTTP2Client: @unchecked Sendable {
  private enum State {
    case connecting
    case open
    /// We said GOAWAY; open streams may end.
    case draining
    /// Nothing more is read; the last bytes are on their way.
    case closing
    case closed
  }

  package let loop: EventLoop
  private let session: HTTP2Session
  private var stream: ByteStream?
  private var delegate: (any HTTP2ClientDelegate)?
  private let deadline: Instant

  private var state = State.connecting
  private var ending: TransportError?
  private var isTurnScheduled = false
  private var mustClose = false
  private var settingsTimer: Timer?
  private var receivedGoAway = false
  private var receivedSettings = false

  private init(
    loop: EventLoop, session: HTTP2Session, deadline: Instant, delegate: any HTTP2ClientDelegate
  ) {
    self.loop = loop
    self.session = session
    self.deadline = deadline
    self.delegate = delegate
  }

  /// Connects, on the loop's own thread. Returns at once; the delegate hears `clientReady`, or `clientClosed` with the
  /// reason.
  ///
  /// - Parameters:
  ///   - proxy: makes the tunnel that the connection goes through; `nil`: none.
  ///   - tls: what to trust and who we are, with ALPN `h2`; `nil` speaks HTTP/2 in the clear (prior knowledge).
  ///   - sessions: the TLS sessions of this server that may be resumed; `nil`: none.
  ///   - serverName: what the certificate must be for, and SNI; the endpoint's host unless given.
  ///   - deadline: for name look-up, TCP, TLS and the server's first SETTINGS together.
  /// - Throws: only when memory runs out.
  @discardableResult
  package static func connect(
    on loop: EventLoop, to endpoint: Endpoint, through proxy: Proxy? = nil, tls: TLSContext?,
    sessions: TLSSessionCache? = nil, serverName: String? = nil, deadline: Instant,
    limits: HTTP2Limits = HTTP2Limits(), delegate: any HTTP2ClientDelegate
  ) throws(TransportError) -> HTTP2Client {
    precondition(loop.isCurrent)
    let session: HTTP2Session
    do {
      session = try HTTP2Session(role: .client, limits: limits)
    } catch {
      throw TransportError(.system, endpoint.description, "\(error)")
    }
    let client = HTTP2Client(
      loop: loop, session: session, deadline: deadline, delegate: delegate)
    client.stream = ByteStream.connect(
      on: loop, to: endpoint, through: proxy, tls: tls, sessions: sessions, serverName: serverName,
      deadline: deadline, delegate: client)
    return client
  }

  // MARK: Requests

  /// Opens a stream for a request. On the wire come the pseudo-fields of `shared`, those of `own`, then the other
  /// fields of `shared` and of `own`. Both lists may change when this returns; `body` is held, not copied, until it is
  /// sent.
  ///
  /// - Returns: false if it was not taken, and never will be: the connection is not open or going away, the peer's (or
  ///   our) limit on streams is reached, or the output is at its high-water mark.
  package func submit(shared: HeaderList, own: HeaderList, body: Bytes, tag: UInt64) -> Bool {
    precondition(loop.isCurrent)
    guard state == .open, let stream, stream.hasRoom else { return false }
    guard session.submitRequest(shared: shared, own: own, body: body, tag: tag) != nil else {
      // Out of stream ids: another connection has to take over.
      if session.isGoingAway { drain() }
      return false
    }
    scheduleTurn()
    return true
  }

  /// Gives a request up: the stream is reset with CANCEL, and no word of it comes. False if the tag has had its word.
  @discardableResult
  package func cancel(tag: UInt64) -> Bool {
    precondition(loop.isCurrent)
    guard state == .open || state == .draining, session.cancel(tag: tag) else { return false }
    scheduleTurn()
    return true
  }

  /// Whether `submit` would take a request now.
  package var hasRoom: Bool { state == .open && session.hasRoom && stream?.hasRoom == true }

  /// Streams that are open, cancelled ones included until their reset is framed.
  package var openStreams: Int { session.openStreams }

  /// Bytes framed that the kernel has not taken yet.
  package var bufferedOutput: Int { (stream?.bufferedOutput ?? 0) + session.output.count }

  /// The peer, for people: `host:port`.
  package var peer: String { stream?.peer ?? "" }

  // MARK: The connection

  /// Sends a PING; `clientPingAcknowledged` follows if the peer lives.
  package func ping() {
    precondition(loop.isCurrent)
    guard state == .open || state == .draining else { return }
    session.ping()
    scheduleTurn()
  }

  /// No new streams; those that are open may end, then the connection closes in good order.
  package func drain() {
    precondition(loop.isCurrent)
    switch state {
    case .connecting: close()
    case .open:
      state = .draining
      session.goAway(code: HTTP2Code.noError)
      scheduleTurn()
    case .draining, .closing, .closed: break
    }
  }

  /// Ends the connection with GOAWAY. Open streams fail as `.connectionLost`, at the end of the turn.
  package func close() {
    precondition(loop.isCurrent)
    guard state != .closing, state != .closed, !mustClose else { return }
    mustClose = true
    if state == .open { session.goAway(code: HTTP2Code.noError) }
    scheduleTurn()
  }

  private func scheduleTurn() {
    guard !isTurnScheduled else { return }
    isTurnScheduled = true
    loop.atEndOfTurn(self)
  }

  /// Frames what waits, looks at what that brought about, and closes when there is nothing left to do.
  private func flush() {
    guard let stream, state == .open || state == .draining else { return }
    do throws(HTTP2SessionError) {
      try session.flush(into: stream) { session.handEvents(toClient: self) }
    } catch {
      return fail(error)
    }
    let isDone = (state == .draining || receivedGoAway) && session.openStreams == 0 && !session.wantsToSend
    if isDone || session.isFinished { finish(nil) }
  }

  private func fail(_ error: HTTP2SessionError) {
    finish(TransportError(.protocolViolation, peer, error.description, code: UInt(error.code)))
  }

  /// Nothing more is read: each open stream gets its word, and what is buffered goes out.
  private func finish(_ error: TransportError?) {
    guard state != .closing, state != .closed else { return }
    state = .closing
    ending = ending ?? error
    loop.cancel(settingsTimer)
    settingsTimer = nil
    session.failAll(self)
    stream?.close(within: .seconds(2))
  }
}

extension HTTP2Client: TurnHandler, TimerHandler {
  package func turnEnded() {
    isTurnScheduled = false
    flush()
    if mustClose { finish(nil) }
  }

  package func timerFired(_ timer: Timer) {
    guard !receivedSettings else { return }
    finish(TransportError(.timedOut, peer, "HTTP/2: the server sent no SETTINGS in time"))
  }
}

extension HTTP2Client: ByteStreamDelegate {
  package func streamOpened(_ stream: ByteStream) {
    guard state == .connecting, !mustClose else { return }
    state = .open
    settingsTimer = loop.schedule(at: deadline, self)
    scheduleTurn()
    delegate?.clientReady(self)
  }

  package func streamReceived(_ stream: ByteStream, _ bytes: Span<UInt8>) {
    guard state == .open || state == .draining else { return }
    do throws(HTTP2SessionError) {
      try session.receive(bytes)
    } catch {
      return fail(error)
    }
    session.handEvents(toClient: self)
    scheduleTurn()
  }

  package func streamHasRoom(_ stream: ByteStream) {
    flush()
    if hasRoom { delegate?.clientHasRoom(self) }
  }

  package func streamClosed(_ stream: ByteStream, _ error: TransportError?) {
    let wasWanted = mustClose || receivedGoAway || state == .draining || state == .closing
    session.failAll(self)
    loop.cancel(settingsTimer)
    state = .closed
    // What came first counts: a reset after our own close is of no interest.
    var reason = ending
    if reason == nil, !wasWanted {
      reason = error ?? TransportError(.endedEarly, stream.peer, "the server closed the connection")
    }
    if let refused = reason, refused.kind == .applicationProtocol, ending == nil {
      let cause = "ALPN: we offered \"h2\" and the server did not choose it (\(refused.cause)); HTTP/2 is needed"
      reason = TransportError(.applicationProtocol, refused.subject, cause, code: refused.code)
    }
    self.stream = nil
    let delegate = exchange(&delegate, with: nil)
    delegate?.clientClosed(self, reason)
  }
}

extension HTTP2Client: HTTP2ClientEvents {
  func responded(tag: UInt64, _ response: HTTP2Response) { delegate?.clientResponse(self, tag: tag, response) }

  func failed(tag: UInt64, _ failure: StreamFailure) { delegate?.clientStreamFailed(self, tag: tag, failure) }

  func settingsArrived(concurrentStreams: UInt32) {
    receivedSettings = true
    loop.cancel(settingsTimer)
    settingsTimer = nil
    let limit = concurrentStreams == .max ? Int.max : Int(concurrentStreams)
    delegate?.clientSettings(self, maxConcurrentStreams: limit)
  }

  func goAwayArrived(_ goAway: HTTP2GoAway) {
    receivedGoAway = true
    delegate?.clientGoAway(
      self, lastStream: goAway.lastStream, code: goAway.code, debugData: goAway.debugData)
  }

  func pingAcknowledged() { delegate?.clientPingAcknowledged(self) }
}
