/// A topic that a producer writes to; valid only with the producer that made it.
package struct TopicHandle: Hashable, Sendable {
  let index: Int
}

/// What became of the attempt to queue a record.
package enum ProduceResult: Hashable, Sendable {
  /// It is on the library's queue; a delivery report will follow, once and for certain, unless the producer is closed.
  case queued
  /// The queue is full: not an error. Try again when delivery reports have come in.
  case full
}

/// Kafka's word on one record.
package struct DeliveryReport: Sendable {
  /// Whether the record is stored.
  package enum Outcome: Sendable {
    /// Stored by all in-sync replicas. The offset is unknown (`nil`) when the broker only confirmed an earlier attempt.
    case acknowledged(partition: Int32, offset: Int64?)
    /// Not acknowledged. `mayBeStored`: it was sent, and no answer or an unclear one came.
    case failed(KafkaError, mayBeStored: Bool)
  }

  /// As given to `produce`.
  package var ticket: UInt64
  package var outcome: Outcome
}
