import CRdKafka
import Glibc
import Wire

/// Owns an `rd_kafka_topic_partition_list_t` for as long as a call needs it.
@safe
struct TopicPartitionList: ~Copyable {
  let list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

  /// - Parameter capacity: how many elements to make room for; more may be added.
  init(capacity: Int) {
    // The library has no failure here: it stops the process when memory runs out.
    unsafe list = rd_kafka_topic_partition_list_new(Int32(clamping: capacity))
  }

  /// One element for each partition, without offsets.
  init(_ partitions: [PartitionID], topics: [String]) {
    self.init(capacity: partitions.count)
    for partition in partitions { add(partition, topics: topics) }
  }

  deinit { unsafe rd_kafka_topic_partition_list_destroy(list) }

  /// - Parameters:
  ///   - offset: `nil` for "wherever the group's committed offset is".
  ///   - metadata: at most 4,096 bytes on most brokers (`offset.metadata.max.bytes`).
  /// - Precondition: the partition's topic lies within `topics`.
  func add(_ partition: PartitionID, offset: Int64? = nil, metadata: String = "", topics: [String]) {
    let element = unsafe rd_kafka_topic_partition_list_add(list, topics[Int(partition.topic)], partition.partition)
    guard let element = unsafe element else { return }
    unsafe element.pointee.offset = offset ?? Int64(RD_KAFKA_OFFSET_STORED)
    guard !metadata.isEmpty else { return }
    // The list frees the metadata with free(3), so it must come from malloc(3).
    let size = metadata.utf8.count
    guard let copy = unsafe malloc(size) else { return }
    unsafe UnsafeMutableRawBufferPointer(start: copy, count: size).copyBytes(from: metadata.utf8)
    unsafe element.pointee.metadata = copy
    unsafe element.pointee.metadata_size = size
  }

  var count: Int { unsafe TopicPartitionList.count(list) }

  /// The partitions of a list that belongs to someone else (an event). Topics that are not among `topics` are left
  /// out: the service asked for none of them.
  static func partitions(
    _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?, topics: TopicTable
  ) -> [PartitionID] {
    var partitions: [PartitionID] = []
    unsafe forEach(list, topics: topics) { (partition, _) in partitions.append(partition) }
    return partitions
  }

  /// Visits the elements with their partition, in the list's order.
  static func forEach(
    _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?, topics: TopicTable,
    _ body: (PartitionID, rd_kafka_topic_partition_t) -> Void
  ) {
    guard let list = unsafe list else { return }
    for index in 0..<(unsafe count(list)) {
      let element = unsafe list.pointee.elems[index]
      guard let topic = unsafe topics.index(named: element.topic) else { continue }
      unsafe body(PartitionID(topic: topic, partition: element.partition), element)
    }
  }

  private static func count(_ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) -> Int {
    Int(unsafe list.pointee.cnt)
  }
}

/// The topics that a consumer reads, by place, by name and by the library's topic object.
///
/// The objects are kept referenced for as long as the table lives. That pins them, so that their addresses can stand
/// for the topics: the hot path compares pointers and no names.
@safe
final class TopicTable {
  let names: [String]
  private var handles: [OpaquePointer]
  /// Kept alive, as the topic objects must go before their client does.
  private let client: KafkaClient

  init(_ names: [String], client: KafkaClient) throws(KafkaError) {
    self.names = names
    self.client = client
    var handles: [OpaquePointer] = unsafe []
    for name in names {
      guard let handle = unsafe rd_kafka_topic_new(client.handle, name, nil) else {
        unsafe handles.forEach { unsafe rd_kafka_topic_destroy($0) }
        throw KafkaError(rd_kafka_last_error(), subject: .topic(name))
      }
      unsafe handles.append(handle)
    }
    unsafe self.handles = handles
  }

  deinit { release() }

  /// Lets go of the topic objects. The table still knows the names.
  func release() {
    unsafe handles.forEach { unsafe rd_kafka_topic_destroy($0) }
    unsafe handles = []
  }

  @inline(__always)
  func index(of handle: OpaquePointer?) -> UInt32? {
    for index in unsafe handles.indices where unsafe handles[index] == handle { return UInt32(index) }
    return nil
  }

  func index(named name: UnsafePointer<CChar>?) -> UInt32? {
    guard let name = unsafe text(name) else { return nil }
    return names.firstIndex(of: name).map(UInt32.init)
  }
}
