import APNs
import Glibc
import Service
import Synchronization
import Transport
import Wire

/// The APNs leg alone: the service's own HTTP/2 client and header fields against a server, without Kafka and without
/// decisions. One loop, and so one thread, as `h2load -t 1` has.
///
///     microbench leg --port N --ca-file PATH [--count N] [--connections N] [--streams N] [--payload BYTES]
enum Leg {
  static func run(_ options: Options) throws {
    guard let port = UInt16(exactly: options.port), let file = options.caFile else {
      print("leg needs --port and --ca-file")
      return
    }
    let loop = try EventLoop.start(name: "leg")
    defer { loop.stop() }
    let tls = try TLSContext.client(trust: .file(file))
    let end = Mutex<String?>(nil)
    let start = ContinuousClock.now
    loop.execute {
      LegSender(loop: loop, options: options) { text in end.withLock { $0 = text } }
        .connect(to: Endpoint(host: "localhost", port: port), tls)
    }
    while true {
      if let text = end.withLock({ $0 }) {
        let span = ContinuousClock.now - start
        let seconds = Double(span.components.seconds) + Double(span.components.attoseconds) / 1e18
        print("leg: \(options.count) requests in \(seconds) s; \(text)")
        return
      }
      // Looks in a hundred times a second, so that the waiting costs nothing.
      _ = poll(nil, 0, 10)
    }
  }
}

/// Keeps all streams of all connections busy until so many requests have been answered.
private final class LegSender: HTTP2ClientDelegate {
  private let loop: EventLoop
  private let options: Options
  private let onEnd: (String) -> Void
  private let notification: Notification
  private let shared: HeaderList
  private var clients: [HTTP2Client] = []
  private var names: [ObjectIdentifier: SentNames] = [:]
  private var own = HeaderWriter()
  private var unsent: Int
  private var unanswered: Int
  private var refused = 0

  init(loop: EventLoop, options: Options, onEnd: @escaping (String) -> Void) {
    self.loop = loop
    self.options = options
    self.onEnd = onEnd
    unsent = options.count
    unanswered = options.count
    let token = String(repeating: "ab12", count: 16)
    let text = String(repeating: "x", count: options.payload - 20)
    let payload = #"{"aps":{"alert":"\#(text)"}}"#
    let storage = Array((token + payload).utf8)
    notification = Notification(
      storage: storage, token: ByteRange(0, 64), payload: ByteRange(64, storage.count), expiration: 1_999_999_999,
      apnsID: UUID(high: 0x0f8f_ad5b_d9cb_469f, low: 0xa165_7086_7728_950e))
    let fields = SharedHeaders(
      of: notification, bundleID: "com.example.shop", authority: Array("localhost".utf8),
      authorization: Array(("bearer " + String(repeating: "x", count: 200)).utf8))
    var writer = HeaderWriter()
    RequestHeaders.addPseudoHeaders(fields, to: &writer)
    RequestHeaders.addShared(fields, to: &writer)
    shared = writer.list
  }

  func connect(to endpoint: Endpoint, _ tls: TLSContext) {
    for _ in 0..<options.connections {
      do {
        let client = try HTTP2Client.connect(
          on: loop, to: endpoint, tls: tls, deadline: loop.now + .seconds(10), delegate: self)
        clients.append(client)
      } catch {
        onEnd("\(error)")
      }
    }
  }

  private func fill(_ client: HTTP2Client) {
    while unsent > 0, client.hasRoom, client.openStreams < options.streams {
      own.list.removeAll()
      RequestHeaders.addPath(notification, to: &own)
      RequestHeaders.addOwn(notification, sentNames: &names[ObjectIdentifier(client), default: SentNames()], to: &own)
      let body = Bytes(notification.storage, notification.payload)
      guard client.submit(shared: shared, own: own.list, body: body, tag: UInt64(unsent)) else { return }
      unsent -= 1
    }
  }

  func clientSettings(_ client: HTTP2Client, maxConcurrentStreams: Int) { fill(client) }
  func clientHasRoom(_ client: HTTP2Client) { fill(client) }

  func clientResponse(_ client: HTTP2Client, tag: UInt64, _ response: HTTP2Response) {
    if response.status != 200 { refused += 1 }
    unanswered -= 1
    if unanswered == 0 { onEnd("\(refused) refused") } else { fill(client) }
  }

  func clientStreamFailed(_ client: HTTP2Client, tag: UInt64, _ failure: StreamFailure) { onEnd("\(failure)") }
  func clientReady(_ client: HTTP2Client) {}
  func clientGoAway(_ client: HTTP2Client, lastStream: Int32, code: UInt32, debugData: [UInt8]) {}
  func clientPingAcknowledged(_ client: HTTP2Client) {}
  func clientClosed(_ client: HTTP2Client, _ error: TransportError?) { if let error { onEnd("\(error)") } }
}
