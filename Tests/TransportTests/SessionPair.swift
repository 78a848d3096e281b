import Wire

@testable import Transport

/// What a test's client heard.
final class ClientRecorder: HTTP2ClientEvents {
  enum Word: Equatable {
    case response(status: UInt16, body: String)
    case failed(StreamFailure)
  }

  var words: [UInt64: [Word]] = [:]
  var fields: [UInt64: HeaderList] = [:]
  var limits: [UInt32] = []
  var goAways: [HTTP2GoAway] = []
  var pings = 0
  /// Called for each response; tests submit and cancel from within.
  var onResponse: ((UInt64) -> Void)?

  func responded(tag: UInt64, _ response: HTTP2Response) {
    words[tag, default: []].append(
      .response(status: response.status, body: String(decoding: response.body, as: UTF8.self)))
    fields[tag] = response.fields
    onResponse?(tag)
  }
  func failed(tag: UInt64, _ failure: StreamFailure) { words[tag, default: []].append(.failed(failure)) }
  func settingsArrived(concurrentStreams: UInt32) { limits.append(concurrentStreams) }
  func goAwayArrived(_ goAway: HTTP2GoAway) { goAways.append(goAway) }
  func pingAcknowledged() { pings += 1 }
}

/// What a test's server heard; it answers at once if `answer` says so.
final class ServerRecorder: HTTP2ServerEvents {
  struct Seen {
    var stream: HTTP2StreamID
    var method: String
    var path: String
    var fields: [(name: String, value: String)]
    var body: String
    var bodyLength: Int
  }

  var seen: [Seen] = []
  var closed: [(stream: HTTP2StreamID, code: UInt32, answered: Bool)] = []
  var goAways: [HTTP2GoAway] = []
  var settingsAcknowledgements = 0
  var open = 0
  var mostOpen = 0
  var onRequest: ((Seen) -> Void)?

  func requested(_ stream: HTTP2StreamID, _ request: HTTP2Request) {
    open += 1
    mostOpen = max(mostOpen, open)
    let request = Seen(
      stream: stream, method: request.method, path: request.path, fields: request.fields.texts,
      body: String(decoding: request.body, as: UTF8.self), bodyLength: request.bodyLength)
    seen.append(request)
    onRequest?(request)
  }
  func streamClosed(_ stream: HTTP2StreamID, code: UInt32, answered: Bool) {
    open -= 1
    closed.append((stream, code, answered))
  }
  func settingsAcknowledged() { settingsAcknowledgements += 1 }
  func goAwayArrived(_ goAway: HTTP2GoAway) { goAways.append(goAway) }
  func pingAcknowledged() {}
}

/// A client's and a server's session joined in memory: what one frames the other reads.
final class SessionPair {
  let client: HTTP2Session
  let server: HTTP2Session
  let clientHeard = ClientRecorder()
  let serverHeard = ServerRecorder()
  /// How many bytes are handed over at a time; small numbers cut frames at every place.
  var piece = Int.max

  init(client: HTTP2Limits = HTTP2Limits(), server: HTTP2Limits = HTTP2Limits()) throws {
    self.client = try HTTP2Session(role: .client, limits: client)
    self.server = try HTTP2Session(role: .server, limits: server)
  }

  /// Moves bytes both ways until nothing moves.
  func run() throws {
    while try moveToServer() || moveToClient() {}
  }

  @discardableResult
  func moveToServer() throws -> Bool {
    try client.produce(limit: 1 << 20)
    client.handEvents(toClient: clientHeard)
    let bytes = take(&client.output)
    try feed(bytes, to: server) { server.handEvents(toServer: serverHeard) }
    return !bytes.isEmpty
  }

  @discardableResult
  func moveToClient() throws -> Bool {
    try server.produce(limit: 1 << 20)
    server.handEvents(toServer: serverHeard)
    let bytes = take(&server.output)
    try feed(bytes, to: client) { client.handEvents(toClient: clientHeard) }
    return !bytes.isEmpty
  }

  private func take(_ output: inout [UInt8]) -> [UInt8] {
    let bytes = output
    output.removeAll()
    return bytes
  }

  func feed(_ bytes: [UInt8], to session: HTTP2Session, then look: () -> Void) throws {
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start.addingReportingOverflow(piece).overflow ? .max : start + piece)
      defer { look() }
      try session.receive(bytes.span.extracting(start..<end))
      start = end
    }
  }

  static func shared() -> HeaderList {
    var list = HeaderList()
    list.append(name: ":method", value: "POST")
    list.append(name: ":scheme", value: "https")
    list.append(name: ":authority", value: "push.example")
    list.append(name: "authorization", value: "bearer abc", indexing: .never)
    list.append(name: "apns-topic", value: "com.example.app")
    return list
  }

  static func own(_ number: UInt64) -> HeaderList {
    var list = HeaderList()
    list.append(name: ":path", value: "/3/device/\(number)", indexing: .never)
    list.append(name: "apns-id", value: "id-\(number)", indexing: .firstUseOnly)
    return list
  }

  @discardableResult
  func submit(_ tag: UInt64, body: String = "{}") -> Bool {
    client.submitRequest(shared: Self.shared(), own: Self.own(tag), body: Bytes(body), tag: tag) != nil
  }

  @discardableResult
  func answer(_ stream: HTTP2StreamID, _ status: UInt16, _ body: String = "", id: String? = nil) -> Bool {
    var fields = HeaderList()
    if let id { fields.append(name: "apns-id", value: id) }
    return server.submitResponse(slot: stream.slot, status: status, fields: fields, body: Bytes(body))
  }
}
