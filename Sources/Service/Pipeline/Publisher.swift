import Delivery
import Kafka
import Wire

/// The shell around the producers: outboxes in, receipts out.
///
/// A full queue is backpressure: what finds no room waits here, in order, and while anything waits the pipeline polls
/// no records. So the backlog is bounded by what is in flight.
///
/// Brokers judge whole batches, so a record may be refused for its neighbour's sake. What is refused is produced again
/// by a second producer, each record in a batch of its own; only what is refused there is refused for good.
///
/// Used on the pipeline's loop alone.
struct Publisher: ~Copyable {
  /// How often the same record is refused for good before the machine gives it up: in full, and shortened.
  private static let lastRefusal = 2

  private let batched: LastingProducer
  /// Made when it is first needed.
  private var oneByOne: LastingProducer?
  private var wakeup: Int32?
  private let make: (_ isOneByOne: Bool) throws(KafkaError) -> LastingProducer
  private var outputs = OutputHealth()
  /// The tickets of records that were refused, and how often that was for good.
  private var refusals: [UInt64: Int] = [:]
  private var backlog: [Outbox] = []
  /// Where in `backlog` the first item stands that has not been produced.
  private var next = (outbox: 0, item: 0)
  private var reports: [DeliveryReport] = []
  private var receipts: [Receipt] = []

  /// - Parameters:
  ///   - topics: the names of the output topics.
  ///   - makeProducer: makes a producer; also later, in place of one that has failed.
  init(
    topics: TopicSettings, makeProducer: @escaping (_ isOneByOne: Bool) throws(KafkaError) -> Producer
  ) throws(KafkaError) {
    let names = OutputTopic.allCases.map { topics.name(of: $0) }
    make = { (isOneByOne) throws(KafkaError) in
      try LastingProducer(topics: names) { () throws(KafkaError) in try makeProducer(isOneByOne) }
    }
    batched = try make(false)
  }

  /// Has the producers write to an eventfd when they have reports; take receipts once after this call.
  mutating func wake(fileDescriptor: Int32) {
    wakeup = fileDescriptor
    batched.wake(fileDescriptor: fileDescriptor)
    oneByOne?.wake(fileDescriptor: fileDescriptor)
  }

  /// Whether the producers had no room for all that was to be published.
  var isBlocked: Bool { !backlog.isEmpty }
  /// Whether nothing is on its way to Kafka.
  var isIdle: Bool { backlog.isEmpty && outstanding == 0 }
  /// Records that Kafka has not acknowledged, those that wait for room among them.
  var queued: Int {
    backlog.reduce(outstanding - next.item) { $0 + $1.items.count }
  }
  private var outstanding: Int { batched.outstanding + (oneByOne?.outstanding ?? 0) }

  /// Produces an outbox and leaves it empty.
  mutating func publish(_ outbox: inout Outbox, now: Instant) {
    guard !outbox.isEmpty else { return }
    if backlog.isEmpty {
      guard let left = produce(outbox, from: 0, now) else {
        outbox.removeAll()
        return
      }
      next = (0, left)
    }
    backlog.append(outbox)
    outbox = Outbox()
  }

  /// Takes delivery reports, then produces what had found no room before.
  ///
  /// - Returns: the receipts; valid until the next call. `error` is one of the client itself.
  mutating func takeReceipts(limit: Int, now: Instant) -> (receipts: [Receipt], error: KafkaError?) {
    var error = batched.takeReports(into: &reports, limit: limit)
    if let other = oneByOne?.takeReports(into: &reports, limit: limit) { error = error ?? other }
    var taken: [Receipt] = []
    swap(&taken, &receipts)
    taken.reserveCapacity(taken.count + reports.count)
    for report in reports { taken.append(receipt(for: report, now)) }
    reports.removeAll(keepingCapacity: true)
    produceBacklog(now)
    return (taken, error)
  }

  /// What became of the producers themselves; once a turn.
  mutating func advance(to now: Instant) -> [LastingProducer.Change] {
    [batched.advance(to: now), oneByOne?.advance(to: now)].compactMap(\.self)
  }

  /// The output topics that take nothing any more, or take records again, since the last call.
  mutating func takeOutputChanges(now: Instant) -> [OutputHealth.Change] { outputs.takeChanges(now: now) }

  /// Whether reports are left that no wake-up will announce.
  var hasMore: Bool { batched.hasReports || oneByOne?.hasReports ?? false || !receipts.isEmpty }

  private mutating func receipt(for report: DeliveryReport, _ now: Instant) -> Receipt {
    var receipt = Receipt(ticket: report.ticket, outcome: .acknowledged)
    switch report.outcome {
    case .acknowledged:
      outputs.acknowledged(receipt.topic, now: now)
      if !refusals.isEmpty { refusals[report.ticket] = nil }
    case .failed(let error, _):
      outputs.failed(receipt.topic, error)
      if error.publishingFault != .record {
        receipt.outcome = .undelivered(error.description)
      } else if refusals[report.ticket] == nil {
        refusals[report.ticket] = 0
        receipt.outcome = .undelivered("\(error.description); perhaps for another record of its batch")
      } else {
        refuse(report.ticket, receipt.topic)
        receipt.outcome = .refused(error.description)
      }
    }
    return receipt
  }

  private mutating func refuse(_ ticket: UInt64, _ topic: OutputTopic) {
    let count = refusals[ticket, default: 0] + 1
    refusals[ticket] = count < Self.lastRefusal ? count : nil
    if count >= Self.lastRefusal { outputs.gaveUp(topic) }
  }

  private mutating func produceBacklog(_ now: Instant) {
    while next.outbox < backlog.count {
      if let left = produce(backlog[next.outbox], from: next.item, now) {
        next.item = left
        break
      }
      next = (next.outbox + 1, 0)
    }
    if next.outbox == backlog.count {
      backlog.removeAll(keepingCapacity: true)
      next = (0, 0)
    } else if next.outbox > 0 {
      backlog.removeSubrange(..<next.outbox)
      next.outbox = 0
    }
  }

  /// - Returns: the place of the first item that found no room; `nil` if all did.
  private mutating func produce(_ outbox: Outbox, from first: Int, _ now: Instant) -> Int? {
    for index in first..<outbox.items.count {
      let item = outbox.items[index]
      do {
        let producer = try producer(for: item.ticket)
        let result = try producer.produce(
          topic: Int(item.topic.rawValue), outbox.key(of: item), outbox.value(of: item), item.requestStorage,
          item.headers, item.extraHeaders.map { ($0.name, $0.value) }, ticket: item.ticket)
        if result == .full { return index }
        outputs.produced(item.topic, now: now)
      } catch {
        // The client itself has looked at this record alone.
        let isRefused = error.publishingFault == .record
        outputs.produced(item.topic, now: now)
        outputs.failed(item.topic, error)
        if isRefused { refuse(item.ticket, item.topic) }
        receipts.append(
          Receipt(
            ticket: item.ticket, outcome: isRefused ? .refused(error.description) : .undelivered(error.description)))
      }
    }
    return nil
  }

  private mutating func producer(for ticket: UInt64) throws(KafkaError) -> LastingProducer {
    guard !refusals.isEmpty, refusals[ticket] != nil else { return batched }
    if let oneByOne { return oneByOne }
    let made = try make(true)
    if let wakeup { made.wake(fileDescriptor: wakeup) }
    oneByOne = made
    return made
  }
}

extension TopicSettings {
  func name(of topic: OutputTopic) -> String {
    switch topic {
    case .results: results
    case .invalidTokens: invalidTokens
    case .deadLetters: deadLetters
    case .deferred: deferred
    }
  }
}
