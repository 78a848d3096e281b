import Kafka
import Wire

/// A producer that another one follows when it has failed for good.
///
/// An idempotent producer that has lost its place in the brokers' count of its records can do nothing more. Then what
/// it had on its way comes back as failed, for the caller to produce again, and a new one takes over: nothing is lost,
/// and what was stored without an acknowledgement is stored twice.
///
/// Used on the pipeline's loop alone.
final class LastingProducer {
  /// What happened to the producer.
  enum Change {
    case failed(KafkaError)
    /// A new one is at work.
    case replaced
    /// No new one could be made, or the old one keeps records back: only a new process helps.
    case lost(KafkaError)
  }

  private enum State {
    case working
    /// Its records come back.
    case ending(deadline: Instant, KafkaError)
    /// Until it is time for a new one.
    case waiting(until: Instant)
  }

  /// How long the records of a failed producer may take to come back. They are all in this process.
  private static let endTimeout: Duration = .seconds(20)
  private static let longestWait: Duration = .seconds(30)

  private let make: () throws(KafkaError) -> Producer
  private let names: [String]
  /// `nil` between one that failed and the next.
  private var producer: Producer?
  private var topics: [TopicHandle]
  private var wakeup: Int32?
  private var state = State.working
  /// Failures since a record was last acknowledged.
  private var failures = 0

  /// - Parameters:
  ///   - topics: the names that `produce` counts in.
  ///   - make: makes a producer, the first one and those that follow it.
  init(topics names: [String], make: @escaping () throws(KafkaError) -> Producer) throws(KafkaError) {
    self.names = names
    self.make = make
    let first = try make()
    producer = first
    topics = try Self.handles(of: names, first)
  }

  private static func handles(of names: [String], _ producer: Producer) throws(KafkaError) -> [TopicHandle] {
    var handles: [TopicHandle] = []
    for name in names { handles.append(try producer.topic(name)) }
    return handles
  }

  /// Has this producer, and those that follow it, write to an eventfd when there are reports.
  func wake(fileDescriptor: Int32) {
    wakeup = fileDescriptor
    producer?.wake(fileDescriptor: fileDescriptor)
  }

  var outstanding: Int { producer?.outstanding ?? 0 }
  var hasReports: Bool { producer?.hasReports ?? false }

  /// Queues a record, or says that there is no room just now.
  ///
  /// - Throws: when the record can never be sent.
  func produce(
    topic: Int, _ key: Bytes?, _ value: Bytes?, _ headerStorage: [UInt8], _ headers: [RecordBody.Header],
    _ extraHeaders: [(name: String, value: String)], ticket: UInt64
  ) throws(KafkaError) -> ProduceResult {
    guard case .working = state, let producer else { return .full }
    do {
      return try producer.produce(
        topic: topics[topic], key: key, value: value, headerStorage: headerStorage, headers: headers,
        extraHeaders: extraHeaders, ticket: ticket)
    } catch {
      // The next turn sees to it.
      if error.isFatal { return .full }
      throw error
    }
  }

  /// Takes delivery reports, those of a failed producer too.
  func takeReports(into reports: inout [DeliveryReport], limit: Int) -> KafkaError? {
    let first = reports.count
    let error = producer?.takeReports(into: &reports, limit: limit)
    if failures > 0, reports[first...].contains(where: { if case .acknowledged = $0.outcome { true } else { false } }) {
      failures = 0
    }
    return error
  }

  /// Sees whether the producer has failed, and makes a new one when it is time; once a turn.
  func advance(to now: Instant) -> Change? {
    switch state {
    case .working:
      guard let error = producer?.fatalError else { return nil }
      failures += 1
      producer?.purge()
      state = .ending(deadline: now + Self.endTimeout, error)
      return .failed(error)
    case .ending(let deadline, let error):
      if outstanding == 0 {
        producer = nil
        state = .waiting(until: now + wait)
        return nil
      }
      return now < deadline ? nil : .lost(error)
    case .waiting(let time):
      guard now >= time else { return nil }
      do {
        let next = try make()
        topics = try Self.handles(of: names, next)
        if let wakeup { next.wake(fileDescriptor: wakeup) }
        producer = next
      } catch {
        return .lost(error)
      }
      state = .working
      return .replaced
    }
  }

  /// None for the first failure; then it doubles, so that one that cannot be mended is no storm.
  private var wait: Duration {
    failures < 2 ? .zero : min(.milliseconds(500) * (1 << min(failures - 2, 10)), Self.longestWait)
  }
}
