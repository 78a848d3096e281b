import APNs
import Delivery
import Transport
import Wire

/// One connection of an app on a lane: turns what HTTP/2 says into what the pool and the delivery want to know.
///
/// The client holds it until the connection has ended.
final class LaneConnection: HTTP2ClientDelegate {
  let id: ConnectionID
  private unowned let app: LaneApp
  /// `nil` only while the connection is being made.
  var client: HTTP2Client?
  var sentNames = SentNames()
  var closeCause: CloseCause?
  /// When a PING was sent that is not acknowledged yet.
  var pingedAt: Instant?
  private var hasGoAway = false
  private var phase: ConnectionPhase? = .connecting

  init(id: ConnectionID, app: LaneApp) {
    self.id = id
    self.app = app
  }

  func clientReady(_ client: HTTP2Client) { app.ready(self) }

  func clientSettings(_ client: HTTP2Client, maxConcurrentStreams: Int) {
    app.settings(self, limit: maxConcurrentStreams)
  }

  func clientResponse(_ client: HTTP2Client, tag: UInt64, _ response: HTTP2Response) {
    app.answered(self, tag: tag, Response(response))
  }

  func clientStreamFailed(_ client: HTTP2Client, tag: UInt64, _ failure: StreamFailure) {
    app.failed(self, tag: tag, failure)
  }

  func clientGoAway(_ client: HTTP2Client, lastStream: Int32, code: UInt32, debugData: [UInt8]) {
    // A server may say it twice: first that it will go, then which streams it still answers.
    app.wentAway(self, code: code, reason: Reason(goAwayData: debugData.span), isFirst: !hasGoAway)
    hasGoAway = true
  }

  func clientPingAcknowledged(_ client: HTTP2Client) { app.pingAcknowledged(self) }

  func clientHasRoom(_ client: HTTP2Client) { app.roomAgain(self) }

  func clientClosed(_ client: HTTP2Client, _ error: TransportError?) { app.closed(self, error) }

  // MARK: Counting

  /// Moves the connection to another phase in the metrics; `nil`: it is gone.
  func count(_ next: ConnectionPhase?, _ metrics: MetricShard) {
    if let phase { metrics.add(.connections(phase), app: app.index, -1) }
    if let next, phase != nil { metrics.add(.connections(next), app: app.index) }
    phase = phase == nil ? nil : next
  }

  func cause(of error: TransportError?) -> CloseCause {
    guard let error else { return closeCause ?? .idle }
    switch ConnectionFailure(error) {
    case .unreachable: return .unreachable
    case .tls, .credentials: return .tls
    case .closed, .silent: return closeCause ?? .lost
    }
  }
}

extension CloseCause {
  init(_ reason: EndReason) {
    switch reason {
    case .notMade: self = .unreachable
    case .unresponsive: self = .unresponsive
    case .replaced: self = .replaced
    case .unneeded: self = .idle
    }
  }
}

extension Response {
  /// Reads the header fields and the body that APNs answers with.
  init(_ answer: HTTP2Response) {
    self = Response.parse(
      status: answer.status, body: answer.body.span, apnsID: answer.value(of: "apns-id"),
      uniqueID: answer.value(of: "apns-unique-id"), retryAfter: answer.value(of: "retry-after"))
    // What a broadcast's answer has in its place.
    if apnsID == nil, let text = answer.value(of: "apns-request-id") { apnsID = UUID(text) }
  }
}

extension ConnectionFailure {
  init(_ error: TransportError?) {
    switch error?.kind {
    case .resolve, .connect, .timedOut, .proxyRefused, .system, .bind, .cancelled: self = .unreachable
    case .handshake, .certificateRefused, .applicationProtocol: self = .tls
    case .alert, .file, .credential: self = .credentials
    case .reset, .endedEarly, .protocolViolation, nil: self = .closed
    }
  }
}

/// The shared header fields of an app, made once for each kind of push and provider token.
struct HeaderCache {
  private let runtime: AppRuntime
  /// One for each token version in use: the current one, and the one before on connections that may not change yet.
  private var generations: [(version: TokenVersion, authorization: [UInt8], lists: [HeaderList?])] = []
  private static let mostGenerations = 2

  init(_ runtime: AppRuntime) { self.runtime = runtime }

  /// - Returns: `nil` when the token of that version is gone.
  mutating func list(for notification: borrowing Notification, _ version: TokenVersion) -> HeaderList? {
    guard let place = generation(version) else { return nil }
    let slot = SharedHeaders.slot(for: notification)
    if let slot, let list = generations[place].lists[slot] { return list }
    let shared = SharedHeaders(
      of: notification, bundleID: runtime.bundleID, authority: runtime.authority,
      authorization: generations[place].authorization)
    var writer = HeaderWriter()
    RequestHeaders.addPseudoHeaders(shared, to: &writer)
    RequestHeaders.addShared(shared, to: &writer)
    if let slot { generations[place].lists[slot] = writer.list }
    return writer.list
  }

  private mutating func generation(_ version: TokenVersion) -> Int? {
    if let place = generations.firstIndex(where: { $0.version == version }) { return place }
    var authorization: [UInt8] = []
    if case .token(let source) = runtime.credentials {
      guard let signed = source.signed(version) else { return nil }
      authorization = signed.authorization
    }
    if generations.count == Self.mostGenerations { generations.removeFirst() }
    generations.append((version, authorization, Array(repeating: nil, count: SharedHeaders.slotCount)))
    return generations.count - 1
  }
}
