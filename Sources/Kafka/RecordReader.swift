import CRdKafka
import Glibc
import Wire

/// Copies a message of the library into a `Record`: one allocation for its bytes, and one for its headers if it has any.
enum RecordReader {
  /// - Parameter message: without an error; it is only read.
  static func record(from message: UnsafePointer<rd_kafka_message_t>, topic: UInt32) -> Record {
    Record(
      source: PartitionID(topic: topic, partition: unsafe message.pointee.partition),
      offset: unsafe message.pointee.offset, timestamp: unsafe timestamp(of: message), body: unsafe body(of: message))
  }

  /// Old message formats have no timestamp, and producers may send -1.
  private static func timestamp(of message: UnsafePointer<rd_kafka_message_t>) -> UnixTime? {
    var type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
    let milliseconds = unsafe rd_kafka_message_timestamp(message, &type)
    guard type != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE, milliseconds >= 0 else { return nil }
    return UnixTime(milliseconds: milliseconds)
  }

  private static func body(of message: UnsafePointer<rd_kafka_message_t>) -> RecordBody {
    let key = unsafe Part(message.pointee.key, message.pointee.key_len)
    let value = unsafe Part(message.pointee.payload, message.pointee.len)
    var list: OpaquePointer?
    if unsafe rd_kafka_message_headers(message, &list) == RD_KAFKA_RESP_ERR_NO_ERROR, let list = unsafe list {
      return unsafe body(key: key, value: value, headers: list)
    }
    let storage = unsafe [UInt8](unsafeUninitializedCapacity: key.size + value.size) { buffer, count in
      var writer = unsafe Writer(buffer)
      unsafe writer.append(key)
      unsafe writer.append(value)
      count = unsafe writer.count
    }
    return RecordBody(
      storage: storage, key: unsafe key.range(at: 0), value: unsafe value.range(at: key.size), headers: [])
  }

  private static func body(key: Part, value: Part, headers list: OpaquePointer) -> RecordBody {
    var total = unsafe key.size + value.size
    let headerCount = unsafe rd_kafka_header_cnt(list)
    for index in 0..<headerCount {
      let (name, content) = unsafe header(list, index)
      unsafe total += name.size + content.size
    }
    var headers: [RecordBody.Header] = []
    headers.reserveCapacity(headerCount)
    let storage = unsafe [UInt8](unsafeUninitializedCapacity: total) { buffer, count in
      var writer = unsafe Writer(buffer)
      unsafe writer.append(key)
      unsafe writer.append(value)
      for index in 0..<headerCount {
        let (name, content) = unsafe header(list, index)
        let nameRange = unsafe ByteRange(writer.count, writer.count + name.size)
        unsafe writer.append(name)
        let contentRange = unsafe content.range(at: writer.count)
        unsafe writer.append(content)
        headers.append(RecordBody.Header(name: nameRange, value: contentRange))
      }
      count = unsafe writer.count
    }
    return RecordBody(
      storage: storage, key: unsafe key.range(at: 0), value: unsafe value.range(at: key.size), headers: headers)
  }

  private static func header(_ list: OpaquePointer, _ index: Int) -> (name: Part, value: Part) {
    var name: UnsafePointer<CChar>?
    var value: UnsafeRawPointer?
    var size = 0
    guard unsafe rd_kafka_header_get_all(list, index, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR else {
      return unsafe (Part(nil, 0), Part(nil, 0))
    }
    return unsafe (Part(name, name.map { unsafe strlen($0) } ?? 0), Part(value, size))
  }

  /// A stretch of the library's memory. A null pointer is an absent value; an empty one has a pointer and no bytes.
  @unsafe
  private struct Part {
    let start: UnsafeRawPointer?
    let size: Int

    init(_ start: UnsafeRawPointer?, _ size: Int) {
      unsafe self.start = start
      unsafe self.size = unsafe start == nil ? 0 : size
    }

    func range(at offset: Int) -> ByteRange? {
      unsafe start == nil ? nil : ByteRange(offset, offset + size)
    }
  }

  /// Fills a new array's memory from the front.
  @unsafe
  private struct Writer {
    let buffer: UnsafeMutableBufferPointer<UInt8>
    var count = 0

    init(_ buffer: UnsafeMutableBufferPointer<UInt8>) { unsafe self.buffer = buffer }

    mutating func append(_ part: Part) {
      guard let start = unsafe part.start, let base = unsafe buffer.baseAddress, unsafe part.size > 0 else { return }
      unsafe UnsafeMutableRawPointer(base + count).copyMemory(from: start, byteCount: part.size)
      unsafe count += part.size
    }
  }
}
