import APNs
package import Wire

/// The first stage: a record becomes a request, or an invalid one.
///
/// All forms of a request (fields as JSON, as record headers with the payload as the value, or as Protobuf; plain or as
/// a CloudEvent) are read into the same `RequestFields` and judged by the same rules. The value is scanned once and never copied: all that comes out
/// are ranges into the record's own buffer. On the good path nothing is allocated but the array of a batch's tokens.
///
/// A value type without a clock; one belongs to one thread.
package struct RequestDecoder: Sendable {
  /// The names of the topics that are read, by `PartitionID.topic`.
  private let topics: [[UInt8]]
  /// The place of the deferred topic among them.
  private let deferredTopic: Int?
  /// The memory of the last batch's tokens, used again.
  private var tokenItems: [FieldValue] = []

  /// - Parameters:
  ///   - topics: the names of the topics that are read, in the order that `PartitionID.topic` counts in.
  ///   - deferredTopic: the one among them that parked requests come from; only there the headers that the service
  ///     added when it parked them are believed. `nil`: none of them.
  package init(topics: [String], deferredTopic: String?) {
    self.topics = topics.map { Array($0.utf8) }
    self.deferredTopic = deferredTopic.flatMap { topics.firstIndex(of: $0) }
  }

  /// - Parameter now: for records without a timestamp, to which an app's default expiration is added.
  package mutating func decode(_ record: consuming Record, apps: borrowing AppTable, now: Moment) -> Decoded {
    guard let value = record.body.value else { return .tombstone }
    let deferral = deferral(of: record)
    var fields = RequestFields(form: .headers, tokenItems: exchange(&tokenItems, with: []))
    var checked: CheckedFields
    do {
      try fields.read(value, of: &record.body)
      fields.addTrace(to: &record.body)
      checked = try fields.check(in: record.body.storage.span, apps: apps)
    } catch {
      recycle(&fields)
      return .invalid(invalid(error, fields, record, deferral))
    }
    if checked.topic.isEmpty, checked.pushType == .other {
      checked.topic = Self.addTopic(apps, checked, to: &record.body.storage)
    }
    let requestedAt = deferral?.requestedAt ?? record.timestamp ?? now.time
    var request = Request(
      app: checked.app,
      notification: Notification(
        storage: record.body.storage, token: checked.token, payload: checked.payload, pushType: checked.pushType,
        pushTypeName: checked.pushTypeName, priority: checked.priority,
        expiration: checked.expiration ?? checked.pushType.defaultExpiration
          ?? Self.defaultExpiration(apps[checked.app], requestedAt),
        collapseID: checked.collapseID, topic: checked.topic, channel: checked.channel,
        apnsID: apnsID(checked.id, record, deferral)),
      tokens: [], id: checked.id, key: record.body.key, value: value, headers: record.body.headers,
      unknownFields: fields.unknownFields, deferral: deferral)
    if fields[.tokens].isGiven, let violation = Self.spread(&fields, over: &request) {
      recycle(&fields)
      return .invalid(invalid(violation, fields, record, deferral))
    }
    recycle(&fields)
    return .request(request)
  }

  private func deferral(of record: borrowing Record) -> Deferral? {
    guard let deferredTopic, deferredTopic == Int(record.source.topic) else { return nil }
    return Deferral(record.body.headers, in: record.body.storage.span, topics: topics)
  }

  /// - Parameter deferral: where the request was read first, if it was parked since.
  private func apnsID(_ id: ByteRange?, _ record: borrowing Record, _ deferral: Deferral?) -> UUID {
    let partition = deferral?.source.partition ?? record.source
    let topic = Int(partition.topic)
    let name =
      deferral?.sourceTopic.map { Array(record.body.storage[$0.indices]) }
      ?? (topics.indices.contains(topic) ? topics[topic] : [])
    return DerivedID.make(
      id: id, in: record.body.storage.span, topicName: name, partition: partition.partition,
      offset: deferral?.source.offset ?? record.offset)
  }

  /// Gives the request the tokens of a batch. A malformed item spoils only itself; when all are malformed, so is the
  /// request, and the first one's fault is returned.
  ///
  /// Of a batch that was parked, only the item that was parked is left: as a request of its own.
  private static func spread(_ fields: inout RequestFields, over request: inout Request) -> Violation? {
    let storage = request.notification.storage
    let bytes = storage.span
    var tokens: [ByteRange] = []
    tokens.reserveCapacity(fields.tokenItems.count)
    var invalid: [InvalidItem] = []
    for (index, item) in fields.tokenItems.enumerated() {
      if item.kind == .string, RequestFields.isToken(item.range, in: bytes) {
        tokens.append(item.range)
        continue
      }
      tokens.append(.empty)
      do {
        try fields.checkToken(item, named: "tokens[\(index)]", in: bytes)
      } catch {
        let isShort = item.kind == .string && item.range.count <= RequestLimits.repeated
        invalid.append(InvalidItem(item: Int32(index), violation: error, token: isShort ? item.range : nil))
      }
    }
    if let item = request.deferral?.source.item, tokens.indices.contains(Int(item)) {
      request.notification.token = tokens[Int(item)]
      request.notification.apnsID = request.apnsID(item: Int(item))
      return invalid.first { $0.item == item }?.violation
    }
    if invalid.count == tokens.count { return invalid.first?.violation }
    request.notification.token = tokens[0]
    request.tokens = tokens
    request.invalidItems = invalid
    return nil
  }

  /// Gives a push of a type that only the configuration knows its topic, as if the request had said it. The record's
  /// buffer grows for that, which such pushes alone pay for.
  private static func addTopic(
    _ apps: borrowing AppTable, _ checked: CheckedFields, to storage: inout [UInt8]
  ) -> ByteRange {
    let topic = apps.topic(for: checked.app, typeNamed: storage.span.extracting(checked.pushTypeName.indices)) ?? []
    let start = storage.count
    storage += topic
    return ByteRange(start, storage.count)
  }

  /// The timestamp is the producer's and may be anything; the sum stays within what a request may say itself. It never
  /// becomes 0, which has a meaning of its own.
  private static func defaultExpiration(_ rules: AppRules, _ time: UnixTime) -> Int64? {
    guard let duration = rules.defaultExpiration else { return nil }
    let start = max(time, UnixTime(milliseconds: 0)).seconds
    let (sum, overflow) = start.addingReportingOverflow(duration.components.seconds)
    return overflow ? RequestLimits.expiration : min(max(sum, 1), RequestLimits.expiration)
  }

  private func invalid(
    _ violation: Violation, _ fields: RequestFields, _ record: borrowing Record, _ deferral: Deferral?
  ) -> InvalidRequest {
    var invalid = InvalidRequest(
      rule: violation.rule, message: violation.message, body: record.body,
      id: fields.usableID(in: record.body.storage.span), app: fields.usableText(.app),
      token: fields.usableText(.token), channel: fields.usableText(.channel), deferral: deferral)
    if let deferral {
      invalid.apnsID = DerivedID.make(
        item: Int(deferral.source.item), after: apnsID(invalid.id, record, deferral))
    }
    return invalid
  }

  private mutating func recycle(_ fields: inout RequestFields) {
    swap(&tokenItems, &fields.tokenItems)
    tokenItems.removeAll(keepingCapacity: true)
  }
}
