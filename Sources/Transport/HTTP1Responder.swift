import Wire

/// The bounds of a responder.
package struct HTTP1Limits: Sendable {
  /// Connections served at one time. When there are as many, the one that has kept silent longest makes room; where none
  /// has for `courtesy`, the new one is answered 503 and closed.
  package var connections = 64
  /// How long a connection may keep silent before another one may take its place.
  package var courtesy = Duration.seconds(1)
  /// Bytes of answers that clients have not taken yet, of all connections together; above it the next large answer is
  /// 503. Small ones, as health checks get, are given all the same.
  package var waitingBytes = 16 << 20
  /// Answers up to this size are small.
  package var smallAnswer = 16 << 10
  /// For a client to deliver a request's head, from its first byte (or from the connection's beginning).
  package var headTime = Duration.seconds(10)
  /// How long a connection may rest between two requests.
  package var idleTime = Duration.seconds(30)
  /// For a client to take an answer.
  package var answerTime = Duration.seconds(10)

  package init() {}
}

/// A small HTTP/1.1 server for scrapes and health checks: GET and HEAD, bounded in every way, on one loop.
///
/// `@unchecked Sendable` holds because its mutable properties are touched on its loop only.
package final class HTTP1Responder: @unchecked Sendable {
  /// Answers a request at once; runs on the loop, and must not block it.
  package typealias Handler = @Sendable (HTTP1Request) -> HTTP1Response

  let limits: HTTP1Limits
  let handler: Handler
  /// Those that are served now.
  private var connections: [ObjectIdentifier: HTTP1Connection] = [:]
  var served: Int { connections.count }
  private var listener: Listener?

  private init(limits: HTTP1Limits, handler: @escaping Handler) {
    self.limits = limits
    self.handler = handler
  }

  /// Binds, listens and answers; from any thread.
  package static func listen(
    on loop: EventLoop, at endpoint: Endpoint, limits: HTTP1Limits = HTTP1Limits(), handler: @escaping Handler
  ) throws(TransportError) -> HTTP1Responder {
    let responder = HTTP1Responder(limits: limits, handler: handler)
    // A few more than are served, to be told that it is full; beyond those the kernel's backlog waits.
    responder.listener = try Listener.listen(on: [loop], at: endpoint, limit: limits.connections + 16) {
      [weak responder] stream in
      HTTP1Connection(stream: stream, responder: responder)
    }
    return responder
  }

  /// What it listens on, with the port that the kernel chose if 0 was asked for.
  package var endpoint: Endpoint? { listener?.endpoint }

  /// Stops accepting; open connections end by themselves. From any thread.
  package func close() { listener?.close() }

  /// - Returns: whether the connection is one of those that are served.
  fileprivate func admit(_ connection: HTTP1Connection, now: Instant) -> Bool {
    if connections.count >= limits.connections, !makeRoom(now: now) { return false }
    connections[ObjectIdentifier(connection)] = connection
    return true
  }

  fileprivate func leave(_ connection: HTTP1Connection) { connections[ObjectIdentifier(connection)] = nil }

  /// Ends the connection that has kept silent longest, so that whoever only holds connections, or takes nothing of what
  /// was asked for, keeps nobody out.
  private func makeRoom(now: Instant) -> Bool {
    guard let oldest = connections.values.min(by: { $0.silentSince < $1.silentSince }),
      now - oldest.silentSince >= limits.courtesy
    else { return false }
    leave(oldest)
    oldest.abort()
    return true
  }

  /// Bytes of answers that clients have not taken.
  var waitingBytes: Int { connections.values.reduce(0) { $0 + $1.waitingBytes } }
}

/// One connection of a responder; it lives on the loop until the stream is closed.
private final class HTTP1Connection: ByteStreamDelegate, TimerHandler {
  private enum Phase {
    /// Between requests.
    case idle
    /// A head has begun, or the connection is new.
    case head
    /// An answer is on its way.
    case answer
  }

  private let stream: ByteStream
  private let responder: HTTP1Responder?
  private var isServed = false
  private var parser = HTTP1RequestParser()
  private var phase = Phase.idle
  private var timer: Timer?
  private var isClosing = false
  private var since: Instant

  init(stream: ByteStream, responder: HTTP1Responder?) {
    self.stream = stream
    self.responder = responder
    since = stream.loop.now
    isServed = responder?.admit(self, now: since) ?? false
  }

  /// Since when it has neither asked for anything whole nor taken anything of an answer.
  var silentSince: Instant { max(since, stream.lastTaken ?? since) }
  var waitingBytes: Int { stream.bufferedOutput }

  /// Ends at once, without a word.
  func abort() {
    isClosing = true
    stream.abort()
  }

  func streamOpened(_ stream: ByteStream) {
    guard isServed else { return answerAndClose(503) }
    enter(.head)
  }

  func streamReceived(_ stream: ByteStream, _ bytes: Span<UInt8>) {
    guard !isClosing else { return }
    parser.append(bytes)
    answerRequests()
  }

  func streamHasRoom(_ stream: ByteStream) {
    guard !isClosing else { return }
    stream.resumeReading()
    answerRequests()
  }

  func streamClosed(_ stream: ByteStream, _ error: TransportError?) {
    stream.loop.cancel(timer)
    responder?.leave(self)
  }

  /// Answers what is there, but never more than the output has room for: the rest waits until the client has taken
  /// some.
  private func answerRequests() {
    guard let responder else { return stream.close() }
    while true {
      guard stream.hasRoom else {
        stream.pauseReading()
        return enter(.answer)
      }
      switch parser.next() {
      case .needsMore:
        if stream.bufferedOutput > 0 { return enter(.answer) }
        if parser.bufferedCount == 0 { return enter(.idle) }
        return phase == .head ? () : enter(.head)
      case .refused(let status): return answerAndClose(status)
      case .request(let request):
        since = stream.loop.now
        let response = responder.handler(request)
        let limits = responder.limits
        guard response.body.count <= limits.smallAnswer || responder.waitingBytes < limits.waitingBytes else {
          return answerAndClose(503)
        }
        answer(response, closes: !request.keepsAlive, omitsBody: request.method == .head)
        if isClosing { return }
      }
    }
  }

  private func answer(_ response: HTTP1Response, closes: Bool, omitsBody: Bool = false) {
    let head = response.head(closes: closes, now: stream.loop.moment.time)
    stream.write(Array(head.utf8).span)
    if !omitsBody { stream.write(response.body.span) }
    guard closes else { return }
    isClosing = true
    stream.loop.cancel(timer)
    stream.close(within: responder?.limits.answerTime ?? .seconds(1))
  }

  private func answerAndClose(_ status: UInt16) {
    answer(HTTP1Response(refusing: status), closes: true)
  }

  private func enter(_ phase: Phase) {
    guard let limits = responder?.limits else { return }
    self.phase = phase
    stream.loop.cancel(timer)
    let time =
      switch phase {
      case .idle: limits.idleTime
      case .head: limits.headTime
      case .answer: limits.answerTime
      }
    timer = stream.loop.schedule(at: stream.loop.now + time, self)
  }

  func timerFired(_ timer: Timer) {
    guard !isClosing else { return }
    switch phase {
    case .idle:
      isClosing = true
      stream.close(within: .seconds(1))
    case .head: answerAndClose(408)
    case .answer:
      // Taken in the meantime: the stream tells of that only when much was waiting.
      guard stream.bufferedOutput == 0 else { return stream.abort() }
      enter(parser.bufferedCount == 0 ? .idle : .head)
    }
  }
}
