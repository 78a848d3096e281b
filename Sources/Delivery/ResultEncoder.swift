package import APNs
package import Wire

/// The stage that publishes: what has ended, was parked or was never understood becomes a record for Kafka.
///
/// Everything is appended to an `Outbox`: keys and values to its arena, and an item for each record. Results and events
/// are valid UTF-8 JSON, whatever bytes the request has in its id or headers, or what the `OutputForm` asks for. Each kind has a shortened form, for the case that
/// Kafka refuses the full record as too large: without the request's headers, and a dead letter without its value.
package struct ResultEncoder: Sendable {
  /// The names of the topics that are read, by `PartitionID.topic`.
  private let topics: [String]
  private let output: OutputForm

  /// - Parameters:
  ///   - topics: the names of the topics that are read, in the order that `PartitionID.topic` counts in.
  ///   - output: how results and events are written.
  package init(topics: [String], output: OutputForm = OutputForm()) {
    self.topics = topics
    self.output = output
  }

  // MARK: Kinds of records

  /// The result of one notification, or of a record that broke the contract.
  ///
  /// For such a record, call it only if it has an id (`subject.id`): nobody could tell what the result is about.
  package func result(
    of subject: ResultSubject, ending: Ending, completedAt: UnixTime, apps: borrowing AppTable, slot: PushSlot,
    isShortened: Bool = false, into outbox: inout Outbox
  ) {
    var record = RecordWriter(&outbox)
    let key = record.key(subject.key ?? subject.id, of: subject)
    let event = event(.result, subject, about: nil, completedAt)
    let value: ByteRange
    switch output.format {
    case .json:
      record.begin(output, event)
      write(resultOf: subject, ending, completedAt, apps, to: &record)
      value = record.end(output)
    case .protobuf:
      let message = ProtobufRecord.result(
        of: subject, ending: ending, completedAt: completedAt, apps: apps, topicName: topicName(of: subject))
      value = record.write(message, output, event)
    }
    record.finish(&outbox)
    outbox.append(
      .results, slot, key, value, of: subject, hasHeaders: !isShortened, extraHeaders: output.headers(event))
  }

  private func write(
    resultOf subject: ResultSubject, _ ending: Ending, _ completedAt: UnixTime, _ apps: borrowing AppTable,
    to record: inout RecordWriter
  ) {
    record.id(of: subject)
    record.app(of: subject, apps)
    record.bytes("token", subject.notification.token, of: subject)
    record.bytes("channel", subject.notification.channel, of: subject)
    record.ending(ending)
    record.apnsID(of: subject)
    record.text("apns_unique_id", ending.response?.uniqueID)
    record.topic(of: subject, apps)
    record.text("environment", subject.app.map { apps[$0].environment.rawValue })
    record.pushType(of: subject)
    record.integer("attempts", Int64(subject.attempts))
    record.integer("requested_at", subject.requestedAt.milliseconds)
    record.integer("completed_at", completedAt.milliseconds)
    record.source(subject.source, topicName(of: subject))
  }

  /// The event about a token that APNs says is no longer good. Its key is the token exactly as it was received.
  /// - Parameters:
  ///   - response: the answer that said so; its reason and timestamp are told.
  ///   - isSuspect: most tokens of the app are called bad just now, so that its environment is more likely to be wrong
  ///     than this token. It becomes `suspect`, which is in every event: whoever deletes tokens should hold these back.
  package func invalidToken(
    of subject: ResultSubject, response: Response, isSuspect: Bool, detectedAt: UnixTime, apps: borrowing AppTable,
    slot: PushSlot, isShortened: Bool = false, into outbox: inout Outbox
  ) {
    var record = RecordWriter(&outbox)
    let key = record.key(subject.notification.token, of: subject)
    let event = event(.invalidToken, subject, about: subject.notification.token, detectedAt)
    let value: ByteRange
    switch output.format {
    case .json:
      record.begin(output, event)
      record.bytes("token", subject.notification.token, of: subject)
      record.app(of: subject, apps)
      record.topic(of: subject, apps)
      record.text("environment", subject.app.map { apps[$0].environment.rawValue })
      record.text("reason", response.reasonText)
      record.boolean("suspect", isSuspect)
      record.integer("unregistered_at", response.timestamp?.milliseconds)
      record.integer("requested_at", subject.requestedAt.milliseconds)
      record.integer("detected_at", detectedAt.milliseconds)
      record.id(of: subject)
      record.source(subject.source, topicName(of: subject))
      value = record.end(output)
    case .protobuf:
      let message = ProtobufRecord.invalidToken(
        of: subject, response: response, isSuspect: isSuspect, detectedAt: detectedAt, apps: apps,
        topicName: topicName(of: subject))
      value = record.write(message, output, event)
    }
    record.finish(&outbox)
    outbox.append(
      .invalidTokens, slot, key, value, of: subject, hasHeaders: !isShortened, extraHeaders: output.headers(event))
  }

  /// The event that the record is, if records are events.
  /// - Parameter range: what it is about; `nil`: the request.
  private func event(
    _ kind: OutputEvent.Kind, _ subject: ResultSubject, about range: ByteRange?, _ time: UnixTime
  ) -> OutputEvent? {
    guard output.cloudEvents != .off else { return nil }
    let about =
      range.map { Bytes(subject.notification.storage, $0).text } ?? ProtobufRecord.idText(of: subject)
    return OutputEvent(
      kind: kind, origin: subject.source, topic: topicName(of: subject), source: output.source, subject: about,
      time: time)
  }

  /// The dead letter of a record that broke the contract: its own key, value and headers, and ours, which say why.
  package func deadLetter(
    of subject: ResultSubject, rule: InvalidRule, message: String, failedAt: UnixTime, slot: PushSlot,
    isShortened: Bool = false, into outbox: inout Outbox
  ) {
    // A record as it was first read is the whole of it; what was parked since is one item.
    let item = subject.source.item == 0 ? [] : [Publication.ExtraHeader(OwnHeader.item, String(subject.source.item))]
    outbox.append(
      .deadLetters, slot, subject.key, isShortened ? nil : subject.value, isVerbatim: true, of: subject,
      hasHeaders: !isShortened,
      extraHeaders: sourceHeaders(subject) + item + [
        Publication.ExtraHeader(OwnHeader.errorRule, rule.rawValue),
        Publication.ExtraHeader(OwnHeader.error, message),
        Publication.ExtraHeader(OwnHeader.failedAt, String(failedAt.milliseconds)),
      ])
  }

  /// A request that waits on the deferred topic: its own key, value and headers, and ours, which `Deferral` reads back.
  /// A batch's items are parked one by one, each with the whole value. The shortened form keeps the headers that are
  /// fields of the request: without them it could not be read when it comes back.
  ///
  /// - Parameter subject: its source is the one that the request had first, also when it is parked again.
  package func deferred(
    of subject: ResultSubject, notBefore: UnixTime, slot: PushSlot, isShortened: Bool = false,
    into outbox: inout Outbox
  ) {
    outbox.append(
      .deferred, slot, subject.key, subject.value, isVerbatim: true,
      of: isShortened ? subject.withFieldsOnly() : subject, hasHeaders: true,
      extraHeaders: sourceHeaders(subject) + [
        Publication.ExtraHeader(OwnHeader.notBefore, String(notBefore.milliseconds)),
        Publication.ExtraHeader(OwnHeader.attempts, String(subject.attempts)),
        Publication.ExtraHeader(OwnHeader.item, String(subject.source.item)),
        Publication.ExtraHeader(OwnHeader.requestedAt, String(subject.requestedAt.milliseconds)),
        Publication.ExtraHeader(
          OwnHeader.takenUpAt, String((subject.takenUpAt ?? notBefore).milliseconds)),
      ])
  }

  private func sourceHeaders(_ subject: ResultSubject) -> [Publication.ExtraHeader] {
    [
      Publication.ExtraHeader(OwnHeader.sourceTopic, topicName(of: subject)),
      Publication.ExtraHeader(OwnHeader.sourcePartition, String(subject.source.partition.partition)),
      Publication.ExtraHeader(OwnHeader.sourceOffset, String(subject.source.offset)),
    ]
  }

  private func topicName(of subject: ResultSubject) -> String {
    if let name = subject.sourceTopic {
      return String(decoding: subject.notification.storage[name.indices], as: UTF8.self)
    }
    let topic = Int(subject.source.partition.topic)
    return topics.indices.contains(topic) ? topics[topic] : ""
  }
}

extension Outbox {
  /// - Parameters:
  ///   - isVerbatim: key and value are the request's own.
  ///   - subject: the request.
  ///   - hasHeaders: whether its headers are copied.
  fileprivate mutating func append(
    _ topic: OutputTopic, _ slot: PushSlot, _ key: ByteRange?, _ value: ByteRange?, isVerbatim: Bool = false,
    of subject: ResultSubject, hasHeaders: Bool, extraHeaders: [Publication.ExtraHeader] = []
  ) {
    let storage = isVerbatim || hasHeaders ? subject.notification.storage : []
    items.append(
      Publication(
        topic: topic, slot: slot, key: key, value: value, isVerbatim: isVerbatim, requestStorage: storage,
        headers: hasHeaders ? OwnHeader.without(subject.headers, in: storage, topic: topic) : [],
        extraHeaders: extraHeaders))
  }
}
