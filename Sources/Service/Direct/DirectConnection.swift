import APNs
import Transport
import Wire

/// The one connection of a command that speaks with APNs itself: requests go in, and each comes back with its end.
///
/// It connects when there is something to send, and again when a connection was lost or given up; whether a request is
/// sent again is up to the caller. Streams are bounded as in the service: by SETTINGS, and to one on a connection with
/// provider tokens until APNs has accepted one.
///
/// `@unchecked Sendable` holds because all state is touched on the loop alone.
final class DirectConnection: @unchecked Sendable {
  /// A request as it goes onto the wire.
  struct Request: Sendable {
    var shared: HeaderList
    var own = HeaderList()
    var body = Bytes([])
  }

  /// How a request ended.
  enum End: Sendable {
    case answered(HTTP2Response)
    /// There was no connection: it was not sent.
    case unreachable(TransportError)
    /// APNs surely did not process it.
    case refused(String)
    /// It was sent, and may have been processed.
    case lost(String)
    case timedOut
  }

  private struct Waiting {
    var request: Request
    var number: Int
    var timer: Timer
    var ended: CheckedContinuation<End, Never>
  }

  private let loop: EventLoop
  private let endpoint: Endpoint
  private let proxy: Proxy?
  private let tls: TLSContext
  private let authentication: Authentication
  private let connectTimeout: Duration
  private let requestTimeout: Duration
  private let trace: DirectTrace
  /// `nil` while there is none that takes requests; one that goes away lives on until its last answer.
  private var client: HTTP2Client?
  private var isReady = false
  private var isUnlocked = false
  /// Whether a request went out on it. One that ends before that may do so again and again.
  private var isUsed = false
  private var waiting: [Waiting] = []
  private var open: [UInt64: Waiting] = [:]
  private var lastNumber = 0

  /// - Parameter endpoint: in place of the app's own server.
  init(to endpoint: Endpoint? = nil, of runtime: AppRuntime, trace: @escaping DirectTrace) throws(TransportError) {
    loop = try EventLoop.start(name: "direct")
    self.endpoint = endpoint ?? runtime.endpoint
    proxy = runtime.proxy
    tls = runtime.tls
    authentication = runtime.credentials.authentication
    connectTimeout = runtime.limits.connectTimeout
    requestTimeout = runtime.limits.requestTimeout
    self.trace = trace
  }

  /// Sends a request as soon as there is a stream for it, and waits for its end.
  func send(_ request: Request) async -> End {
    await withCheckedContinuation { continuation in
      let isTaken = loop.execute { self.enqueue(request, continuation) }
      if !isTaken { continuation.resume(returning: .unreachable(stopped)) }
    }
  }

  /// Returns after that time, or at once when the loop has ended.
  func wait(for delay: Duration) async {
    await withCheckedContinuation { continuation in
      let isTaken = loop.execute {
        _ = self.loop.schedule(at: self.loop.now + delay) { continuation.resume() }
      }
      if !isTaken { continuation.resume() }
    }
  }

  /// Has later requests go over a new connection; those that are open may still be answered.
  func replace() {
    loop.execute { self.retire() }
  }

  /// Says goodbye to the server and ends the loop; not from the loop's own thread.
  func close() async {
    await withCheckedContinuation { continuation in
      let isTaken = loop.execute {
        self.retire()
        // The goodbye leaves at the end of this turn.
        self.loop.execute { continuation.resume() }
      }
      if !isTaken { continuation.resume() }
    }
    loop.stop()
  }

  // MARK: On the loop

  private var stopped: TransportError { TransportError(.cancelled, endpoint.description, "stopped") }

  private func enqueue(_ request: Request, _ continuation: CheckedContinuation<End, Never>) {
    lastNumber += 1
    let number = lastNumber
    // While it waits for a stream, a connection may have to be made and another's answer waited for.
    let timer = loop.schedule(at: loop.now + connectTimeout + requestTimeout) { self.expire(number) }
    waiting.append(Waiting(request: request, number: number, timer: timer, ended: continuation))
    pump()
  }

  private func pump() {
    if client == nil, !waiting.isEmpty { connect() }
    while isReady, let client, let next = waiting.first {
      guard isUnlocked || authentication == .certificate || client.openStreams == 0 else { return }
      let tag = UInt64(next.number)
      guard client.submit(shared: next.request.shared, own: next.request.own, body: next.request.body, tag: tag) else {
        // Its stream limit: the next answer or SETTINGS go on here.
        return
      }
      isUsed = true
      var sent = waiting.removeFirst()
      loop.cancel(sent.timer)
      sent.timer = loop.schedule(at: loop.now + requestTimeout) { self.expire(next.number) }
      open[tag] = sent
      trace(
        .sent(
          number: sent.number, fields: DirectEvent.fields(sent.request.shared, sent.request.own),
          bodySize: sent.request.body.count))
    }
  }

  private func connect() {
    isReady = false
    isUnlocked = false
    isUsed = false
    trace(.connecting(to: proxy.map { "\(endpoint) through \($0.endpoint)" } ?? endpoint.description))
    do throws(TransportError) {
      client = try HTTP2Client.connect(
        on: loop, to: endpoint, through: proxy, tls: tls, deadline: loop.now + connectTimeout, delegate: self)
    } catch {
      fail(error)
    }
  }

  private func retire() {
    let former = exchange(&client, with: nil)
    isReady = false
    former?.drain()
  }

  private func expire(_ number: Int) {
    if let place = waiting.firstIndex(where: { $0.number == number }) {
      let late = waiting.remove(at: place)
      let cause = "no stream was free within \(Quantity.text(connectTimeout + requestTimeout))"
      return end(late, .unreachable(TransportError(.timedOut, endpoint.description, cause)), cause)
    }
    guard let late = open.removeValue(forKey: UInt64(number)) else { return }
    client?.cancel(tag: UInt64(number))
    // A connection that does not answer is not worth another request.
    retire()
    end(late, .timedOut, "no answer within \(Quantity.text(requestTimeout))")
    pump()
  }

  private func end(_ waiting: Waiting, _ end: End, _ cause: String? = nil) {
    loop.cancel(waiting.timer)
    if let cause { trace(.unanswered(number: waiting.number, cause: cause)) }
    waiting.ended.resume(returning: end)
  }

  /// No connection can be made: what waits goes back.
  private func fail(_ error: TransportError) {
    trace(.disconnected(cause: error.description))
    let all = exchange(&waiting, with: [])
    for one in all { end(one, .unreachable(error)) }
  }
}

extension DirectConnection: HTTP2ClientDelegate {
  func clientReady(_ client: HTTP2Client) {
    guard client === self.client else { return }
    isReady = true
    trace(.connected(to: client.peer))
    pump()
  }

  func clientSettings(_ client: HTTP2Client, maxConcurrentStreams: Int) { pump() }

  func clientResponse(_ client: HTTP2Client, tag: UInt64, _ response: HTTP2Response) {
    guard let ended = open.removeValue(forKey: tag) else { return }
    // Any answer but a refusal of the credentials shows that they were accepted.
    if client === self.client, response.status != 403 { isUnlocked = true }
    trace(
      .received(
        number: ended.number, status: response.status,
        fields: DirectEvent.fields(response.fields).filter { $0.name != ":status" },
        body: String(decoding: response.body, as: UTF8.self)))
    end(ended, .answered(response))
    pump()
  }

  func clientStreamFailed(_ client: HTTP2Client, tag: UInt64, _ failure: StreamFailure) {
    guard let ended = open.removeValue(forKey: tag) else { return }
    switch failure {
    case .refused: end(ended, .refused("APNs did not process the stream"), "APNs did not process the stream")
    case .reset(let code):
      let cause = "APNs reset the stream: \(HTTP2Code.name(code))"
      end(ended, .lost(cause), cause)
    case .connectionLost: end(ended, .lost("the connection was lost"), "the connection was lost")
    }
    pump()
  }

  func clientGoAway(_ client: HTTP2Client, lastStream: Int32, code: UInt32, debugData: [UInt8]) {
    guard client === self.client else { return }
    self.client = nil
    isReady = false
    let reason = Reason(goAwayData: debugData.span).map { " \($0.text)" } ?? ""
    let cause = "APNs closes the connection: GOAWAY \(HTTP2Code.name(code))\(reason)"
    guard isUsed else { return fail(TransportError(.reset, client.peer, cause)) }
    trace(.disconnected(cause: cause))
    pump()
  }

  func clientPingAcknowledged(_ client: HTTP2Client) {}

  func clientHasRoom(_ client: HTTP2Client) { pump() }

  func clientClosed(_ client: HTTP2Client, _ error: TransportError?) {
    guard client === self.client else { return }
    self.client = nil
    isReady = false
    // One that broke in use says nothing against the next one; one that could not be made, or not be used, does.
    guard isUsed else { return fail(error ?? TransportError(.endedEarly, client.peer, "closed before it was used")) }
    if let error { trace(.disconnected(cause: error.description)) }
    pump()
  }
}
