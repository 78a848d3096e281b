import APNs
import Transport
import Wire

/// What the connections of one loop share. It is touched on that loop only, which is what makes `@unchecked Sendable`
/// true: each connection is made, and lives, on its loop.
final class LoopState: @unchecked Sendable {
  let loop: EventLoop
  let shared: MockShared
  var runner: ScriptRunner
  var random: SeededRandom
  var actions: [Script.Action] = []
  /// The fields of the answer that is being made.
  var fields = HeaderList()

  init(loop: EventLoop, shared: MockShared, seed: UInt64) {
    self.loop = loop
    self.shared = shared
    runner = ScriptRunner(shared.configuration.script, seed: seed)
    random = SeededRandom(seed: seed ^ 0x6d61_7274_6c65_7421)
  }
}

/// One client's connection: asks the behaviour and the script, and does what they say.
final class MockConnection: HTTP2ServerDelegate {
  private let state: LoopState
  private let shared: MockShared
  private let number: Int
  private var memory = Behaviour.Connection()
  private var isWide = false
  private var isKnown = false
  private var topic: [UInt8] = []
  private var topicNumber = -1

  init(state: LoopState, number: Int) {
    self.state = state
    shared = state.shared
    self.number = number
    shared.journal.opened()
    shared.journal.announced(streams: shared.configuration.streamsAtFirst)
  }

  // MARK: HTTP2ServerDelegate

  func serverRequest(_ connection: HTTP2ServerConnection, _ stream: HTTP2StreamID, _ request: HTTP2Request) {
    if !isKnown { readCertificate(connection) }
    let now = shared.now(state.loop)
    let fields = request.fields
    if let text = fields.value(of: ":path"), ChannelPath.mayBe(text), let path = ChannelPath(request.path) {
      return manage(path, request, stream, connection, now)
    }
    var id: UUID?
    var isBroadcast = false
    if let path = fields.value(of: ":path") { isBroadcast = BroadcastPath.isBroadcastPath(path) }
    if let text = fields.value(of: isBroadcast ? "apns-request-id" : "apns-id") { id = UUID(text) }
    countTopic(fields)
    shared.journal.received(
      id, topic: topicNumber, openStreams: connection.openStreams,
      providerTokens: shared.judge.distinctTokens)
    let place = shared.journal.limits.requests > 0 ? remember(request, stream, id, now) : nil
    var pending = Pending(stream: stream, id: id, isBroadcast: isBroadcast, place: place)
    if let refusal = shared.behaviour.refusal(of: fields, bodyLength: request.bodyLength, on: &memory, at: now) {
      return answer(pending, Answer(refusal), connection)
    }
    if isBroadcast, let refusal = shared.behaviour.channelRefusal(fields, request.path, shared.channels) {
      return answer(pending, Answer(refusal), connection)
    }
    perform(fields, &pending, connection, now)
  }

  func serverStreamClosed(
    _ connection: HTTP2ServerConnection, _ stream: HTTP2StreamID, code: UInt32, answered: Bool
  ) {}

  func serverSettingsAcknowledged(_ connection: HTTP2ServerConnection) {}
  func serverPingAcknowledged(_ connection: HTTP2ServerConnection) {}
  func serverGoAway(_ connection: HTTP2ServerConnection, lastStream: Int32, code: UInt32, debugData: [UInt8]) {}
  func serverClosed(_ connection: HTTP2ServerConnection, _ error: TransportError?) { shared.journal.closed() }

  // MARK: Script

  private struct Pending {
    let stream: HTTP2StreamID
    let id: UUID?
    let isBroadcast: Bool
    let place: Int?
    var delay = Duration.zero
    /// A new limit on streams, by rule; it holds until the next request is accepted.
    var limit: Int?
  }

  private func perform(
    _ fields: HeaderList, _ pending: inout Pending, _ connection: HTTP2ServerConnection, _ now: Moment
  ) {
    findActions(fields, now)
    for action in state.actions {
      switch action {
      case .answer(let answer): return self.answer(pending, answer, connection)
      case .delay(let shortest, let longest):
        let span = longest > shortest ? longest - shortest : .zero
        pending.delay += shortest + state.random.uniform(below: span)
      case .maxConcurrentStreams(let limit):
        pending.limit = limit
      case .goAway(let code, let last, let debugData, let closes):
        if !goAway(code, last, debugData, closes, pending, connection) { return }
      case .reset(let code):
        narrow(pending, connection)
        shared.journal.reset()
        return connection.reset(pending.stream, code: code)
      case .silence:
        narrow(pending, connection)
        return shared.journal.silent()
      case .silentConnection:
        shared.journal.silent()
        return connection.goSilent()
      case .close: return connection.close()
      case .abort: return connection.abort()
      }
    }
    answer(pending, .accepted, connection)
  }

  private func findActions(_ fields: HeaderList, _ now: Moment) {
    guard !shared.configuration.script.rules.isEmpty else { return }
    guard let path = fields.value(of: ":path") else { return }
    let topic = topic
    // A broadcast is known by its channel.
    if let channel = fields.value(of: "apns-channel-id") {
      return state.runner.findActions(
        token: channel, topic: topic.span, connection: number, time: now.instant - shared.began, into: &state.actions)
    }
    state.runner.findActions(
      token: path.extracting(DevicePath.prefix.utf8CodeUnitCount..<path.count), topic: topic.span, connection: number,
      time: now.instant - shared.began, into: &state.actions)
  }

  /// - Returns: whether the request is still to be answered.
  private func goAway(
    _ code: UInt32, _ last: Script.LastStream, _ debugData: String, _ closes: Bool, _ pending: Pending,
    _ connection: HTTP2ServerConnection
  ) -> Bool {
    shared.journal.goAwaySent()
    let lastStream: Int32? =
      switch last {
      case .newest: nil
      case .previous: max(0, pending.stream.number - 2)
      case .number(let number): number
      }
    connection.goAway(lastStream: lastStream, code: code, debugData: Array(debugData.utf8))
    let isDropped = lastStream.map { pending.stream.number > $0 } ?? false
    if closes {
      // A little later, so that answers which are under way get out.
      _ = state.loop.schedule(at: state.loop.now + .milliseconds(50) + pending.delay) { connection.close() }
    }
    return !isDropped
  }

  // MARK: Answers

  private func answer(_ pending: Pending, _ answer: Answer, _ connection: HTTP2ServerConnection) {
    guard pending.delay > .zero else { return send(pending, answer, connection) }
    _ = state.loop.schedule(at: state.loop.now + pending.delay) { self.send(pending, answer, connection) }
  }

  private func send(_ pending: Pending, _ answer: Answer, _ connection: HTTP2ServerConnection) {
    state.fields.removeAll()
    let id = pending.id ?? UUID.random(using: &state.random)
    let name: StaticString = pending.isBroadcast ? "apns-request-id" : "apns-id"
    state.fields.append(name: name, indexing: .firstUseOnly) { $0.append(uuid: id) }
    if shared.configuration.isSandbox {
      let unique = UUID.random(using: &state.random)
      state.fields.append(name: "apns-unique-id", indexing: .firstUseOnly) { $0.append(uuid: unique) }
    }
    if let seconds = answer.retryAfter { state.fields.append(name: "retry-after", value: String(seconds)) }
    let body = answer.isAccepted && answer.body == nil ? MockShared.noBody : content(answer)
    guard connection.respond(pending.stream, status: answer.status, fields: state.fields, body: body) else { return }
    shared.journal.answered(answer, pending.id, place: pending.place)
    if pending.limit != nil {
      narrow(pending, connection)
    } else if answer.isAccepted && !isWide {
      isWide = true
      announce(shared.configuration.streamsLater, connection)
    }
  }

  /// A call to the management of channels; no script spoils it.
  private func manage(
    _ path: ChannelPath, _ request: HTTP2Request, _ stream: HTTP2StreamID, _ connection: HTTP2ServerConnection,
    _ now: Moment
  ) {
    let made = shared.behaviour.answer(
      toManagement: request.fields, path, body: request.body, on: &memory, at: now, book: shared.channels,
      newID: UUID.random(using: &state.random))
    state.fields.removeAll()
    let id = request.text(of: "apns-request-id").flatMap { UUID($0) } ?? UUID.random(using: &state.random)
    state.fields.append(name: "apns-request-id", indexing: .firstUseOnly) { $0.append(uuid: id) }
    if let channel = made.channel { state.fields.append(name: "apns-channel-id", value: channel) }
    _ = connection.respond(stream, status: made.answer.status, fields: state.fields, body: content(made.answer))
  }

  private func content(_ answer: Answer) -> Bytes { Bytes(answer.content(at: shared.now(state.loop).time)) }

  private func narrow(_ pending: Pending, _ connection: HTTP2ServerConnection) {
    guard let limit = pending.limit else { return }
    isWide = false
    announce(limit, connection)
  }

  private func announce(_ limit: Int, _ connection: HTTP2ServerConnection) {
    connection.setMaxConcurrentStreams(limit)
    shared.journal.announced(streams: limit)
  }

  // MARK: What is noted

  private func readCertificate(_ connection: HTTP2ServerConnection) {
    isKnown = true
    guard shared.configuration.clientAuthority != nil, let subject = connection.stream.peerCertificateSubject else {
      return
    }
    let entry = subject.split(separator: ",").first { $0.hasPrefix("UID=") }
    memory.certificateTopic = entry.map { String($0.dropFirst(4)) } ?? ""
  }

  private func countTopic(_ fields: HeaderList) {
    guard let value = fields.value(of: "apns-topic") else {
      topic.removeAll(keepingCapacity: true)
      topicNumber = -1
      return
    }
    if topicNumber >= 0, equal(value, topic.span) { return }
    topic.removeAll(keepingCapacity: true)
    topic.append(span: value)
    topicNumber = shared.journal.number(ofTopic: String(decoding: topic, as: UTF8.self))
  }

  private func remember(_ request: HTTP2Request, _ stream: HTTP2StreamID, _ id: UUID?, _ now: Moment) -> Int? {
    let path = request.path
    return shared.journal.remember(
      Journal.Seen(
        connection: number, stream: stream.number, time: now.time,
        token: request.text(of: "apns-channel-id") ?? path.split(separator: "/").last.map { String($0) } ?? "",
        topic: request.text(of: "apns-topic") ?? "",
        apnsID: id, fields: request.fields.texts.map { Journal.Seen.Field(name: $0.name, value: $0.value) },
        body: request.body))
  }
}
