import APNs
import Wire

/// Results and events as messages of `schemas/martlet.proto`, whose field numbers stand here. They say what the JSON
/// form says, in the same words; what is null there is absent here.
struct ProtobufRecord {
  private var writer = ProtobufWriter()

  /// A `martlet.v1.PushResult`.
  static func result(
    of subject: ResultSubject, ending: Ending, completedAt: UnixTime, apps: borrowing AppTable, topicName: String
  ) -> [UInt8] {
    var record = ProtobufRecord()
    record.text(1, idText(of: subject))
    record.bytes(2, appName(of: subject, apps))
    record.range(3, subject.notification.token, of: subject)
    record.range(4, subject.notification.channel, of: subject)
    record.text(5, ending.status.rawValue)
    record.present(6, ending.response.map { Int64($0.status) })
    record.text(7, ending.reasonText)
    if let message = ending.messageText { record.text(8, message) }
    if subject.app != nil { record.text(9, subject.notification.apnsID.description) }
    record.text(10, ending.response?.uniqueID)
    record.bytes(11, topic(of: subject, apps))
    record.text(12, subject.app.map { apps[$0].environment.rawValue })
    record.pushType(13, of: subject)
    record.integer(14, Int64(subject.attempts))
    record.integer(15, subject.requestedAt.milliseconds)
    record.integer(16, completedAt.milliseconds)
    record.source(17, subject.source, topicName)
    return record.writer.take()
  }

  /// A `martlet.v1.InvalidTokenEvent`.
  static func invalidToken(
    of subject: ResultSubject, response: Response, isSuspect: Bool, detectedAt: UnixTime, apps: borrowing AppTable,
    topicName: String
  ) -> [UInt8] {
    var record = ProtobufRecord()
    record.range(1, subject.notification.token, of: subject)
    record.bytes(2, appName(of: subject, apps))
    record.bytes(3, topic(of: subject, apps))
    record.text(4, subject.app.map { apps[$0].environment.rawValue })
    record.text(5, response.reasonText)
    if isSuspect { record.writer.boolean(6, true) }
    record.present(7, response.timestamp?.milliseconds)
    record.integer(8, subject.requestedAt.milliseconds)
    record.integer(9, detectedAt.milliseconds)
    record.text(10, idText(of: subject))
    record.source(11, subject.source, topicName)
    return record.writer.take()
  }

  // MARK: What is told

  /// The caller's id or, where there is none, the text of the `apns-id` that was derived.
  static func idText(of subject: ResultSubject) -> String {
    subject.id.map { Bytes(subject.notification.storage, $0).text } ?? subject.notification.apnsID.description
  }

  private static func appName(of subject: ResultSubject, _ apps: borrowing AppTable) -> [UInt8]? {
    if let app = subject.app { return apps.name(of: app) }
    return subject.appName.map { Bytes(subject.notification.storage, $0).array }
  }

  private static func topic(of subject: ResultSubject, _ apps: borrowing AppTable) -> [UInt8]? {
    guard let app = subject.app else { return nil }
    let notification = subject.notification
    // The bundle id of a broadcast is in its path.
    if notification.isBroadcast { return apps.topic(for: app, .alert) }
    if notification.topic.isEmpty { return apps.topic(for: app, notification.pushType) }
    return Bytes(notification.storage, notification.topic).array
  }

  // MARK: Kinds of fields

  private mutating func pushType(_ field: Int, of subject: ResultSubject) {
    guard subject.app != nil else { return }
    if subject.notification.pushType == .other {
      range(field, subject.notification.pushTypeName, of: subject)
    } else {
      text(field, subject.notification.pushType.name)
    }
  }

  private mutating func source(_ field: Int, _ source: Source, _ topicName: String) {
    let start = writer.beginMessage(field)
    text(1, topicName)
    integer(2, Int64(source.partition.partition))
    integer(3, source.offset)
    integer(4, Int64(source.item))
    writer.endMessage(from: start)
  }

  private mutating func text(_ field: Int, _ text: String?) {
    if let text, !text.isEmpty { writer.string(field, text) }
  }

  private mutating func bytes(_ field: Int, _ text: [UInt8]?) {
    if let text { writer.string(field, text.span) }
  }

  private mutating func range(_ field: Int, _ range: ByteRange, of subject: ResultSubject) {
    if !range.isEmpty { writer.string(field, subject.notification.storage.span.extracting(range.indices)) }
  }

  /// A number without presence: 0 is not written.
  private mutating func integer(_ field: Int, _ value: Int64) {
    if value != 0 { writer.integer(field, value) }
  }

  /// A number with presence.
  private mutating func present(_ field: Int, _ value: Int64?) {
    if let value { writer.integer(field, value) }
  }
}
