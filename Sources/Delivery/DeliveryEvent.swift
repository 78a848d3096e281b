package import APNs
package import Wire

/// What the machine did, for metrics and the log; it counts and logs nothing itself.
package enum DeliveryEvent: Sendable {
  case finished(Finished)
  /// An attempt came back from its lane.
  case attempted(Attempt)
  /// Kafka has all records of a notification that has ended; the age is counted from the request's timestamp.
  case settled(age: Duration, sinceEnd: Duration)
  /// It goes out again, after a wait in memory.
  case retried(AppIndex, RetryPolicy.Cause)
  /// It waits on the deferred topic.
  case parked(AppIndex)
  /// It was taken up again from there.
  case unparked(AppIndex)
  /// An app cannot be served any more, or can again; with the result that decided it.
  case breaker(AppIndex, AppHealth.Change, SendResult)
  /// Most of an app's tokens are called bad, or no longer.
  case environment(AppIndex, EnvironmentGuard.Change)
  /// Kafka refused a record for good; `isFinal` when its shortened form was refused too and nothing more can be done.
  case publicationRefused(OutputTopic, Source, trace: UUID?, text: String, isFinal: Bool)
  /// A record was not stored and is produced again.
  case publicationRepeated(OutputTopic, text: String)
  /// A partition's offsets began again below what was committed (the topic was made anew).
  case rewound(PartitionID, offset: Int64)

  /// A notification that has ended, with all that metrics name of it.
  package struct Finished: Sendable {
    package var app: AppIndex?
    package var pushType: PushType
    package var status: Ending.Status
    /// Why it was not delivered, where APNs said so.
    package var reason: Reason?
    /// What the last attempt came to, of one that failed.
    package var cause: RetryPolicy.Cause?
    package var rule: InvalidRule?
    package var isTokenDead: Bool
    package var attempts: Int
    package var requestedAt: UnixTime
    package var completedAt: UnixTime
    package var source: Source
    package var apnsID: UUID
    /// The trace that it belongs to; looked up only while `DeliveryMachine.namesTraces`.
    package var trace: UUID?
  }

  /// An attempt that reached APNs, or may have.
  package struct Attempt: Sendable {
    package var app: AppIndex
    /// From the record's timestamp to the first request on the wire; later attempts have none.
    package var recordToSend: Duration?
    /// From the request on the wire to its answer; `nil` without an answer.
    package var sendToAnswer: Duration?
  }
}

/// Plain counts since they were last taken.
package struct Tally: Equatable, Sendable {
  package var consumed = 0
  package var tombstones = 0
  /// Well-formed requests that were taken up.
  package var requests = 0
  /// Skipped, since the commit's metadata names them as settled.
  package var alreadySettled = 0
  /// Polled a second time within one assignment, or a copy of a parked request that is in good hands otherwise.
  package var known = 0
  /// Of partitions that are not ours (any more).
  package var stray = 0
  package var unknownFields = 0
  /// Pushes let go unsent or unsettled since their partition was taken away or the service stops.
  package var abandoned = 0

  /// Records that Kafka has acknowledged, by output topic.
  package var stored = Stored()

  /// A count for each output topic.
  package struct Stored: Equatable, Sendable {
    package var results = 0
    package var invalidTokens = 0
    package var deadLetters = 0
    package var deferred = 0

    mutating func add(_ topic: OutputTopic) {
      switch topic {
      case .results: results += 1
      case .invalidTokens: invalidTokens += 1
      case .deadLetters: deadLetters += 1
      case .deferred: deferred += 1
      }
    }
  }

  package init() {}
}
