import Kafka
import Service
import Wire

/// What became of every request of the demo, counted from what the service published and nothing else.
struct DemoBooks: Sendable {
  /// The statuses of results, in the order of the summary.
  static let statuses = ["delivered", "rejected", "expired", "failed", "invalid"]

  var produced = 0
  /// Requests by the status of their first result, as in `statuses`.
  var byStatus = [Int](repeating: 0, count: DemoBooks.statuses.count)
  var invalidTokens = 0
  var deadLetters = 0
  /// Results beyond the first one of their request.
  var repeatedResults = 0
  /// Results of requests that were never made, or that cannot be read.
  var strayResults = 0
  var seconds = 0.0
  /// By request: 0 no result yet, else the status's place and one.
  private var first: [UInt8] = []

  var answered: Int { byStatus.reduce(0, +) }
  /// Requests without a result.
  var unaccounted: Int { produced - answered }

  mutating func noteResult(_ value: Span<UInt8>) {
    guard let (number, status) = Self.read(value) else {
      strayResults += 1
      return
    }
    while first.count <= number { first.append(0) }
    if first[number] == 0 {
      first[number] = UInt8(status + 1)
      byStatus[status] += 1
    } else {
      repeatedResults += 1
    }
  }

  /// The request's number and the status's place.
  private static func read(_ value: Span<UInt8>) -> (number: Int, status: Int)? {
    var scanner = JSONScanner(value)
    var number: Int?
    var status: Int?
    do {
      try scanner.beginObject()
      while let key = try scanner.nextKey() {
        let isID = scanner.matches(key, "id")
        let isStatus = scanner.matches(key, "status")
        guard case .string(let text) = try scanner.value() else { continue }
        let bytes = value.extracting(text.range.indices)
        if isID { number = DemoTraffic.number(of: bytes) }
        if isStatus { status = statuses.firstIndex { JSONText.matches(text, $0, in: value) } }
      }
    } catch {
      return nil
    }
    guard let number, let status, number >= 0, number < 1 << 30 else { return nil }
    return (number, status)
  }
}

/// Reads the topics that the service writes, from their beginnings.
struct DemoAuditor {
  private let consumer: Consumer
  private var batch: [Record] = []

  init(world: DemoWorld, log: @escaping LogSink) throws {
    let topics = world.settings.kafka.topics
    let names = [topics.results, topics.invalidTokens, topics.deadLetters]
    consumer = try Consumer(
      properties: try world.settings.kafka.consumer(), group: "demo-audit", topics: names, membership: .manual,
      log: log)
    try consumer.assign(
      names.indices.flatMap { topic in
        (0..<Int32(DemoWorld.outputPartitions)).map {
          StartingPoint(partition: PartitionID(topic: UInt32(topic), partition: $0), offset: 0)
        }
      })
  }

  mutating func read(into books: inout DemoBooks) {
    repeat {
      _ = consumer.poll(into: &batch, limit: 4096)
      for record in batch { note(record, in: &books) }
      batch.removeAll(keepingCapacity: true)
    } while consumer.hasRecords
  }

  private func note(_ record: Record, in books: inout DemoBooks) {
    switch record.source.topic {
    case 0: if let value = record.body.value { books.noteResult(Bytes(record.body.storage, value).span) }
    case 1: books.invalidTokens += 1
    default: books.deadLetters += 1
    }
  }
}
