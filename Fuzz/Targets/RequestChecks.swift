import APNs
import Delivery
import Wire

/// Whatever record comes, the decoder answers; what it lets through keeps the contract and is understood alike when it
/// is said in another form; and what is published about it can be read.
enum RequestChecks {
  private static let topics = ["push.requests", "push.deferred"]
  private static let apps = AppTable([
    AppRules(name: "shop", bundleID: "com.example.shop", environment: .production),
    AppRules(
      name: "bank", bundleID: "com.example.bank", environment: .sandbox, defaultExpiration: .seconds(3600),
      pushTypes: ["newtype": ".x"]),
    AppRules(
      name: "cert", bundleID: "com.example.cert", environment: .production,
      certificate: CertificateRules(topics: ["com.example.cert"])),
  ])
  private static let outputs: [OutputForm] = {
    var (event, protobuf) = (OutputForm(), OutputForm())
    event.cloudEvents = .structured
    protobuf.format = .protobuf
    return [OutputForm(), event, protobuf]
  }()
  private static let now = Moment(instant: Instant(nanoseconds: 0), time: UnixTime(seconds: 1_790_000_000))

  /// - Parameter input: lines of `name: value`, an empty line, and the record's value.
  static func check(record input: [UInt8]) throws {
    var headers: [(name: String, value: [UInt8]?)] = []
    var rest = input
    while !rest.isEmpty {
      let (lines, after) = rest.lines(1)
      rest = after
      guard !lines[0].isEmpty else { break }
      let parts = lines[0].split(separator: 0x3a, maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(decoding: parts[0], as: UTF8.self)
      headers.append((name, parts.count > 1 ? Array(parts[1].drop { $0 == 0x20 }) : nil))
    }
    try check(rest, headers: headers)
  }

  static func check(_ value: [UInt8], headers: [(name: String, value: [UInt8]?)]) throws {
    for topic in topics.indices {
      let record = Record(
        source: PartitionID(topic: UInt32(topic), partition: 3), offset: 42, timestamp: nil,
        body: RecordBody(key: Array("k".utf8), value: value, headers: headers))
      var decoder = RequestDecoder(topics: topics, deferredTopic: topics[1])
      switch decoder.decode(record, apps: apps, now: now) {
      case .request(let request):
        try check(request)
        try checkPublishing(of: ResultSubject(request, source: source(record), attempts: 1, requestedAt: now.time))
        if topic == 0 { try checkOtherForm(of: request) }
      case .invalid(let invalid):
        try hold(!invalid.message.isEmpty && invalid.message.utf8.count < 1000, "a message: \(invalid.message)")
        try checkPublishing(of: ResultSubject(invalid, source: source(record), requestedAt: now.time))
      case .tombstone: throw Broken(description: "a tombstone with a value")
      }
    }
  }

  private static func source(_ record: Record) -> Source { Source(partition: record.source, offset: record.offset) }

  /// What APNs and the rest of the program rely on.
  private static func check(_ request: Request) throws {
    let push = request.notification
    func bytes(_ range: ByteRange) -> [UInt8] { Array(push.storage[range.indices]) }
    for token in request.tokens.isEmpty ? [push.token] : request.tokens where !(push.isBroadcast || token.isEmpty) {
      try hold((2...RequestLimits.tokenDigits).contains(token.count) && token.count % 2 == 0, "a token's length")
      try hold(Hex.isDigits(bytes(token).span), "the token \(bytes(token))")
    }
    try hold(push.isBroadcast == push.token.isEmpty || !request.tokens.isEmpty, "a token and a channel, or neither")
    let payload = bytes(push.payload)
    try hold(try JSONScanner.document(payload.span).kind == .object, "the payload is no object")
    let longest = push.isBroadcast ? Notification.maximumBroadcastPayload : push.pushType.maximumPayload
    try hold(payload.count <= longest, "a payload of \(payload.count) bytes")
    try hold(push.pushType.allows(priority: push.priority), "priority \(push.priority) for \(push.pushType)")
    try hold((0...RequestLimits.expiration).contains(push.expiration ?? 0), "the expiration")
    let limits = [
      (push.collapseID, RequestLimits.collapseID), (push.topic, RequestLimits.topic),
      (request.id ?? .empty, RequestLimits.id), (push.channel, RequestLimits.channel),
    ]
    for (range, limit) in limits {
      try hold(range.count <= limit, "a text of \(range.count) bytes")
      try hold(UTF8Text.isValid(bytes(range).span), "no text: \(bytes(range))")
      try hold(bytes(range).allSatisfy { $0 >= 0x20 && $0 != 0x7f }, "a control: \(bytes(range))")
    }
    try hold(request.invalidItems.count < max(request.tokens.count, 1), "nothing is left to send")
  }

  /// Results, events and parked requests can be read, in every form.
  private static func checkPublishing(of subject: ResultSubject) throws {
    let slot = PushSlot(index: 0, generation: 1)
    let response = Response(status: 410, reason: .unregistered)
    let ending = subject.app == nil ? Ending.invalid(.badToken, message: "m") : .rejected(response)
    for output in outputs {
      let encoder = ResultEncoder(topics: topics, output: output)
      var outbox = Outbox()
      encoder.result(of: subject, ending: ending, completedAt: now.time, apps: apps, slot: slot, into: &outbox)
      encoder.invalidToken(
        of: subject, response: response, isSuspect: false, detectedAt: now.time, apps: apps, slot: slot,
        into: &outbox)
      encoder.deadLetter(
        of: subject, rule: .badToken, message: "m", failedAt: now.time, slot: slot, into: &outbox)
      for item in outbox.items.prefix(2) where output.format == .json {
        let value = outbox.value(of: item) ?? Bytes([])
        try hold(try JSONScanner.document(value.span).kind == .object, "published: \(value.text)")
      }
      let letter = outbox.value(of: outbox.items[2])?.array
      let value = subject.value.map { Array(subject.notification.storage[$0.indices]) }
      try hold(letter == value, "a dead letter with another value")
    }
  }

  /// The request written as JSON, with all that was derived, is the same request.
  private static func checkOtherForm(of request: Request) throws {
    guard request.invalidItems.isEmpty else { return }
    let push = request.notification
    var writer = JSONWriter()
    writer.beginObject()
    func text(_ name: String, _ range: ByteRange?) {
      guard let range, !range.isEmpty else { return }
      writer.key(name)
      writer.string(push.storage.span.extracting(range.indices))
    }
    writer.key("app")
    writer.string(apps[request.app].name)
    if request.tokens.isEmpty {
      text("token", push.token)
    } else {
      writer.key("tokens")
      writer.beginArray()
      for token in request.tokens { writer.string(push.storage.span.extracting(token.indices)) }
      writer.endArray()
    }
    writer.key("push_type")
    if push.pushType == .other {
      writer.string(push.storage.span.extracting(push.pushTypeName.indices))
    } else {
      writer.string(push.pushType.name)
    }
    writer.key("priority")
    writer.integer(Int64(push.priority))
    if let expiration = push.expiration {
      writer.key("expiration")
      writer.integer(expiration)
    }
    text("collapse_id", push.collapseID)
    text("topic", push.topic)
    text("channel", push.channel)
    text("id", request.id)
    writer.key("payload")
    writer.raw(push.storage.span.extracting(push.payload.indices))
    writer.endObject()
    try compare(request, writer.bytes)
  }

  private static func compare(_ first: Request, _ json: [UInt8]) throws {
    let record = Record(
      source: PartitionID(topic: 0, partition: 3), offset: 42, timestamp: nil, body: RecordBody(key: nil, value: json))
    var decoder = RequestDecoder(topics: topics, deferredTopic: nil)
    guard case .request(let second) = decoder.decode(record, apps: apps, now: now) else {
      throw Broken(description: "said in another form, it is refused: \(String(decoding: json, as: UTF8.self))")
    }
    func words(_ request: Request) -> [[UInt8]] {
      let push = request.notification
      // In the header form, white space around the payload belongs to it.
      let payload = push.storage[push.payload.indices].split { [0x20, 0x09, 0x0a, 0x0d].contains($0) }
      return [push.token, push.pushTypeName, push.collapseID, push.topic, push.channel, request.id]
        .map { range in range.map { Array(push.storage[$0.indices]) } ?? [] }
        + request.tokens.map { Array(push.storage[$0.indices]) } + payload.map { Array($0) }
    }
    try hold(words(first) == words(second), "said in another form, it says something else")
    let (one, two) = (first.notification, second.notification)
    try hold(one.pushType == two.pushType && one.priority == two.priority, "another type or priority")
    try hold(one.expiration == two.expiration && one.apnsID == two.apnsID, "another expiration or apns-id")
  }
}
