import CRdKafka
package import Wire

/// A member of a consumer group, for one thread that must not block.
///
/// All that happens comes through `poll`, which the library announces through an eventfd (`wake`). Nothing is decided
/// inside a callback: a rebalance is an event, and the group waits until it is answered with `assign` or `unassign`.
/// Meanwhile polling goes on, so that the consumer stays within `max.poll.interval.ms`. Poll at least every few
/// seconds even when no wake-up comes: an idle consumer counts as a dead one, too.
///
/// Not thread-safe: one thread owns it.
@safe
package final class Consumer {
  /// How partitions come to the consumer.
  package enum Membership: Sendable {
    /// Through the group's rebalances.
    case group
    /// Through `assign` alone; the group only keeps the offsets.
    case manual
  }

  let client: KafkaClient
  let topics: TopicTable
  let group: String
  /// The assignor's protocol at the last rebalance. It is kept, as the library forgets it while it leaves the group.
  private var isCooperative = false
  /// What is paused. Only these may be resumed: resuming a partition that is not paused makes versions before 2.4
  /// fetch it again from an older offset.
  private var paused: Set<PartitionID> = []
  private var isClosing = false
  /// Fetched records wait on a queue of their own, so that whoever has no room for them can leave them there, where the
  /// library bounds them, and still hear of rebalances and commits. A pause in the library's sense would throw them away.
  private let records: OpaquePointer
  /// Versions before 2.3 stop the process (a failed assertion) when a member of a cooperative group is freed before its
  /// first assignment.
  private var cannotBeFreed: Bool
  private var fetchWaker: FetchWaker?
  private let joins = JoinWatch()
  /// Where a batch of messages is put; used again.
  private var scratch: [UnsafeMutablePointer<rd_kafka_message_t>?] = unsafe []

  /// Whether the last poll may have left records, which no wake-up will announce: poll again.
  package private(set) var hasRecords = false
  /// Where the last poll has seen partitions' logs end: every record before was delivered. Behind the last one there may
  /// be offsets that are no records (markers of transactions). Of members of a group alone.
  package private(set) var ends: [StartingPoint] = []
  /// Whether the last poll may have left events other than records, which no wake-up will announce either.
  package private(set) var hasControlEvents = false

  /// Joins the group, or prepares to be assigned by hand. Returns at once; connecting goes on in the background.
  ///
  /// - Parameters:
  ///   - properties: of librdkafka's consumer.
  ///   - group: `group.id`.
  ///   - names: plain names, no patterns; records carry a topic's place in this list.
  ///   - membership: whether the group gives partitions, or the caller.
  ///   - log: called from `poll`.
  /// - Throws: `KafkaError`, usually of origin `configuration`.
  package init(
    properties: KafkaProperties, group: String, topics names: [String], membership: Membership = .group,
    log: @escaping LogSink
  ) throws(KafkaError) {
    try Consumer.checkTopics(names)
    guard !group.isEmpty else { throw .configuration("group.id", "it is empty") }
    var configuration = try Configuration.consumer(properties, group: group)
    configuration.watchJoins(joins)
    if membership == .group { try configuration.set("enable.partition.eof", "true") }
    let client = try KafkaClient(
      RD_KAFKA_CONSUMER, configuration, properties,
      events: Int32(RD_KAFKA_EVENT_FETCH | RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT), log: log)
    self.client = client
    cannotBeFreed =
      membership == .group && KafkaLibrary.versionNumber < 0x0203_0000
      && properties.value(of: "partition.assignment.strategy")?.contains("cooperative") ?? false
    self.group = group
    topics = try TopicTable(names, client: client)
    guard let records = unsafe rd_kafka_queue_new(client.handle) else {
      throw KafkaError(RD_KAFKA_RESP_ERR__FAIL, subject: .group(group))
    }
    unsafe self.records = records
    fetchWaker = FetchWaker.isNeeded ? FetchWaker(client: client) : nil
    if let own = unsafe rd_kafka_queue_get_consumer(client.handle) {
      unsafe rd_kafka_queue_forward(own, client.queue)
      // The reference must go before the consumer is closed.
      unsafe rd_kafka_queue_destroy(own)
    }
    if membership == .group { try subscribe() }
  }

  /// Leaves the group silently if `close` was not brought to its end; the group then waits for the session timeout.
  deinit {
    if cannotBeFreed { abandon() }
    fetchWaker?.finish()
    topics.release()
    unsafe rd_kafka_queue_destroy(records)
    client.destroy(skippingConsumerClose: true)
  }

  /// For a process that ends while the brokers are out of reach. Freeing a consumer whose commit nobody answers waits
  /// as long as the session timeout; after this call it is not freed at all. Nothing else may be called afterwards.
  package func abandon() {
    unsafe rd_kafka_queue_io_event_enable(records, -1, nil, 0)
    // Its thread, if there is one, keeps what it needs, and is waited for by nobody.
    fetchWaker = nil
    // The library's threads go on, and use it.
    _ = unsafe Unmanaged.passRetained(joins)
    client.abandon()
  }

  /// Has an eventfd written to when there is something to poll; see `KafkaClient.wake` for when exactly. Poll once
  /// after this call.
  package func wake(fileDescriptor: Int32) {
    client.wake(fileDescriptor: fileDescriptor)
    var one: UInt64 = 1
    unsafe rd_kafka_queue_io_event_enable(records, fileDescriptor, &one, MemoryLayout<UInt64>.size)
  }

  /// Takes what is there, without blocking.
  ///
  /// First what is no record: the first such event is returned at once. Then at most `limit` records are appended to
  /// `batch`; with a limit of 0 the records stay where they are. Records of a partition come in the order of their
  /// offsets, which may have gaps. Records that were fetched before a pause, a seek or an unassignment are dropped by the
  /// library and not delivered.
  package func poll(into batch: inout [Record], limit: Int) -> ConsumerEvent? {
    ends.removeAll(keepingCapacity: true)
    hasControlEvents = true
    while let event = client.nextEvent() {
      // A partition whose queue the library has not handed over yet brings records here, too.
      while event.kind == RD_KAFKA_EVENT_FETCH, let message = unsafe rd_kafka_event_message_next(event.pointer) {
        if let news = unsafe take(message, into: &batch) { return news }
      }
      if let news = interpret(event) { return news }
    }
    hasControlEvents = false
    return pollRecords(into: &batch, limit: limit)
  }

  private func pollRecords(into batch: inout [Record], limit: Int) -> ConsumerEvent? {
    guard limit > 0 else {
      hasRecords = unsafe rd_kafka_queue_length(records) > 0
      return nil
    }
    if unsafe scratch.count < limit { unsafe scratch = Array(repeating: nil, count: limit) }
    let readsOneByOne = Self.mustReadOneByOne(isCooperative: isCooperative, version: KafkaLibrary.versionNumber)
    let count = readsOneByOne ? readOneByOne(limit) : readBatch(limit)
    hasRecords = count == limit
    fetchWaker?.left(hasRecords ? Int(unsafe rd_kafka_queue_length(records)) : 0)
    var news: ConsumerEvent?
    for index in 0..<max(0, count) {
      guard let message = unsafe scratch[index] else { continue }
      // One error of a batch is told: the library repeats those that last.
      if let error = unsafe take(message, into: &batch) { news = error }
      unsafe rd_kafka_message_destroy(message)
    }
    return news
  }

  /// Before 2.1, a batch loses what it had taken from the queue when the library's own thread pauses the partition
  /// meanwhile, as it does with all that a member keeps in a cooperative rebalance (librdkafka's pull request 4208).
  ///
  /// - Parameter version: the library's, as `rd_kafka_version` gives it.
  static func mustReadOneByOne(isCooperative: Bool, version: Int32) -> Bool { isCooperative && version < 0x0201_0000 }

  private func readBatch(_ limit: Int) -> Int {
    unsafe scratch.withUnsafeMutableBufferPointer {
      unsafe rd_kafka_consume_batch_queue(records, 0, $0.baseAddress, limit)
    }
  }

  private func readOneByOne(_ limit: Int) -> Int {
    for index in 0..<limit {
      guard let message = unsafe rd_kafka_consume_queue(records, 0) else { return index }
      unsafe scratch[index] = message
    }
    return limit
  }

  /// - Returns: the error, where the message is one.
  @inline(__always)
  private func take(_ message: UnsafePointer<rd_kafka_message_t>, into batch: inout [Record]) -> ConsumerEvent? {
    guard unsafe message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR else {
      if unsafe message.pointee.err == RD_KAFKA_RESP_ERR__PARTITION_EOF {
        unsafe noteEnd(message.pointee)
        return nil
      }
      return .error(unsafe error(of: message))
    }
    if let topic = unsafe topics.index(of: message.pointee.rkt) {
      unsafe batch.append(RecordReader.record(from: message, topic: topic))
    }
    return nil
  }

  private func noteEnd(_ message: rd_kafka_message_t) {
    guard let topic = unsafe topics.index(of: message.rkt) else { return }
    ends.append(
      unsafe StartingPoint(
        partition: PartitionID(topic: topic, partition: message.partition), offset: message.offset))
  }

  /// Has fetched records of these partitions put on the queue of records. It must be done before they are assigned: the
  /// library then leaves the choice of the queue to us.
  private func divert(_ partitions: [StartingPoint]) {
    for start in partitions {
      let name = topics.names[Int(start.partition.topic)]
      guard let own = unsafe rd_kafka_queue_get_partition(client.handle, name, start.partition.partition) else {
        continue
      }
      unsafe rd_kafka_queue_forward(own, records)
      unsafe rd_kafka_queue_destroy(own)
    }
  }

  /// Answers an `assign` event, or assigns by hand.
  ///
  /// Replaces the assignment or adds to it, as the group's protocol demands.
  /// - Throws: when the answer no longer fits (the group has moved on, or the consumer is closing). The next event tells
  ///   how it goes on.
  package func assign(_ partitions: [StartingPoint]) throws(KafkaError) {
    let list = TopicPartitionList(capacity: partitions.count)
    for start in partitions { list.add(start.partition, offset: start.offset, topics: topics.names) }
    divert(partitions)
    if isCooperative {
      try unsafe check(rd_kafka_incremental_assign(client.handle, list.list))
    } else {
      try check(unsafe rd_kafka_assign(client.handle, list.list))
    }
    // An end of the same partition's last assignment that the library was still busy with has undone it; now that is
    // over, and what was fetched meanwhile comes along.
    divert(partitions)
  }

  /// Answers a `revoke` event, lost or not. Until then the group waits.
  ///
  /// Gives up the partitions named, or the whole assignment where the protocol knows nothing else.
  package func unassign(_ partitions: [PartitionID]) throws(KafkaError) {
    // The library remembers a pause for as long as it knows the partition, through assignments by whomever.
    try resume(isCooperative ? partitions : Array(paused))
    if isCooperative {
      let list = TopicPartitionList(partitions, topics: topics.names)
      try unsafe check(rd_kafka_incremental_unassign(client.handle, list.list))
    } else {
      try check(unsafe rd_kafka_assign(client.handle, nil))
    }
  }

  /// Stops delivery from the partitions; membership and the other partitions are not touched. What was fetched ahead of
  /// them is thrown away and fetched again later, so pause for seconds and not for milliseconds.
  package func pause(_ partitions: [PartitionID]) throws(KafkaError) {
    let fresh = partitions.filter { !paused.contains($0) }
    guard !fresh.isEmpty else { return }
    let list = TopicPartitionList(fresh, topics: topics.names)
    try check(unsafe rd_kafka_pause_partitions(client.handle, list.list))
    paused.formUnion(fresh)
  }

  /// Goes on after the last record that was delivered. Partitions that are not paused are passed over.
  package func resume(_ partitions: [PartitionID]) throws(KafkaError) {
    let asleep = partitions.filter { paused.contains($0) }
    guard !asleep.isEmpty else { return }
    let list = TopicPartitionList(asleep, topics: topics.names)
    try check(unsafe rd_kafka_resume_partitions(client.handle, list.list))
    paused.subtract(asleep)
  }

  /// Begins to leave the group. Poll on until `isClosed`: revocations come as events and want their answer; commits
  /// are still served. Give it a deadline, then let go of the consumer: versions before 2.4.1 can hang here when an
  /// assignment arrives during the close of a cooperative consumer.
  package func close() throws(KafkaError) {
    guard !isClosing else { return }
    isClosing = true
    try unsafe check(rd_kafka_consumer_close_queue(client.handle, client.queue))
  }

  /// Whether this member is between its request to join the group and the answer that tells its partitions. A commit that
  /// is sent now would be refused, and might cost the assignment: wait.
  package var isJoining: Bool { joins.isJoining }

  /// Whether the consumer has left its group, after `close`.
  package var isClosed: Bool { isClosing && (unsafe rd_kafka_consumer_closed(client.handle) != 0) }

  /// The error that has put the consumer out of use (a static member was replaced, say), if there is one.
  package var fatalError: KafkaError? { client.fatalError }
}

// MARK: - Events

extension Consumer {
  private func interpret(_ event: borrowing Event) -> ConsumerEvent? {
    switch event.kind {
    case RD_KAFKA_EVENT_REBALANCE: rebalance(event)
    case RD_KAFKA_EVENT_OFFSET_COMMIT: .committed(commitResult(of: event))
    case RD_KAFKA_EVENT_ERROR: .error(client.error(of: event))
    default: nil
    }
  }

  private func rebalance(_ event: borrowing Event) -> ConsumerEvent {
    noteProtocol()
    let partitions = unsafe TopicPartitionList.partitions(
      rd_kafka_event_topic_partition_list(event.pointer), topics: topics)
    switch unsafe rd_kafka_event_error(event.pointer) {
    case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS:
      cannotBeFreed = false
      return .assign(partitions)
    case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS:
      return .revoke(partitions, lost: unsafe rd_kafka_assignment_lost(client.handle) != 0)
    case let code:
      // A failed rebalance: the library wants the assignment cleared before it tries again.
      unsafe rd_kafka_assign(client.handle, nil)
      return .error(KafkaError(code, subject: .group(group)))
    }
  }

  /// Eager and cooperative groups want different calls, and refuse the other ones.
  private func noteProtocol() {
    switch unsafe text(rd_kafka_rebalance_protocol(client.handle)) {
    case "COOPERATIVE": isCooperative = true
    case "EAGER": isCooperative = false
    default: break
    }
  }

  /// A partition's own error: an unknown topic, an offset out of range, no permission.
  private func error(of message: UnsafePointer<rd_kafka_message_t>) -> KafkaError {
    var subject: KafkaError.Subject?
    if let topic = unsafe message.pointee.rkt {
      subject = unsafe .partition(
        topic: text(rd_kafka_topic_name(topic)) ?? "", partition: message.pointee.partition)
    }
    return unsafe KafkaError(message.pointee.err, text: text(rd_kafka_message_errstr(message)), subject: subject)
  }
}

// MARK: - Helpers

extension Consumer {
  private static func checkTopics(_ names: [String]) throws(KafkaError) {
    guard !names.isEmpty else { throw .configuration("topics", "no topic is named") }
    for (index, name) in names.enumerated() {
      // The library takes a name with a caret for a pattern.
      guard !name.isEmpty, !name.hasPrefix("^") else {
        throw .configuration("topics", "'\(name)' is not the name of a topic")
      }
      guard names.firstIndex(of: name) == index else { throw .configuration("topics", "'\(name)' is named twice") }
    }
  }

  private func subscribe() throws(KafkaError) {
    let list = TopicPartitionList(capacity: topics.names.count)
    for index in topics.names.indices {
      list.add(PartitionID(topic: UInt32(index), partition: -1), topics: topics.names)
    }
    try check(unsafe rd_kafka_subscribe(client.handle, list.list))
  }

  func subject(of partition: PartitionID) -> KafkaError.Subject {
    .partition(topic: topics.names[Int(partition.topic)], partition: partition.partition)
  }

  func check(_ code: rd_kafka_resp_err_t) throws(KafkaError) {
    if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(code, subject: .group(group)) }
  }

  private func check(_ error: OpaquePointer?) throws(KafkaError) {
    if let error = unsafe KafkaError(consuming: error, subject: .group(group)) { throw error }
  }
}

extension Duration {
  /// Milliseconds for a C call; never negative (which would mean "for ever").
  var clampedMilliseconds: Int32 {
    Int32(clamping: max(0, nanoseconds / 1_000_000))
  }
}
