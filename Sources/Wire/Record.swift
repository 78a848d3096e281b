/// A partition of one of the topics that the service reads: the topic by its place in the configured list, so that
/// the hot path compares numbers and not names.
package struct PartitionID: Hashable, Sendable {
  package var topic: UInt32
  package var partition: Int32

  package init(topic: UInt32, partition: Int32) {
    self.topic = topic
    self.partition = partition
  }
}

/// A record as it was polled from Kafka.
package struct Record: Sendable {
  package var source: PartitionID
  package var offset: Int64
  /// The record's own timestamp; `nil` where the producer gave none.
  package var timestamp: UnixTime?
  package var body: RecordBody

  package init(source: PartitionID, offset: Int64, timestamp: UnixTime?, body: RecordBody) {
    self.source = source
    self.offset = offset
    self.timestamp = timestamp
    self.body = body
  }
}

/// What a Kafka record carries: key, value and headers, all in one buffer.
///
/// One record costs one allocation, whatever it holds. A `nil` value is a tombstone; a `nil` key is no key. Decoders
/// may append to `storage` (an unescaped string, say); ranges that stand stay true.
package struct RecordBody: Sendable {
  /// One record header; both are stretches of `storage`. Kafka allows a header without a value.
  package struct Header: Hashable, Sendable {
    package var name: ByteRange
    package var value: ByteRange?

    package init(name: ByteRange, value: ByteRange?) {
      self.name = name
      self.value = value
    }
  }

  package var storage: [UInt8]
  package var key: ByteRange?
  package var value: ByteRange?
  package var headers: [Header]

  package init(storage: [UInt8], key: ByteRange?, value: ByteRange?, headers: [Header] = []) {
    self.storage = storage
    self.key = key
    self.value = value
    self.headers = headers
  }

  /// For tests and generators: lays the parts out in one buffer.
  package init(key: [UInt8]?, value: [UInt8]?, headers: [(name: String, value: [UInt8]?)] = []) {
    var storage: [UInt8] = []
    func lay(_ part: some Sequence<UInt8>) -> ByteRange {
      let start = storage.count
      storage.append(contentsOf: part)
      return ByteRange(start, storage.count)
    }
    self.key = key.map { lay($0) }
    self.value = value.map { lay($0) }
    self.headers = headers.map { Header(name: lay($0.name.utf8), value: $0.value.map { lay($0) }) }
    self.storage = storage
  }
}

/// What is to be committed for one partition: everything before `offset` is settled.
package struct OffsetCommit: Hashable, Sendable {
  package var partition: PartitionID
  /// That of the next record to read.
  package var offset: Int64
  /// Text of our own that the broker keeps with the offset; brokers take 4,096 bytes by default. It names what is settled
  /// beyond the offset.
  package var metadata: String

  package init(partition: PartitionID, offset: Int64, metadata: String = "") {
    self.partition = partition
    self.offset = offset
    self.metadata = metadata
  }
}
