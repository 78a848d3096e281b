package import Delivery

/// One number that is kept for the service as a whole.
package struct ServiceSeries: Hashable, Sendable {
  /// Its place in the row.
  package var index: Int

  @inlinable init(_ index: Int) { self.index = index }

  /// Numbers in the row, room for growth among them.
  package static let rowLength = 256

  package static let recordsConsumed = ServiceSeries(0)
  package static let requestsDecoded = ServiceSeries(1)
  package static let tombstones = ServiceSeries(2)
  package static let unknownFields = ServiceSeries(3)
  /// A gauge.
  package static let bytesInFlight = ServiceSeries(4)
  package static let commits = ServiceSeries(5)
  package static let commitFailures = ServiceSeries(6)
  package static let rebalances = ServiceSeries(7)
  package static let deadLetters = ServiceSeries(8)
  package static let reloads = ServiceSeries(9)
  package static let reloadFailures = ServiceSeries(10)
  /// Records skipped because an earlier commit says that they are settled.
  package static let recordsSkipped = ServiceSeries(11)
  /// A gauge: 1 while the service drains.
  package static let draining = ServiceSeries(12)
  /// Errors that librdkafka reported, apart from failed commits and publications.
  package static let kafkaErrors = ServiceSeries(13)
  /// Notifications let go without an end.
  package static let abandoned = ServiceSeries(14)
  /// A gauge: notifications that wait in memory to be sent again.
  package static let waiting = ServiceSeries(15)
  /// A gauge: 1 while too much is in flight to take up more.
  package static let intakeHeld = ServiceSeries(16)
  /// A gauge: records handed to Kafka's client, or waiting for room there, that have no receipt.
  package static let producerQueue = ServiceSeries(17)
  /// A gauge: 1 unless the last reload was refused.
  package static let lastReloadGood = ServiceSeries(18)
  /// A gauge, in seconds since 1970: when the configuration in effect was loaded.
  package static let configuredAt = ServiceSeries(19)
  /// Producers that failed for good and were replaced.
  package static let producerFailures = ServiceSeries(20)

  /// Requests that broke the contract, by rule.
  package static func invalid(_ rule: InvalidRule) -> ServiceSeries { ServiceSeries(32 + rule.ordinal) }
  /// Records produced, by topic.
  package static func publications(_ topic: OutputTopic) -> ServiceSeries { ServiceSeries(64 + Int(topic.rawValue)) }
  /// Records that Kafka did not store, by topic.
  package static func publicationFailures(_ topic: OutputTopic) -> ServiceSeries {
    ServiceSeries(72 + Int(topic.rawValue))
  }
  /// A gauge: 1 while a topic takes no records, by topic.
  package static func outputBlocked(_ topic: OutputTopic) -> ServiceSeries { ServiceSeries(80 + Int(topic.rawValue)) }

  /// The buckets of a histogram begin here; its sum follows them.
  static func histogram(_ latency: Latency) -> ServiceSeries { ServiceSeries(96 + Int(latency.rawValue) * 32) }
}

/// The spans of time that are measured for the service as a whole.
package enum Latency: UInt8, CaseIterable, Sendable {
  /// From the record's timestamp to the request being handed to a connection.
  case recordToSend
  /// From the last answer, or the decision that there will be none, to the result being acknowledged by Kafka.
  case answerToSettled
  /// From the record's timestamp to the result being acknowledged by Kafka.
  case endToEnd
  /// From a PING to its acknowledgement.
  case pingRoundTrip
}

extension OutputTopic {
  /// The word that labels and the configuration use.
  package var label: String {
    switch self {
    case .results: "results"
    case .invalidTokens: "invalid_tokens"
    case .deadLetters: "dead_letters"
    case .deferred: "deferred"
    }
  }
}

extension InvalidRule {
  /// Its place among all rules. They are few and cold.
  var ordinal: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
