import APNs
import TestSupport
import Wire

@testable import MockAPNs
@testable import Transport

/// A request as the behaviour sees it, in order unless a test changes it.
struct TestRequest {
  var fields: [(name: String, value: String)] = [
    (":method", "POST"), (":scheme", "https"), (":path", "/3/device/00aa11bb"), (":authority", "localhost"),
    ("apns-topic", "com.example.shop"), ("apns-push-type", "alert"), ("apns-priority", "10"),
    ("apns-id", "123e4567-e89b-12d3-a456-426614174000"),
  ]
  var bodyLength = 20

  /// With another value of that field; `nil` takes it away.
  func with(_ name: String, _ value: String?) -> TestRequest {
    var request = self
    request.fields.removeAll { $0.name == name }
    if let value {
      request.fields.insert((name, value), at: name.hasPrefix(":") ? 0 : request.fields.count)
    }
    return request
  }

  var list: HeaderList {
    var list = HeaderList()
    for field in fields { list.append(customName: field.name, value: field.value) }
    return list
  }
}

/// Times and tokens of the tests.
enum TestTime {
  static let now: Int64 = 1_790_000_000

  /// So many seconds after the beginning, on both clocks.
  static func moment(_ seconds: Int64 = 0) -> Moment {
    Moment(
      instant: Instant(nanoseconds: (1_000_000 + seconds) * 1_000_000_000), time: UnixTime(seconds: now + seconds))
  }
}

extension ProviderKey {
  /// The value of `authorization` with a token of this key.
  func bearer(issuedAt: UnixTime, teamID: String? = nil) throws -> String {
    let text = try ProviderToken.text(keyID: keyID, teamID: teamID ?? self.teamID, issuedAt: issuedAt) {
      try key.sign($0)
    }
    return "bearer " + String(decoding: text, as: UTF8.self)
  }
}

/// A client of the mock: sends requests as the connection takes them, and tells what came back.
///
/// `@unchecked Sendable` holds because all but `state`, which has a lock, is touched on its loop only.
final class TestClient: HTTP2ClientDelegate, @unchecked Sendable {
  enum Word: Hashable, Sendable {
    case response(UInt16, String)
    case failed(StreamFailure)
  }
  struct State: Sendable {
    var words: [UInt64: Word] = [:]
    var ids: [UInt64: String] = [:]
    var uniqueIDs: [UInt64: String] = [:]
    var limits: [Int] = []
    var goAways: [(lastStream: Int32, code: UInt32, debugData: String)] = []
    var pings = 0
    var isClosed = false
    var error: TransportError?
  }

  let state = Monitor(State())
  private let loop: EventLoop
  private let tls: TLSContext
  private var client: HTTP2Client?
  private var waiting: [(tag: UInt64, own: HeaderList)] = []
  private let shared: HeaderList

  init(_ server: MockServer, authorization: String? = nil, identity: Identity? = nil, topic: String? = nil) throws {
    loop = try EventLoop.start(name: "test-client")
    tls = try TLSContext.client(trust: .pem(server.authorityPEM), identity: identity)
    var list = HeaderList()
    list.append(name: ":method", value: "POST")
    list.append(name: ":scheme", value: "https")
    list.append(name: ":authority", value: "localhost")
    list.append(name: "apns-topic", value: topic ?? "com.example.shop")
    list.append(name: "apns-push-type", value: "alert")
    if let authorization { list.append(name: "authorization", value: authorization) }
    shared = list
    let endpoint = server.endpoint
    loop.execute { [self] in
      client = try? HTTP2Client.connect(
        on: loop, to: endpoint, tls: tls, serverName: "localhost", deadline: loop.now + .seconds(20), delegate: self)
    }
  }

  /// Ends the connection and the loop.
  func stop() { loop.stop() }

  /// Requests with these tags; the token of each by the closure, its `apns-id` made of the tag.
  func send(_ tags: ClosedRange<UInt64>, token: @escaping @Sendable (UInt64) -> String = { _ in "00aa11bb" }) {
    loop.execute { [self] in
      for tag in tags.reversed() {
        var own = HeaderList()
        own.append(name: ":path", value: "/3/device/\(token(tag))")
        own.append(name: "apns-id", value: UUID(high: 0, low: tag).description)
        waiting.insert((tag, own), at: 0)
      }
      pump()
    }
  }

  func ping() { loop.execute { self.client?.ping() } }

  func wait(words: Int) -> Bool { state.wait { $0.words.count >= words } }

  private func pump() {
    while let next = waiting.first, let client,
      client.submit(shared: shared, own: next.own, body: Bytes(#"{"aps":{}}"#), tag: next.tag)
    {
      waiting.removeFirst()
    }
  }

  func clientReady(_ client: HTTP2Client) { pump() }
  func clientSettings(_ client: HTTP2Client, maxConcurrentStreams: Int) {
    state.update { $0.limits.append(maxConcurrentStreams) }
    pump()
  }
  func clientResponse(_ client: HTTP2Client, tag: UInt64, _ response: HTTP2Response) {
    let id = response.text(of: "apns-id")
    let unique = response.text(of: "apns-unique-id")
    let word = Word.response(response.status, String(decoding: response.body, as: UTF8.self))
    state.update {
      $0.words[tag] = word
      $0.ids[tag] = id
      $0.uniqueIDs[tag] = unique
    }
    pump()
  }
  func clientStreamFailed(_ client: HTTP2Client, tag: UInt64, _ failure: StreamFailure) {
    state.update { $0.words[tag] = .failed(failure) }
    pump()
  }
  func clientGoAway(_ client: HTTP2Client, lastStream: Int32, code: UInt32, debugData: [UInt8]) {
    state.update { $0.goAways.append((lastStream, code, String(decoding: debugData, as: UTF8.self))) }
  }
  func clientPingAcknowledged(_ client: HTTP2Client) { state.update { $0.pings += 1 } }
  func clientClosed(_ client: HTTP2Client, _ error: TransportError?) {
    self.client = nil
    state.update {
      $0.isClosed = true
      $0.error = error
    }
  }
}
