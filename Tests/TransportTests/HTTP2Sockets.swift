import TestSupport
import Wire

@testable import Transport

/// A client on a loop, and what it heard; tests wait for `state`.
///
/// `@unchecked Sendable` holds because all but `state`, which has a lock, is touched on the loop only.
final class SocketClient: HTTP2ClientDelegate, @unchecked Sendable {
  struct State: Sendable {
    var ready = false
    var limits: [Int] = []
    var words: [UInt64: [ClientRecorder.Word]] = [:]
    var ids: [UInt64: String] = [:]
    var goAways: [(lastStream: Int32, code: UInt32, debugData: [UInt8])] = []
    var pings = 0
    var refusedSubmissions = 0
    var closed = 0
    var error: TransportError?
    /// Calls that came after `clientClosed`; there must be none.
    var late = 0

    var wordCount: Int { words.values.reduce(0) { $0 + $1.count } }
  }

  let loop: EventLoop
  let state = Monitor(State())
  private(set) var client: HTTP2Client?
  private let shared = SessionPair.shared()
  /// Requests that wait for room, sent as room comes.
  private var waiting: [(tag: UInt64, body: Bytes)] = []

  init(
    _ loop: EventLoop, _ endpoint: Endpoint, tls: TLSContext?, serverName: String? = "localhost",
    within limit: Duration = .seconds(20)
  ) {
    self.loop = loop
    loop.execute {
      self.client = try? HTTP2Client.connect(
        on: loop, to: endpoint, tls: tls, serverName: serverName, deadline: loop.now + limit, delegate: self)
    }
  }

  func act(_ action: @escaping @Sendable (HTTP2Client) -> Void) {
    loop.execute { if let client = self.client { action(client) } }
  }

  /// Sends these requests as fast as the connection takes them.
  func send(_ tags: Range<UInt64>, body: String = "{}") {
    loop.execute {
      let body = Bytes(body)
      self.waiting = tags.map { ($0, body) } + self.waiting
      self.waiting.sort { $0.tag > $1.tag }
      self.pump()
    }
  }

  private func pump() {
    guard let client else { return }
    while let next = waiting.last {
      guard client.submit(shared: shared, own: SessionPair.own(next.tag), body: next.body, tag: next.tag) else {
        state.update { $0.refusedSubmissions += 1 }
        return
      }
      waiting.removeLast()
    }
  }

  private func note(_ change: (inout State) -> Void) {
    state.update {
      if $0.closed > 0 { $0.late += 1 }
      change(&$0)
    }
  }

  func clientReady(_ client: HTTP2Client) {
    note { $0.ready = true }
    pump()
  }
  func clientSettings(_ client: HTTP2Client, maxConcurrentStreams: Int) {
    note { $0.limits.append(maxConcurrentStreams) }
    pump()
  }
  func clientResponse(_ client: HTTP2Client, tag: UInt64, _ response: HTTP2Response) {
    let word = ClientRecorder.Word.response(
      status: response.status, body: String(decoding: response.body, as: UTF8.self))
    let id = response.text(of: "apns-id")
    note {
      $0.words[tag, default: []].append(word)
      $0.ids[tag] = id
    }
    pump()
  }
  func clientStreamFailed(_ client: HTTP2Client, tag: UInt64, _ failure: StreamFailure) {
    note { $0.words[tag, default: []].append(.failed(failure)) }
    pump()
  }
  func clientGoAway(_ client: HTTP2Client, lastStream: Int32, code: UInt32, debugData: [UInt8]) {
    note { $0.goAways.append((lastStream, code, debugData)) }
  }
  func clientPingAcknowledged(_ client: HTTP2Client) { note { $0.pings += 1 } }
  func clientClosed(_ client: HTTP2Client, _ error: TransportError?) {
    note {
      $0.closed += 1
      $0.error = error
    }
    state.update { $0.late = $0.closed > 1 ? 1 : $0.late }
    self.client = nil
  }

  func waitForWords(_ count: Int) -> Bool { state.wait { $0.wordCount >= count } }
  func waitForEnd() -> Bool { state.wait { $0.closed > 0 } }
}

/// A server on a loop of its own, answered by a closure; and its connections, for tests that steer them.
///
/// `@unchecked Sendable` holds because all but `state`, which has a lock, is set once, before the server listens.
final class SocketServer: @unchecked Sendable {
  struct State: Sendable {
    var connections: [HTTP2ServerConnection] = []
    var streams: [HTTP2StreamID] = []
    var paths: [String] = []
    var bodyLengths: [Int] = []
    var keptLengths: [Int] = []
    var closedStreams = 0
    var closedConnections = 0
    var settingsAcknowledgements = 0
    var goAways = 0
  }
  typealias Answer = @Sendable (HTTP2ServerConnection, HTTP2StreamID, HTTP2Request) -> Void

  let loop: EventLoop
  let state = Monitor(State())
  let server: HTTP2Server
  var endpoint: Endpoint { server.endpoint }

  /// Runs `body` with a server and ends it afterwards. TLS unless `secure` is false.
  static func run(
    secure: Bool = true, limits: HTTP2Limits = HTTP2Server.serverLimits, answer: @escaping Answer,
    _ body: (SocketServer, _ clientTLS: TLSContext?) throws -> Void
  ) throws {
    var serverTLS: TLSContext?
    var clientTLS: TLSContext?
    if secure {
      let authority = try CertificateAuthority(name: "test authority")
      serverTLS = try TLSContext.server(
        identity: try authority.issueServer(names: ["localhost", "127.0.0.1"]), applicationProtocols: ["h2"])
      clientTLS = try TLSContext.client(trust: .pem(try authority.pem()))
    }
    let server = try SocketServer(tls: serverTLS, limits: limits, answer: answer)
    defer {
      server.server.close()
      server.loop.stop()
    }
    try body(server, clientTLS)
  }

  private init(tls: TLSContext?, limits: HTTP2Limits, answer: @escaping Answer) throws {
    loop = try EventLoop.start(name: "http2-test")
    let state = state
    server = try HTTP2Server.listen(
      on: [loop], at: Endpoint(host: "127.0.0.1", port: 0), tls: tls, limits: limits
    ) { connection in
      state.update { $0.connections.append(connection) }
      return Hearer(state: state, answer: answer)
    }
  }

  /// Has the newest connection do something, on its loop.
  func act(_ action: @escaping @Sendable (HTTP2ServerConnection) -> Void) {
    guard let connection = state.value.connections.last else { return }
    loop.execute { action(connection) }
  }

  private final class Hearer: HTTP2ServerDelegate {
    let state: Monitor<State>
    let answer: Answer

    init(state: Monitor<State>, answer: @escaping Answer) {
      self.state = state
      self.answer = answer
    }

    func serverRequest(_ connection: HTTP2ServerConnection, _ stream: HTTP2StreamID, _ request: HTTP2Request) {
      let (path, length, kept) = (request.path, request.bodyLength, request.body.count)
      answer(connection, stream, request)
      state.update {
        $0.streams.append(stream)
        $0.paths.append(path)
        $0.bodyLengths.append(length)
        $0.keptLengths.append(kept)
      }
    }
    func serverStreamClosed(
      _ connection: HTTP2ServerConnection, _ stream: HTTP2StreamID, code: UInt32, answered: Bool
    ) {
      state.update { $0.closedStreams += 1 }
    }
    func serverSettingsAcknowledged(_ connection: HTTP2ServerConnection) {
      state.update { $0.settingsAcknowledgements += 1 }
    }
    func serverPingAcknowledged(_ connection: HTTP2ServerConnection) {}
    func serverGoAway(_ connection: HTTP2ServerConnection, lastStream: Int32, code: UInt32, debugData: [UInt8]) {
      state.update { $0.goAways += 1 }
    }
    func serverClosed(_ connection: HTTP2ServerConnection, _ error: TransportError?) {
      state.update { $0.closedConnections += 1 }
    }
  }
}
