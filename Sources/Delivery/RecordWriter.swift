package import APNs
import Wire

/// Writes the keys and values of results and events to an outbox's arena, which it borrows from `init` to `finish`.
struct RecordWriter {
  private var writer: JSONWriter
  private var start = 0

  /// Takes the arena; `finish` gives it back.
  init(_ outbox: inout Outbox) {
    writer = JSONWriter(appendingTo: exchange(&outbox.arena, with: []))
  }

  mutating func finish(_ outbox: inout Outbox) {
    outbox.arena = writer.take()
  }

  /// The record's key: a stretch of the request's buffer or, where there is none, the text of the `apns-id`.
  mutating func key(_ range: ByteRange?, of subject: ResultSubject) -> ByteRange {
    var arena = writer.take()
    let start = arena.count
    if let range {
      arena.append(span: subject.notification.storage.span.extracting(range.indices))
    } else {
      arena.append(uuid: subject.notification.apnsID)
    }
    let end = arena.count
    writer = JSONWriter(appendingTo: arena)
    return ByteRange(start, end)
  }

  /// Begins a value: the record's own object, or the event that has it as its data.
  mutating func begin(_ output: OutputForm, _ event: OutputEvent?) {
    start = writer.beginDocument()
    writer.beginObject()
    guard output.cloudEvents == .structured, let event else { return }
    attributes(of: event, dataContentType: OutputForm.jsonType)
    writer.key(static: "data")
    writer.beginObject()
  }

  /// - Returns: where the value lies in the arena.
  mutating func end(_ output: OutputForm) -> ByteRange {
    if output.cloudEvents == .structured { writer.endObject() }
    writer.endObject()
    return ByteRange(start, writer.bytes.count)
  }

  /// Writes a value that is no JSON: as it is, or in base64 within the event that has it as its data.
  mutating func write(_ value: [UInt8], _ output: OutputForm, _ event: OutputEvent?) -> ByteRange {
    guard output.cloudEvents == .structured, let event else {
      var arena = writer.take()
      let start = arena.count
      arena += value
      writer = JSONWriter(appendingTo: arena)
      return ByteRange(start, start + value.count)
    }
    start = writer.beginDocument()
    writer.beginObject()
    attributes(of: event, dataContentType: OutputForm.protobufType)
    text("data_base64", Base64.encode(value.span))
    writer.endObject()
    return ByteRange(start, writer.bytes.count)
  }

  private mutating func attributes(of event: OutputEvent, dataContentType: String) {
    for attribute in event.attributes {
      writer.key(attribute.name)
      writer.string(attribute.value)
    }
    text("datacontenttype", dataContentType)
  }

  // MARK: Fields

  /// The caller's id or, where there is none, the text of the `apns-id` that was derived.
  mutating func id(of subject: ResultSubject) {
    writer.key(static: "id")
    if let id = subject.id {
      writer.string(subject.notification.storage.span.extracting(id.indices))
    } else {
      writer.string(subject.notification.apnsID)
    }
  }

  mutating func app(of subject: ResultSubject, _ apps: borrowing AppTable) {
    writer.key(static: "app")
    if let app = subject.app {
      writer.string(apps.name(of: app).span)
    } else if let name = subject.appName {
      writer.string(subject.notification.storage.span.extracting(name.indices))
    } else {
      writer.null()
    }
  }

  mutating func ending(_ ending: Ending) {
    text("status", ending.status.rawValue)
    integer("http_status", ending.response.map { Int64($0.status) })
    text("reason", ending.reasonText)
    if let message = ending.messageText { text("message", message) }
  }

  mutating func apnsID(of subject: ResultSubject) {
    writer.key(static: "apns_id")
    if subject.notification.apnsID == UUID(high: 0, low: 0) {
      writer.null()
    } else {
      writer.string(subject.notification.apnsID)
    }
  }

  mutating func topic(of subject: ResultSubject, _ apps: borrowing AppTable) {
    writer.key(static: "topic")
    guard let app = subject.app else {
      writer.null()
      return
    }
    let notification = subject.notification
    if notification.isBroadcast {
      // The bundle id, which is in the path.
      writer.string(apps.topic(for: app, .alert).span)
    } else if notification.topic.isEmpty {
      writer.string(apps.topic(for: app, notification.pushType).span)
    } else {
      writer.string(notification.storage.span.extracting(notification.topic.indices))
    }
  }

  mutating func pushType(of subject: ResultSubject) {
    let notification = subject.notification
    if subject.app == nil {
      text("push_type", nil)
    } else if notification.pushType == .other {
      bytes("push_type", notification.pushTypeName, of: subject)
    } else {
      text("push_type", notification.pushType.name)
    }
  }

  mutating func source(_ source: Source, _ topic: String) {
    writer.key(static: "source")
    writer.beginObject()
    text("topic", topic)
    integer("partition", Int64(source.partition.partition))
    integer("offset", source.offset)
    integer("index", Int64(source.item))
    writer.endObject()
  }

  mutating func text(_ key: StaticString, _ text: String?) {
    writer.key(static: key)
    if let text { writer.string(text) } else { writer.null() }
  }

  mutating func boolean(_ key: StaticString, _ value: Bool) {
    writer.key(static: key)
    writer.bool(value)
  }

  mutating func integer(_ key: StaticString, _ value: Int64?) {
    writer.key(static: key)
    if let value { writer.integer(value) } else { writer.null() }
  }

  /// An empty range has no value: null.
  mutating func bytes(_ key: StaticString, _ range: ByteRange, of subject: ResultSubject) {
    writer.key(static: key)
    if range.isEmpty {
      writer.null()
    } else {
      writer.string(subject.notification.storage.span.extracting(range.indices))
    }
  }
}

extension Ending {
  /// The `message` of a result: how the contract was broken, or what an answer said that was not Apple's.
  var messageText: String? {
    if case .invalid(_, let message) = self { message } else { response?.bodyText }
  }

  /// The `reason` of a result: Apple's word, the name of the broken rule, or a word of ours where there was no answer.
  var reasonText: String? {
    switch self {
    case .delivered, .expired: nil
    case .rejected(let response), .failed(.answered(let response)): response.reasonText
    case .failed(.notSent(let failure)), .failed(.lost(let failure)): failure.reasonText
    case .failed(.timedOut): "RequestTimeout"
    case .invalid(let rule, _): rule.rawValue
    }
  }
}

extension SendFailure {
  /// The `reason` of a result whose last attempt had no answer; in style like Apple's words, and none of them.
  package var reasonText: String {
    switch self {
    case .unreachable: "Unreachable"
    case .tls: "TLSFailure"
    case .connectionClosed: "ConnectionClosed"
    case .streamRefused: "StreamRefused"
    case .credentials: "CredentialsUnusable"
    case .noStream: "NoStream"
    case .draining: "ShuttingDown"
    case .appRemoved: "AppRemoved"
    }
  }
}

extension Response {
  /// Apple's word as it came, also where the table does not know it; `nil` where the answer named none.
  package var reasonText: String? {
    guard let reason else { return nil }
    return reason == .unknown ? unknownReason : reason.text
  }
}
