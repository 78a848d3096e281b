package import Wire

/// An answer of `HTTP1Responder`.
package struct HTTP1Response: Sendable {
  package var status: UInt16
  package var contentType: String
  /// Further header fields. Content-Length, Content-Type, Connection and Date are written by the responder.
  package var headers: [(name: String, value: String)]
  /// Left out on the wire when the request was HEAD, but counted in Content-Length.
  package var body: Bytes

  package init(
    status: UInt16 = 200, contentType: String = "text/plain; charset=utf-8",
    headers: [(name: String, value: String)] = [], body: Bytes
  ) {
    self.status = status
    self.contentType = contentType
    self.headers = headers
    self.body = body
  }

  package init(status: UInt16, text: String) {
    self.init(status: status, body: Bytes(text))
  }

  /// The plain answer for a status: its phrase and a line end.
  init(refusing status: UInt16) {
    self.init(status: status, text: Self.phrase(status) + "\n")
    if status == 405 { headers.append(("Allow", "GET, HEAD")) }
    if status == 503 { headers.append(("Retry-After", "1")) }
  }

  /// The reason phrase of RFC 9110 section 15; empty for a status that has none here.
  static func phrase(_ status: UInt16) -> String {
    switch status {
    case 200: "OK"
    case 204: "No Content"
    case 301: "Moved Permanently"
    case 302: "Found"
    case 304: "Not Modified"
    case 307: "Temporary Redirect"
    case 308: "Permanent Redirect"
    case 400: "Bad Request"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 406: "Not Acceptable"
    case 408: "Request Timeout"
    case 413: "Content Too Large"
    case 414: "URI Too Long"
    case 431: "Request Header Fields Too Large"
    case 500: "Internal Server Error"
    case 503: "Service Unavailable"
    case 505: "HTTP Version Not Supported"
    default: ""
    }
  }

  /// The head as it goes out. A line end in a field's value becomes a blank: it must not begin a new field.
  func head(closes: Bool, now: UnixTime) -> String {
    var text = "HTTP/1.1 \(status) \(Self.phrase(status))\r\n"
    text += "Date: \(HTTPDate.text(now))\r\nContent-Type: \(Self.line(contentType))\r\n"
    if status != 204 { text += "Content-Length: \(body.count)\r\n" }
    for (name, value) in headers { text += "\(Self.line(name)): \(Self.line(value))\r\n" }
    if closes { text += "Connection: close\r\n" }
    return text + "\r\n"
  }

  private static func line(_ text: String) -> String {
    let bytes = text.utf8.map { $0 < 0x20 || $0 == 0x7f ? UInt8(ascii: " ") : $0 }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// The bounds of a responder.
package struct HTTP1Limits: Sendable {
  /// Connections served at one time; those above are answered 503 and closed.
  package var connections = 64
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
/// `@unchecked Sendable` holds because its one mutable property is touched on its loop only.
package final class HTTP1Responder: @unchecked Sendable {
  /// Answers a request at once; runs on the loop, and must not block it.
  package typealias Handler = @Sendable (HTTP1Request) -> HTTP1Response

  let limits: HTTP1Limits
  let handler: Handler
  /// Connections that are served now.
  fileprivate(set) var served = 0
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
  private let isServed: Bool
  private var parser = HTTP1RequestParser()
  private var phase = Phase.idle
  private var timer: Timer?
  private var isClosing = false

  init(stream: ByteStream, responder: HTTP1Responder?) {
    self.stream = stream
    self.responder = responder
    if let responder, responder.served < responder.limits.connections {
      responder.served += 1
      isServed = true
    } else {
      isServed = false
    }
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

  func streamDrained(_ stream: ByteStream) {
    guard !isClosing else { return }
    stream.resumeReading()
    answerRequests()
  }

  func streamClosed(_ stream: ByteStream, _ error: TransportError?) {
    stream.loop.cancel(timer)
    if isServed { responder?.served -= 1 }
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
        answer(responder.handler(request), closes: !request.keepsAlive, omitsBody: request.method == .head)
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
