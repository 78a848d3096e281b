import CRdKafka
package import Wire

/// An idempotent producer that waits for all in-sync replicas, for one thread that must not block.
///
/// `produce` copies the record onto the library's queue. What becomes of it comes through `takeReports`, which the
/// library announces through an eventfd (`wake`). A record leaves the queue's bounds only when its report is taken.
///
/// Not thread-safe: one thread owns it.
@safe
package final class Producer {
  private let client: KafkaClient
  private var topics: [OpaquePointer] = unsafe []
  private var names: [String] = []
  /// Records that were queued and whose reports have not been handed out. The library's own count takes in log lines
  /// and other events too.
  package private(set) var outstanding = 0
  /// A batch of reports that was not taken to its end.
  private var unfinished: Event?
  private var isClosed = false

  /// Whether the last call of `takeReports` may have left reports, which no wake-up will announce: call again.
  package private(set) var hasReports = false

  /// Returns at once; connecting goes on in the background.
  ///
  /// - Parameters:
  ///   - properties: of librdkafka's producer.
  ///   - isOneByOne: each record goes out in a batch of its own, so that it is judged alone.
  ///   - log: called from `takeReports` and `flush`.
  /// - Throws: `KafkaError`, usually of origin `configuration`.
  package init(properties: KafkaProperties, isOneByOne: Bool = false, log: @escaping LogSink) throws(KafkaError) {
    let configuration = try Configuration.producer(properties)
    if isOneByOne { try configuration.set("batch.num.messages", "1") }
    client = try KafkaClient(
      RD_KAFKA_PRODUCER, configuration, properties, events: Int32(RD_KAFKA_EVENT_DR), log: log)
  }

  deinit { close() }

  /// Has an eventfd written to when there are reports; see `KafkaClient.wake` for when exactly. Take what is there
  /// once after this call.
  package func wake(fileDescriptor: Int32) { client.wake(fileDescriptor: fileDescriptor) }

  /// Prepares to write to a topic. No request is made; an unknown topic shows in the delivery reports.
  package func topic(_ name: String) throws(KafkaError) -> TopicHandle {
    if let known = names.firstIndex(of: name) { return TopicHandle(index: known) }
    guard let topic = unsafe rd_kafka_topic_new(client.handle, name, nil) else {
      throw KafkaError(rd_kafka_last_error(), subject: .topic(name))
    }
    unsafe topics.append(topic)
    names.append(name)
    return TopicHandle(index: names.count - 1)
  }

  /// Queues a record. Everything is copied; nothing is allocated on the Swift side.
  ///
  /// - Parameters:
  ///   - key: `nil` for none; an empty key is something else.
  ///   - value: `nil` for a tombstone; an empty value is something else.
  ///   - headerStorage: the buffer that `headers` lie in.
  ///   - extraHeaders: follow `headers`.
  ///   - timestamp: `nil` for now.
  ///   - partition: `nil` for the partitioner's choice.
  ///   - ticket: comes back in the delivery report.
  /// - Throws: when this record can never be sent: it is too large, or the producer has failed for good.
  package func produce(
    topic: TopicHandle, key: Bytes?, value: Bytes?, headerStorage: [UInt8] = [], headers: [RecordBody.Header] = [],
    extraHeaders: [(name: String, value: String)] = [], timestamp: UnixTime? = nil, partition: Int32? = nil,
    ticket: UInt64
  ) throws(KafkaError) -> ProduceResult {
    var list: OpaquePointer?
    if !headers.isEmpty || !extraHeaders.isEmpty {
      unsafe list = HeaderList.make(storage: headerStorage, headers: headers, extra: extraHeaders)
    }
    let code = unsafe withParts(key, value) { (key, keySize, value, valueSize) in
      unsafe martlet_produce(
        client.handle, topics[topic.index], partition ?? RD_KAFKA_PARTITION_UA, key, keySize, value, valueSize, list,
        timestamp?.milliseconds ?? 0, UnsafeMutableRawPointer(bitPattern: UInt(ticket)))
    }
    if code == RD_KAFKA_RESP_ERR_NO_ERROR {
      outstanding += 1
      return .queued
    }
    // The list is the library's only when the record is.
    if let list = unsafe list { unsafe rd_kafka_headers_destroy(list) }
    if code == RD_KAFKA_RESP_ERR__QUEUE_FULL { return .full }
    if code == RD_KAFKA_RESP_ERR__FATAL, let fatal = client.fatalError { throw fatal }
    throw KafkaError(code, subject: .topic(names[topic.index]))
  }

  /// Takes delivery reports, without blocking, until there are none left, `limit` are appended or an error of the client
  /// comes up, which is returned. Unless it is fatal the library goes on trying.
  package func takeReports(into reports: inout [DeliveryReport], limit: Int) -> KafkaError? {
    var room = limit
    hasReports = true
    while room > 0 {
      if unfinished == nil {
        guard let event = client.nextEvent() else {
          hasReports = false
          return nil
        }
        let kind = event.kind
        if kind == RD_KAFKA_EVENT_ERROR { return client.error(of: event) }
        guard kind == RD_KAFKA_EVENT_DR else { continue }
        unfinished = consume event
      }
      takeReports(into: &reports, room: &room)
    }
    return nil
  }

  /// Waits until nothing is outstanding, taking reports as it goes: for the end of the process. Blocks for `timeout` at
  /// most.
  ///
  /// - Returns: whether nothing is outstanding any more. Errors of the client do not end it.
  package func flush(into reports: inout [DeliveryReport], timeout: Duration) -> Bool {
    let deadline = ContinuousClock.now + timeout
    while outstanding > 0 {
      // With delivery reports as events the library's own flush only waits, and sends what lingers.
      unsafe rd_kafka_flush(client.handle, 1)
      _ = takeReports(into: &reports, limit: .max)
      if ContinuousClock.now >= deadline { return outstanding == 0 }
    }
    return true
  }

  /// Gives up all outstanding records. Their reports come, as failed, through `takeReports`.
  package func purge() {
    unsafe rd_kafka_purge(
      client.handle, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING)
  }

  /// Frees everything; records that are still outstanding are dropped without a report. Nothing but `close` may be
  /// called afterwards.
  package func close() {
    guard !isClosed else { return }
    isClosed = true
    unfinished = nil
    unsafe topics.forEach { unsafe rd_kafka_topic_destroy($0) }
    unsafe topics = []
    client.destroy(skippingConsumerClose: true)
  }

  /// The error that has put the producer out of use, if there is one. Its records must be produced again by a new one.
  package var fatalError: KafkaError? { client.fatalError }

  /// Puts the producer out of use, as the brokers can; for tests.
  package func provokeFatalError() {
    unsafe rd_kafka_test_fatal_error(client.handle, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "a test")
  }
}

// MARK: - Reports

extension Producer {
  /// Moves reports from the batch at hand; lets go of it when it is empty.
  private func takeReports(into reports: inout [DeliveryReport], room: inout Int) {
    guard let event = unfinished.take() else { return }
    while room > 0 {
      guard let message = unsafe rd_kafka_event_message_next(event.pointer) else { return }
      unsafe reports.append(report(of: message))
      room -= 1
      outstanding -= 1
    }
    unfinished = consume event
  }

  private func report(of message: UnsafePointer<rd_kafka_message_t>) -> DeliveryReport {
    let ticket = unsafe UInt64(UInt(bitPattern: message.pointee._private))
    let code = unsafe message.pointee.err
    guard code != RD_KAFKA_RESP_ERR_NO_ERROR else {
      let offset = unsafe message.pointee.offset
      return DeliveryReport(
        ticket: ticket,
        outcome: .acknowledged(partition: unsafe message.pointee.partition, offset: offset >= 0 ? offset : nil))
    }
    let mayBeStored = unsafe rd_kafka_message_status(message) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED
    let name = unsafe text(rd_kafka_topic_name(message.pointee.rkt)) ?? ""
    return DeliveryReport(
      ticket: ticket, outcome: .failed(KafkaError(code, subject: .topic(name)), mayBeStored: mayBeStored))
  }
}

// MARK: - Bytes

/// Lends key and value as C memory. An absent part is a null pointer; an empty one must not be.
private func withParts<Result>(
  _ key: Bytes?, _ value: Bytes?,
  _ body: (UnsafeRawPointer?, Int, UnsafeRawPointer?, Int) -> Result
) -> Result {
  unsafe withPart(key) { (keyStart, keySize) in
    unsafe withPart(value) { (valueStart, valueSize) in
      unsafe body(keyStart, keySize, valueStart, valueSize)
    }
  }
}

@inline(__always)
private func withPart<Result>(_ part: Bytes?, _ body: (UnsafeRawPointer?, Int) -> Result) -> Result {
  guard let part else { return body(nil, 0) }
  // Never read, as its size is 0; it only has to differ from null.
  guard !part.isEmpty else { return unsafe body(UnsafeRawPointer(bitPattern: 1), 0) }
  return unsafe part.span.withUnsafeBytes { unsafe body($0.baseAddress, $0.count) }
}

/// Makes the library's list of headers.
private enum HeaderList {
  static func make(
    storage: [UInt8], headers: [RecordBody.Header], extra: [(name: String, value: String)]
  ) -> OpaquePointer? {
    let list = unsafe rd_kafka_headers_new(headers.count + extra.count)
    unsafe storage.withUnsafeBytes { bytes in
      for header in headers {
        // A name of no length is passed with a pointer to none of its bytes; a null one would be read as a C string.
        let name = unsafe start(of: header.name, in: bytes)
        let value = unsafe header.value.flatMap { unsafe start(of: $0, in: bytes) }
        unsafe rd_kafka_header_add(
          list, name?.assumingMemoryBound(to: CChar.self), header.name.count, value, header.value?.count ?? 0)
      }
    }
    for (name, value) in extra {
      unsafe rd_kafka_header_add(list, name, name.utf8.count, value, value.utf8.count)
    }
    return unsafe list
  }

  /// Where a stretch begins; never null, even when it is empty.
  private static func start(of range: ByteRange, in bytes: UnsafeRawBufferPointer) -> UnsafeRawPointer? {
    guard !range.isEmpty, let base = bytes.baseAddress else { return unsafe UnsafeRawPointer(bitPattern: 1) }
    precondition(Int(range.end) <= bytes.count)
    return unsafe base + Int(range.start)
  }
}
