import Synchronization
package import Wire

/// Hears what happens on one connection that a server accepted. All calls come on the connection's loop and never from
/// within a call to it; answering, resetting and closing from within them is fine.
package protocol HTTP2ServerDelegate: AnyObject {
  /// A complete request. It is answered with `respond`, now or later, or reset.
  func serverRequest(_ connection: HTTP2ServerConnection, _ stream: HTTP2StreamID, _ request: HTTP2Request)
  /// The stream of a request is closed: answered and sent, or reset by either side (then `code` says why).
  func serverStreamClosed(
    _ connection: HTTP2ServerConnection, _ stream: HTTP2StreamID, code: UInt32, answered: Bool)
  /// The client has taken our latest SETTINGS up: from here on it must obey them.
  func serverSettingsAcknowledged(_ connection: HTTP2ServerConnection)
  func serverPingAcknowledged(_ connection: HTTP2ServerConnection)
  /// The client is leaving.
  func serverGoAway(_ connection: HTTP2ServerConnection, lastStream: Int32, code: UInt32, debugData: [UInt8])
  /// The end, once and last. `nil`: in good order. Streams that are open then are not told of one by one.
  func serverClosed(_ connection: HTTP2ServerConnection, _ error: TransportError?)
}

/// Listens for HTTP/2 connections and gives each a delegate.
package final class HTTP2Server: Sendable {
  /// Gives an accepted connection its delegate; runs on the connection's loop, before the handshake is done.
  package typealias Handler = @Sendable (HTTP2ServerConnection) -> any HTTP2ServerDelegate

  private let listener: Listener
  private let counters: Counters

  final class Counters: Sendable {
    let accepted = Atomic<Int>(0)
    let requests = Atomic<Int>(0)
  }

  private init(listener: Listener, counters: Counters) {
    self.listener = listener
    self.counters = counters
  }

  /// What it listens on, with the port that the kernel chose if 0 was asked for.
  package var endpoint: Endpoint { listener.endpoint }
  /// Connections open now; like the other counts, readable from any thread.
  package var connections: Int { listener.connections.load(ordering: .relaxed) }
  /// Connections accepted so far.
  package var acceptedConnections: Int { counters.accepted.load(ordering: .relaxed) }
  /// Requests handed to delegates so far.
  package var requests: Int { counters.requests.load(ordering: .relaxed) }

  /// Binds, listens and accepts; from any thread.
  ///
  /// - Parameters:
  ///   - loops: where the connections live, in turn.
  ///   - endpoint: the address; port 0 lets the kernel choose one.
  ///   - tls: the server's certificate, with ALPN `h2`; `nil` for HTTP/2 in the clear.
  ///   - limits: of each connection; see `HTTP2Limits`, and `serverLimits` for what suits a look-alike of APNs.
  ///   - connectionLimit: connections at one time; more wait in the kernel's backlog.
  ///   - handler: gives each connection its delegate.
  package static func listen(
    on loops: [EventLoop], at endpoint: Endpoint, tls: TLSContext?, limits: HTTP2Limits = serverLimits,
    connectionLimit: Int = 1024, handler: @escaping Handler
  ) throws(TransportError) -> HTTP2Server {
    let counters = Counters()
    let isSecure = tls != nil
    let listener = try Listener.listen(on: loops, at: endpoint, tls: tls, limit: connectionLimit) { stream in
      counters.accepted.add(1, ordering: .relaxed)
      return HTTP2ServerConnection(
        stream: stream, isSecure: isSecure, limits: limits, counters: counters, handler: handler)
    }
    return HTTP2Server(listener: listener, counters: counters)
  }

  /// Limits for small requests: bodies cut at 8 KiB, header lists at 16 KiB.
  package static var serverLimits: HTTP2Limits {
    var limits = HTTP2Limits()
    limits.bodySize = 8 * 1024
    limits.headerListSize = 16 * 1024
    return limits
  }

  /// Stops accepting; connections that are open live on. From any thread.
  package func close() { listener.close() }
}

/// One connection of a server. It belongs to one loop and is used there only; the loop holds it until `serverClosed`.
///
/// `@unchecked Sendable` holds because all methods run on the loop, which is asserted; only the reference may travel.
package final class HTTP2ServerConnection: @unchecked Sendable {
  package let stream: ByteStream
  private let session: HTTP2Session?
  private let isSecure: Bool
  private let counters: HTTP2Server.Counters
  private var delegate: (any HTTP2ServerDelegate)?
  private var ending: TransportError?
  private var isTurnScheduled = false
  private var isOpen = false
  private var isSilent = false
  private var clientIsLeaving = false
  private var mustClose = false
  private var isClosing = false

  init(
    stream: ByteStream, isSecure: Bool, limits: HTTP2Limits, counters: HTTP2Server.Counters,
    handler: HTTP2Server.Handler
  ) {
    self.stream = stream
    self.isSecure = isSecure
    self.counters = counters
    // Without memory for a session the connection is closed as soon as it opens.
    session = try? HTTP2Session(role: .server, limits: limits)
    delegate = handler(self)
  }

  package var loop: EventLoop { stream.loop }
  /// The client's address, for people.
  package var peer: String { stream.peer }
  /// Streams that are open now.
  package var openStreams: Int { session?.openStreams ?? 0 }
  /// Bytes framed that the kernel has not taken yet.
  package var bufferedOutput: Int { stream.bufferedOutput }

  // MARK: Answers

  /// Answers a request, once. `fields` are the response's, without `:status`.
  ///
  /// - Returns: false if the stream is gone or was answered.
  @discardableResult
  package func respond(_ stream: HTTP2StreamID, status: UInt16, fields: HeaderList? = nil, body: Bytes = Bytes([]))
    -> Bool
  {
    precondition(loop.isCurrent)
    guard let session, session.knows(stream), !isClosing else { return false }
    guard session.submitResponse(slot: stream.slot, status: status, fields: fields, body: body) else { return false }
    scheduleTurn()
    return true
  }

  /// Resets a stream with that code.
  package func reset(_ stream: HTTP2StreamID, code: UInt32) {
    precondition(loop.isCurrent)
    guard let session, session.knows(stream), !isClosing else { return }
    session.reset(slot: stream.slot, code: code)
    scheduleTurn()
  }

  // MARK: The connection

  /// Sends SETTINGS with a new limit on the client's open streams.
  package func setMaxConcurrentStreams(_ limit: Int) {
    precondition(loop.isCurrent)
    session?.announce(concurrentStreams: limit)
    scheduleTurn()
  }

  /// Sends GOAWAY; requests above `lastStream` are dropped. `nil`: the newest stream that the client has opened.
  /// `Int32.max`: a warning only. The connection stays until the client or `close` ends it.
  package func goAway(lastStream: Int32? = nil, code: UInt32 = HTTP2Code.noError, debugData: [UInt8] = []) {
    precondition(loop.isCurrent)
    session?.goAway(lastStream: lastStream, code: code, debugData: debugData)
    scheduleTurn()
  }

  /// Sends a PING.
  package func ping() {
    precondition(loop.isCurrent)
    session?.ping()
    scheduleTurn()
  }

  /// Falls silent: reads no more and sends no more, while the socket stays open.
  package func goSilent() {
    precondition(loop.isCurrent)
    isSilent = true
    stream.pauseReading()
  }

  /// Ends silence.
  package func resume() {
    precondition(loop.isCurrent)
    isSilent = false
    stream.resumeReading()
    scheduleTurn()
  }

  /// Ends the connection: what is buffered goes out, open streams are lost.
  package func close() {
    precondition(loop.isCurrent)
    mustClose = true
    scheduleTurn()
  }

  /// Ends the connection at once with a TCP reset.
  package func abort() {
    precondition(loop.isCurrent)
    isClosing = true
    session?.shut()
    stream.abort()
  }

  private func scheduleTurn() {
    guard !isTurnScheduled else { return }
    isTurnScheduled = true
    loop.atEndOfTurn(self)
  }

  private func flush() {
    guard let session, isOpen, !isClosing, !isSilent else { return }
    do throws(HTTP2SessionError) {
      try session.flush(into: stream) { session.handEvents(toServer: self) }
    } catch {
      return finish(violation(error))
    }
    // After our own GOAWAY the connection stays, as long as the client likes.
    if clientIsLeaving && session.isFinished { finish(nil) }
  }

  private func violation(_ error: HTTP2SessionError) -> TransportError {
    TransportError(.protocolViolation, peer, error.description, code: UInt(error.code))
  }

  private func finish(_ error: TransportError?) {
    guard !isClosing else { return }
    isClosing = true
    ending = error
    session?.shut()
    stream.close(within: .seconds(2))
  }
}

extension HTTP2ServerConnection: TurnHandler {
  package func turnEnded() {
    isTurnScheduled = false
    flush()
    if mustClose { finish(nil) }
  }
}

extension HTTP2ServerConnection: ByteStreamDelegate {
  package func streamOpened(_ stream: ByteStream) {
    guard session != nil else { return finish(TransportError(.system, peer, "no memory for a session")) }
    guard !isSecure || stream.applicationProtocol == "h2" else {
      return finish(TransportError(.applicationProtocol, peer, "ALPN: the client did not offer \"h2\""))
    }
    isOpen = true
    scheduleTurn()
  }

  package func streamReceived(_ stream: ByteStream, _ bytes: Span<UInt8>) {
    guard let session, isOpen, !isClosing, !isSilent else { return }
    do throws(HTTP2SessionError) {
      try session.receive(bytes)
    } catch {
      return finish(violation(error))
    }
    session.handEvents(toServer: self)
    scheduleTurn()
  }

  package func streamHasRoom(_ stream: ByteStream) { scheduleTurn() }

  package func streamClosed(_ stream: ByteStream, _ error: TransportError?) {
    isClosing = true
    session?.shut()
    let delegate = exchange(&delegate, with: nil)
    delegate?.serverClosed(self, ending ?? error)
  }
}

extension HTTP2ServerConnection: HTTP2ServerEvents {
  func requested(_ stream: HTTP2StreamID, _ request: HTTP2Request) {
    counters.requests.add(1, ordering: .relaxed)
    delegate?.serverRequest(self, stream, request)
  }

  func streamClosed(_ stream: HTTP2StreamID, code: UInt32, answered: Bool) {
    delegate?.serverStreamClosed(self, stream, code: code, answered: answered)
  }

  func settingsAcknowledged() { delegate?.serverSettingsAcknowledged(self) }

  func pingAcknowledged() { delegate?.serverPingAcknowledged(self) }

  func goAwayArrived(_ goAway: HTTP2GoAway) {
    clientIsLeaving = true
    delegate?.serverGoAway(self, lastStream: goAway.lastStream, code: goAway.code, debugData: goAway.debugData)
  }
}
