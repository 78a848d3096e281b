import CRdKafka
package import Wire

// For commands that read a topic once: where it begins, where it ends, and where a time lies in it.

extension Consumer {
  /// The partition's ends, asked of its leader. Blocks for `timeout` at most. The high end is that of records that may
  /// be read: one within an open transaction does not count.
  package func queryEnds(of partition: PartitionID, timeout: Duration) throws(KafkaError) -> Watermarks {
    var low: Int64 = 0
    var high: Int64 = 0
    let code = unsafe rd_kafka_query_watermark_offsets(
      client.handle, topics.names[Int(partition.topic)], partition.partition, &low, &high, timeout.clampedMilliseconds)
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code, subject: subject(of: partition)) }
    return Watermarks(low: low, high: high)
  }

  /// Where to begin in order to see all records with a timestamp of `time` or later. Blocks for `timeout` at most.
  ///
  /// - Returns: for each partition an offset, or `StartingPoint.end` where there is no such record.
  package func startingPoints(
    at time: UnixTime, of partitions: [PartitionID], timeout: Duration
  ) throws(KafkaError) -> [StartingPoint] {
    let list = TopicPartitionList(capacity: partitions.count)
    // The call takes times in the place of offsets.
    for partition in partitions { list.add(partition, offset: max(0, time.milliseconds), topics: topics.names) }
    try check(unsafe rd_kafka_offsets_for_times(client.handle, list.list, timeout.clampedMilliseconds))
    return try unsafe answers(in: list) { (partition, element) in
      unsafe StartingPoint(partition: partition, offset: element.offset >= 0 ? element.offset : StartingPoint.end)
    }
  }
}
