import CRdKafka
package import Wire

// Offsets: what the group has committed, and where a partition stands.

extension Consumer {
  /// Commits offsets. Returns at once; the answer comes as `ConsumerEvent.committed` with the same ticket.
  ///
  /// Only for partitions that are assigned (or with manual membership): the broker refuses the others.
  /// - Throws: when it could not be sent at all.
  package func commit(_ offsets: [OffsetCommit], ticket: UInt64) throws(KafkaError) {
    guard !offsets.isEmpty else { return }
    let list = list(of: offsets)
    try check(
      unsafe rd_kafka_commit_queue(
        client.handle, list.list, client.queue, nil, UnsafeMutableRawPointer(bitPattern: UInt(ticket))))
  }

  /// Asks the group's coordinator for committed offsets and their metadata. Blocks for `timeout` at most. It may be
  /// called while an `assign` event waits for its answer.
  ///
  /// Partitions whose answer is an error make the whole call fail: an offset that is not known must not be taken for
  /// none.
  package func committed(_ partitions: [PartitionID], timeout: Duration) throws(KafkaError) -> [CommittedOffset] {
    guard !partitions.isEmpty else { return [] }
    let list = TopicPartitionList(partitions, topics: topics.names)
    try check(unsafe rd_kafka_committed(client.handle, list.list, timeout.clampedMilliseconds))
    return try unsafe answers(in: list) { (partition, element) in
      let bytes = unsafe UnsafeRawBufferPointer(start: element.metadata, count: element.metadata_size)
      return unsafe CommittedOffset(
        partition: partition, offset: element.offset >= 0 ? element.offset : nil,
        metadata: String(decoding: bytes, as: UTF8.self))
    }
  }

  /// What `make` makes of each element of an answer.
  /// - Throws: the first element's error, if one has one.
  func answers<Answer>(
    in list: borrowing TopicPartitionList, _ make: (PartitionID, rd_kafka_topic_partition_t) -> Answer
  ) throws(KafkaError) -> [Answer] {
    var answers: [Answer] = []
    var failure: KafkaError?
    unsafe TopicPartitionList.forEach(list.list, topics: topics) { (partition, element) in
      if unsafe element.err != RD_KAFKA_RESP_ERR_NO_ERROR {
        failure = failure ?? (unsafe KafkaError(element.err, subject: subject(of: partition)))
      }
      unsafe answers.append(make(partition, element))
    }
    if let failure { throw failure }
    return answers
  }

  /// The partition's ends as the last fetch showed them; no request. `nil` until there was one.
  package func watermarks(of partition: PartitionID) -> Watermarks? {
    var low: Int64 = -1
    var high: Int64 = -1
    let code = unsafe rd_kafka_get_watermark_offsets(
      client.handle, topics.names[Int(partition.topic)], partition.partition, &low, &high)
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR, high >= 0 else { return nil }
    // The low end is only learnt when a fetch brings it; until then there is nothing below the high one to speak of.
    return Watermarks(low: max(0, low), high: high)
  }

  /// How many records lie beyond `offset` (the next to be read or committed); never negative, and counted from the
  /// log's start when retention has overtaken the offset. `nil` while the ends are not known.
  package func lag(of partition: PartitionID, from offset: Int64) -> Int64? {
    watermarks(of: partition).map { max(0, $0.high - max(offset, $0.low)) }
  }

  private func list(of offsets: [OffsetCommit]) -> TopicPartitionList {
    let list = TopicPartitionList(capacity: offsets.count)
    for entry in offsets {
      list.add(entry.partition, offset: entry.offset, metadata: entry.metadata, topics: topics.names)
    }
    return list
  }

  func commitResult(of event: borrowing Event) -> CommitResult {
    let code = unsafe rd_kafka_event_error(event.pointer)
    var entries: [CommitResult.Entry] = []
    unsafe TopicPartitionList.forEach(rd_kafka_event_topic_partition_list(event.pointer), topics: topics) {
      (partition, element) in
      let failed = unsafe element.err != RD_KAFKA_RESP_ERR_NO_ERROR
      unsafe entries.append(
        CommitResult.Entry(
          partition: partition, offset: element.offset,
          error: failed ? KafkaError(element.err, subject: subject(of: partition)) : nil))
    }
    let ticket = unsafe UInt64(UInt(bitPattern: rd_kafka_event_opaque(event.pointer)))
    let error = code == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : KafkaError(code, subject: .group(group))
    return CommitResult(ticket: ticket, error: error, entries: entries)
  }
}
