import Delivery
import Kafka
import Wire

/// The shell around the producer: outboxes in, receipts out.
///
/// The producer's full queue is backpressure: what finds no room waits here, in order, and while anything waits the
/// pipeline polls no records. So the backlog is bounded by what is in flight.
///
/// Used on the pipeline's loop alone.
struct Publisher: ~Copyable {
  private let producer: Producer
  /// The handle of each output topic, by its raw value.
  private let topics: [TopicHandle]
  private var backlog: [Outbox] = []
  /// Where in `backlog` the first item stands that has not been produced.
  private var next = (outbox: 0, item: 0)
  private var reports: [DeliveryReport] = []
  private var receipts: [Receipt] = []

  init(producer: Producer, topics names: TopicSettings) throws(KafkaError) {
    self.producer = producer
    var handles: [TopicHandle] = []
    for topic in OutputTopic.allCases { handles.append(try producer.topic(names.name(of: topic))) }
    topics = handles
  }

  /// Whether the producer had no room for all that was to be published.
  var isBlocked: Bool { !backlog.isEmpty }
  /// Whether nothing is on its way to Kafka.
  var isIdle: Bool { backlog.isEmpty && producer.outstanding == 0 }
  /// Records that Kafka has not acknowledged, those that wait for room among them.
  var queued: Int {
    backlog.reduce(producer.outstanding - next.item) { $0 + $1.items.count }
  }

  /// Produces an outbox and leaves it empty.
  mutating func publish(_ outbox: inout Outbox) {
    guard !outbox.isEmpty else { return }
    if backlog.isEmpty {
      guard let left = produce(outbox, from: 0) else {
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
  mutating func takeReceipts(limit: Int) -> (receipts: [Receipt], error: KafkaError?) {
    let error = producer.drainReports(into: &reports, limit: limit)
    let taken = receipts + reports.map { Receipt(ticket: $0.ticket, outcome: Receipt.Outcome($0.outcome)) }
    receipts.removeAll(keepingCapacity: true)
    reports.removeAll(keepingCapacity: true)
    produceBacklog()
    return (taken, error)
  }

  /// Whether reports are left that no wake-up will announce.
  var hasMore: Bool { !producer.isDrained || !receipts.isEmpty }

  /// Sends what lingers, and waits for it; for the end.
  mutating func flush(timeout: Duration) -> [Receipt] {
    _ = producer.flush(into: &reports, timeout: timeout)
    return takeReceipts(limit: .max).receipts
  }

  var fatalError: KafkaError? { producer.fatalError }

  private mutating func produceBacklog() {
    while next.outbox < backlog.count {
      if let left = produce(backlog[next.outbox], from: next.item) {
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
  private mutating func produce(_ outbox: Outbox, from first: Int) -> Int? {
    for index in first..<outbox.items.count {
      let item = outbox.items[index]
      do {
        let result = try producer.produce(
          topic: topics[Int(item.topic.rawValue)], key: item.key.map { Bytes(outbox.arena, $0) },
          value: item.value.map { Bytes(outbox.arena, $0) }, headerStorage: item.headerStorage, headers: item.headers,
          extraHeaders: item.extraHeaders.map { ($0.name, $0.value) }, ticket: item.ticket)
        if result == .full { return index }
      } catch {
        receipts.append(Receipt(ticket: item.ticket, outcome: Receipt.Outcome(error)))
      }
    }
    return nil
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

extension Receipt.Outcome {
  init(_ outcome: DeliveryReport.Outcome) {
    switch outcome {
    case .acknowledged: self = .acknowledged
    case .failed(let error, _): self = Receipt.Outcome(error)
    }
  }

  /// Only what no retry can help is refused for good; all else is produced again until it is stored.
  init(_ error: KafkaError) {
    self = error.code == .messageTooLarge ? .refused(error.description) : .undelivered(error.description)
  }
}
