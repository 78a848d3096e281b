import Kafka
import Service
import Wire

/// Publishes requests and waits for what becomes of them. Its queue is bounded; a full one makes `publish` wait.
final class RequestPublisher {
  /// What became of a record.
  struct Receipt {
    /// As given to `publish`.
    var ticket: Int
    var outcome: Result<(partition: Int32, offset: Int64?), KafkaError>
  }

  private let producer: Producer
  private let topic: TopicHandle
  private let words = LastWords()
  private var reports: [DeliveryReport] = []

  /// - Parameter timeout: how long a record may take before it counts as failed.
  init(_ kafka: KafkaSettings, topic: String, timeout: Duration) throws {
    var properties = try kafka.producer()
    try properties.set("message.timeout.ms", to: String(max(1000, timeout.nanoseconds / 1_000_000)))
    let words = words
    producer = try Producer(properties: properties, log: { words.take($0) })
    self.topic = try producer.topic(topic)
  }

  /// Queues a record. Blocks while the queue is full.
  ///
  /// - Returns: why it can never be sent.
  func publish(_ storage: [UInt8], key: ByteRange?, value: ByteRange, ticket: Int) -> KafkaError? {
    do throws(KafkaError) {
      while true {
        let result = try producer.produce(
          topic: topic, key: key.map { Bytes(storage, $0) }, value: Bytes(storage, value), ticket: UInt64(ticket))
        if case .queued = result { return nil }
        collect()
        if !producer.hasReports { _ = producer.flush(into: &reports, timeout: .milliseconds(1)) }
      }
    } catch {
      return error
    }
  }

  /// Moves the reports that are there to where `receipts` finds them; never blocks.
  func collect() { _ = producer.takeReports(into: &reports, limit: .max) }

  /// What is known since the last call.
  func receipts() -> [Receipt] {
    collect()
    defer { reports.removeAll(keepingCapacity: true) }
    return reports.map { report in
      switch report.outcome {
      case .acknowledged(let partition, let offset):
        Receipt(ticket: Int(report.ticket), outcome: .success((partition, offset)))
      case .failed(let error, _): Receipt(ticket: Int(report.ticket), outcome: .failure(error))
      }
    }
  }

  /// Waits a moment for more receipts.
  ///
  /// - Returns: whether nothing is outstanding.
  func wait() -> Bool { producer.flush(into: &reports, timeout: .milliseconds(100)) }

  /// Why it failed, where the error only says that it did.
  func explain(_ error: KafkaError) -> String {
    var text = "\(error)"
    if error.code == .messageTimedOut, let words = words.text { text += "; \(words)" }
    if error.code == .unknownTopicOrPartition { text += "; 'martlet topics create' makes it" }
    return text
  }
}
