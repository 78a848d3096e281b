import Glibc
import Synchronization
import Testing
import Wire

@testable import Kafka

/// What the library wakes us through: a non-blocking pipe here, so that the writes can be counted.
final class WakePipe {
  private let readEnd: Int32
  /// Where the library writes to.
  let fileDescriptor: Int32

  init() {
    var ends: [Int32] = [-1, -1]
    let result = unsafe pipe(&ends)
    precondition(result == 0)
    readEnd = ends[0]
    fileDescriptor = ends[1]
    for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
  }

  deinit {
    close(readEnd)
    close(fileDescriptor)
  }

  /// Waits until it is written to; false when nothing came in time.
  func wait(milliseconds: Int32) -> Bool {
    var waiter = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&waiter, 1, milliseconds) == 1
  }

  /// How often it was written to since the last reset.
  @discardableResult
  func reset() -> Int {
    var words = [UInt64](repeating: 0, count: 512)
    var count = 0
    while true {
      let size = unsafe read(readEnd, &words, words.count * 8)
      guard size > 0 else { return count }
      count += size / 8
    }
  }
}

/// Collects log lines from any thread.
final class LogBook: Sendable {
  private let kept = Mutex<[KafkaLogLine]>([])
  var lines: [KafkaLogLine] { kept.withLock { $0 } }
  var sink: LogSink { { line in self.kept.withLock { $0.append(line) } } }
}

/// A consumer on its event loop: polls until a condition holds.
final class Reader {
  let consumer: Consumer
  let wakeup = WakePipe()
  let log = LogBook()
  var records: [Record] = []
  var assigned: Set<PartitionID> = []
  var revocations: [(partitions: [PartitionID], lost: Bool)] = []
  var assignments: [[PartitionID]] = []
  var commits: [CommitResult] = []
  var errors: [KafkaError] = []
  /// Where partitions were last seen to end.
  var ends: [PartitionID: Int64] = [:]
  /// When false, assignments and revocations wait in `unanswered`.
  var answersAtOnce = true
  var unanswered: [ConsumerEvent] = []

  init(
    _ cluster: MockCluster, group: String, topics: [String], membership: Consumer.Membership = .group,
    settings: [(String, String)] = []
  ) throws {
    var properties = try KafkaProperties(brokers: cluster.bootstrapServers)
    for (name, value) in settings { try properties.set(name, to: value) }
    consumer = try Consumer(
      properties: properties, group: group, topics: topics, membership: membership, log: log.sink)
    consumer.wake(fileDescriptor: wakeup.fileDescriptor)
  }

  /// Assigns by hand, from the start of each partition unless told otherwise.
  func assign(_ partitions: [PartitionID], offset: Int64? = 0) throws {
    try consumer.assign(partitions.map { StartingPoint(partition: $0, offset: offset) })
    assigned.formUnion(partitions)
  }

  /// One round of the loop: everything that is there.
  func turn(limit: Int = 1000) throws {
    repeat {
      let polled = consumer.poll(into: &records, limit: limit)
      for end in consumer.ends { ends[end.partition] = end.offset }
      guard let event = polled else { continue }
      switch event {
      case .assign, .revoke:
        if answersAtOnce { try answer(event) } else { unanswered.append(event) }
      case .committed(let result): commits.append(result)
      case .error(let error): errors.append(error)
      }
    } while consumer.hasRecords || consumer.hasControlEvents
  }

  func answer(_ event: ConsumerEvent) throws {
    switch event {
    case .assign(let partitions):
      assignments.append(partitions)
      try consumer.assign(partitions.map { StartingPoint(partition: $0) })
      assigned.formUnion(partitions)
    case .revoke(let partitions, let lost):
      revocations.append((partitions, lost))
      try consumer.unassign(partitions)
      assigned.subtract(partitions)
    default: break
    }
  }

  /// Answers what has waited.
  func answerAll() throws {
    let waiting = unanswered
    unanswered = []
    for event in waiting { try answer(event) }
  }

  /// Commits, and polls until the answer is there.
  func commit(_ offsets: [OffsetCommit]) throws -> CommitResult {
    let ticket: UInt64 = 0xC0FFEE
    commits.removeAll { $0.ticket == ticket }
    try consumer.commit(offsets, ticket: ticket)
    _ = try run { commits.contains { $0.ticket == ticket } }
    return try #require(commits.last { $0.ticket == ticket })
  }

  /// Polls until `condition` holds; false after `seconds`, which a busy machine never needs.
  func run(seconds: Int = 30, until condition: () throws -> Bool) throws -> Bool {
    try runTogether([self], seconds: seconds, until: condition)
  }

  func leave() throws -> Bool {
    try consumer.close()
    return try run { consumer.isClosed }
  }
}

/// Turns several readers by turns until `condition` holds.
func runTogether(_ readers: [Reader], seconds: Int = 30, until condition: () throws -> Bool) throws -> Bool {
  let deadline = ContinuousClock.now + .seconds(seconds)
  while ContinuousClock.now < deadline {
    for reader in readers {
      reader.wakeup.reset()
      try reader.turn()
    }
    if try condition() { return true }
    _ = readers[0].wakeup.wait(milliseconds: readers.count == 1 ? 100 : 10)
  }
  return try condition()
}

extension CommitResult {
  /// Whether every offset was committed.
  var isComplete: Bool { error == nil && entries.allSatisfy { $0.error == nil } }
}

/// A producer on its event loop.
final class Writer {
  let producer: Producer
  let wakeup = WakePipe()
  let log = LogBook()
  var reports: [DeliveryReport] = []
  var errors: [KafkaError] = []

  init(_ brokers: String, settings: [(String, String)] = []) throws {
    var properties = try KafkaProperties(brokers: brokers)
    for (name, value) in settings { try properties.set(name, to: value) }
    producer = try Producer(properties: properties, log: log.sink)
    producer.wake(fileDescriptor: wakeup.fileDescriptor)
  }

  func turn(limit: Int = 1000) {
    repeat {
      if let error = producer.takeReports(into: &reports, limit: limit) { errors.append(error) }
    } while producer.hasReports
  }

  func run(seconds: Int = 30, until condition: () -> Bool) -> Bool {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while ContinuousClock.now < deadline {
      wakeup.reset()
      turn()
      if condition() { return true }
      _ = wakeup.wait(milliseconds: 100)
    }
    return condition()
  }

  /// Writes `count` records to a partition and waits for their reports.
  func fill(_ topic: String, partition: Int32 = 0, count: Int, from first: Int = 0) throws -> Bool {
    let handle = try producer.topic(topic)
    let wanted = reports.count + count
    for number in first..<(first + count) {
      let value = Bytes("record \(number)")
      while try producer.produce(
        topic: handle, key: nil, value: value, partition: partition, ticket: UInt64(number)) == .full
      { turn() }
    }
    return run { reports.count >= wanted }
  }
}

func partition(_ number: Int32, topic: UInt32 = 0) -> PartitionID { PartitionID(topic: topic, partition: number) }
