internal import Transport
internal import Wire

/// One connection that is made, waits for the server's SETTINGS, asks for nothing once, and ends. It lives on its loop;
/// the client holds it.
final class Handshake: HTTP2ClientDelegate {
  /// What the server told.
  struct Outcome: Sendable {
    /// How many streams it allows at once.
    var streams: Int
    /// Its clock, if it tells that.
    var date: UnixTime?
    /// This machine's clock when that came.
    var receivedAt: UnixTime
  }

  /// An answer to the question is not waited for any longer.
  private static let patience = Duration.seconds(2)

  private let ended: CheckedContinuation<Result<Outcome, TransportError>, Never>
  private let endpoint: Endpoint
  private let loop: EventLoop
  private var outcome: Outcome?
  private var timer: Timer?

  private init(
    _ endpoint: Endpoint, on loop: EventLoop,
    ended: CheckedContinuation<Result<Outcome, TransportError>, Never>
  ) {
    self.endpoint = endpoint
    self.loop = loop
    self.ended = ended
  }

  static func run(
    on loop: EventLoop, _ endpoint: Endpoint, _ tls: TLSContext, _ limit: Duration, until end: Instant
  ) async -> Result<Outcome, TransportError> {
    await withCheckedContinuation { continuation in
      let isTaken = loop.execute {
        guard loop.now < end else {
          return continuation.resume(
            returning: .failure(TransportError(.timedOut, endpoint.description, "not tried: the time is up")))
        }
        do throws(TransportError) {
          try HTTP2Client.connect(
            on: loop, to: endpoint, tls: tls, deadline: min(end, loop.now + limit),
            delegate: Handshake(endpoint, on: loop, ended: continuation))
        } catch {
          continuation.resume(returning: .failure(error))
        }
      }
      guard isTaken else {
        return continuation.resume(returning: .failure(TransportError(.cancelled, endpoint.description, "stopped")))
      }
    }
  }

  func clientReady(_ client: HTTP2Client) {}

  func clientSettings(_ client: HTTP2Client, maxConcurrentStreams: Int) {
    guard outcome == nil else { return }
    outcome = Outcome(streams: maxConcurrentStreams, date: nil, receivedAt: ServiceClock.now().time)
    var question = HeaderList()
    question.append(name: ":method", value: "GET")
    question.append(name: ":scheme", value: "https")
    question.append(name: ":authority", value: endpoint.host)
    question.append(name: ":path", value: "/")
    guard client.submit(shared: question, own: HeaderList(), body: Bytes([]), tag: 1) else { return client.close() }
    timer = loop.schedule(at: loop.now + Self.patience) {
      client.cancel(tag: 1)
      client.close()
    }
  }

  func clientResponse(_ client: HTTP2Client, tag: UInt64, _ response: HTTP2Response) {
    outcome?.date = response.text(of: "date").flatMap(HTTPDate.time)
    outcome?.receivedAt = ServiceClock.now().time
    client.close()
  }

  func clientStreamFailed(_ client: HTTP2Client, tag: UInt64, _ failure: StreamFailure) { client.close() }

  func clientGoAway(_ client: HTTP2Client, lastStream: Int32, code: UInt32, debugData: [UInt8]) {}

  func clientPingAcknowledged(_ client: HTTP2Client) {}

  func clientClosed(_ client: HTTP2Client, _ error: TransportError?) {
    loop.cancel(timer)
    if let outcome { return ended.resume(returning: .success(outcome)) }
    let reason = TransportError(.endedEarly, endpoint.description, "the server closed the connection before SETTINGS")
    ended.resume(returning: .failure(error ?? reason))
  }
}
