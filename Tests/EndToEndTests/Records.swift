import Kafka
import Service
import TestSupport
import Wire

/// A record for the topic that requests come from.
struct PushRequest: Sendable {
  var key: String?
  var value: [UInt8]?
  var headers: [(name: String, value: String)] = []
  /// `nil`: as the key says.
  var partition: Int32?

  init(key: String? = nil, value: [UInt8]?, headers: [(name: String, value: String)] = [], partition: Int32? = nil) {
    self.key = key
    self.value = value
    self.headers = headers
    self.partition = partition
  }

  /// A request in JSON.
  ///
  /// - Parameter fields: further members, each with a comma before it.
  init(
    _ id: String, app: String = "app", token: String = Planted.token, payload: String = Planted.payload,
    fields: String = "", key: String? = nil, headers: [(name: String, value: String)] = [], partition: Int32? = nil
  ) {
    let text = #"{"id":"\#(id)","app":"\#(app)","token":"\#(token)","payload":\#(payload)\#(fields)}"#
    self.init(key: key, value: Array(text.utf8), headers: headers, partition: partition)
  }
}

/// Writes records and waits until the brokers have them.
actor Writer {
  private let producer: Producer
  private let topic: TopicHandle
  private var reports: [DeliveryReport] = []

  init(_ settings: Settings) throws {
    let properties = try KafkaProperties(brokers: settings.kafka.brokers[0])
    producer = try Producer(properties: properties, log: { _ in })
    topic = try producer.topic(World.topics.requests[0])
  }

  struct NotStored: Error {
    var count: Int
  }

  func send(_ requests: [PushRequest]) throws {
    for request in requests {
      var storage: [UInt8] = []
      let headers = request.headers.map { header in
        RecordBody.Header(name: lay(header.name, &storage), value: lay(header.value, &storage))
      }
      _ = try producer.produce(
        topic: topic, key: request.key.map { Bytes($0) }, value: request.value.map { Bytes($0) },
        headerStorage: storage, headers: headers, partition: request.partition, ticket: 1)
    }
    _ = producer.flush(into: &reports, timeout: .seconds(60))
    let stored = reports.count { if case .acknowledged = $0.outcome { true } else { false } }
    reports.removeAll()
    if stored != requests.count { throw NotStored(count: requests.count - stored) }
  }

  private func lay(_ text: String, _ storage: inout [UInt8]) -> ByteRange {
    let start = storage.count
    storage.append(contentsOf: text.utf8)
    return ByteRange(start, storage.count)
  }
}

/// A record that the service wrote.
struct Entry: Sendable {
  var topic: String
  var key: String?
  var value: [UInt8]?
  var headers: [String: String]
  /// The members of the JSON in the value: strings as text, all else as it is written, nested ones by `outer.inner`.
  var fields: [String: String]

  var id: String? { fields["id"] }
  var status: String? { fields["status"] }
  /// Tells the items of a batch apart.
  var name: String { "\(id ?? "") \(fields["source.index"] ?? "")" }
}

/// Reads all that the service writes, and what its group has committed.
actor Books {
  static let topics = [
    World.topics.results, World.topics.invalidTokens, World.topics.deadLetters, World.topics.deferred,
  ]

  private let consumer: Consumer
  private let group: Consumer
  private var entries: [String: [Entry]] = [:]
  private var batch: [Record] = []

  init(_ settings: Settings) throws {
    let properties = try KafkaProperties(brokers: settings.kafka.brokers[0])
    consumer = try Consumer(
      properties: properties, group: "books", topics: Self.topics, membership: .manual, log: { _ in })
    group = try Consumer(
      properties: properties, group: World.group, topics: World.topics.requests, membership: .manual, log: { _ in })
    try consumer.assign(
      Self.topics.indices.flatMap { topic in
        (0..<Int32(World.outputPartitions)).map {
          StartingPoint(partition: PartitionID(topic: UInt32(topic), partition: $0), offset: 0)
        }
      })
  }

  /// All records of a topic so far.
  func read(_ topic: String) -> [Entry] {
    repeat {
      _ = consumer.poll(into: &batch, limit: 1000)
      for record in batch { note(record) }
      batch.removeAll()
    } while consumer.hasRecords || consumer.hasControlEvents
    return entries[topic] ?? []
  }

  func committed(_ partitions: Int) throws -> [CommittedOffset] {
    try group.committed(
      (0..<Int32(partitions)).map { PartitionID(topic: 0, partition: $0) }, timeout: .seconds(30))
  }

  private func note(_ record: Record) {
    let body = record.body
    func text(_ range: ByteRange) -> String { Bytes(body.storage, range).text }
    let topic = Self.topics[Int(record.source.topic)]
    let value = body.value.map { Bytes(body.storage, $0).array }
    var headers: [String: String] = [:]
    for header in body.headers { headers[text(header.name)] = header.value.map { text($0) } ?? "" }
    entries[topic, default: []].append(
      Entry(
        topic: topic, key: body.key.map { text($0) }, value: value, headers: headers,
        fields: value.flatMap { Self.fields($0) } ?? [:]))
  }

  private static func fields(_ text: [UInt8]) -> [String: String]? {
    var storage = text
    var fields: [String: String] = [:]
    var inner: [(name: String, text: [UInt8])] = []
    func string(_ string: JSONString) throws(JSONError) -> String {
      let range = try JSONText.unescape(string, within: &storage)
      return Bytes(storage, range).text
    }
    do {
      var scanner = JSONScanner(text.span)
      try scanner.beginObject()
      while let key = try scanner.nextKey() {
        let name = try string(key)
        switch try scanner.value() {
        case .string(let value): fields[name] = try string(value)
        case .number(let range, _), .array(let range): fields[name] = Bytes(text, range).text
        case .object(let range):
          fields[name] = Bytes(text, range).text
          inner.append((name, Bytes(text, range).array))
        case .true: fields[name] = "true"
        case .false: fields[name] = "false"
        case .null: fields[name] = "null"
        }
      }
      try scanner.endDocument()
    } catch {
      return nil
    }
    for (name, text) in inner {
      for (key, value) in Self.fields(text) ?? [:] { fields["\(name).\(key)"] = value }
    }
    return fields
  }
}
