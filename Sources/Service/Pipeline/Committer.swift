import Delivery
import Kafka
import Wire

/// The shell around commits: one at a time, each interval, and the last one before partitions are given back.
///
/// Used on the pipeline's loop alone.
struct Committer {
  /// Partitions that wait for their last commit to be answered before they are given back.
  struct PendingRelease {
    var partitions: [PartitionID]
    var ticket: UInt64
    var deadline: Instant
  }

  /// How long the answer to a commit is waited for before partitions are given back without it.
  static let releaseTimeout: Duration = .seconds(3)

  /// How long a refused last commit waits before it is said again.
  private static let lastPause: Duration = .milliseconds(100)

  private var interval: Duration
  private(set) var due: Instant
  private(set) var release: PendingRelease?
  private var lastTicket: UInt64 = 0
  /// What each commit that is not answered yet was about.
  private var outstanding: [UInt64: [PartitionID]] = [:]

  init(interval: Duration, now: Instant) {
    self.interval = interval
    due = now + interval
  }

  var isIdle: Bool { outstanding.isEmpty }

  /// Whether it is time for the next commit; then the one after that is due an interval later.
  mutating func isDue(now: Instant) -> Bool {
    guard now >= due else { return false }
    due = now + interval
    // The last one has not been answered: its successor will say more anyway.
    return outstanding.isEmpty
  }

  /// From now on each commit may be the last: what is refused is said again soon.
  mutating func hurry(now: Instant) {
    interval = min(interval, Self.lastPause)
    due = now
  }

  /// Sends a commit.
  ///
  /// - Returns: its ticket, and the partitions whose commit could not even be sent.
  mutating func commit(
    _ commits: [Delivery.OffsetCommit], to consumer: Consumer
  ) -> (ticket: UInt64, failed: [PartitionID], error: KafkaError?) {
    lastTicket += 1
    let ids = commits.map(\.partition)
    guard !commits.isEmpty else { return (lastTicket, [], nil) }
    do {
      try consumer.commit(
        commits.map { Kafka.OffsetCommit(partition: $0.partition, offset: $0.offset, metadata: $0.metadata) },
        ticket: lastTicket)
      outstanding[lastTicket] = ids
      return (lastTicket, [], nil)
    } catch {
      return (lastTicket, ids, error)
    }
  }

  /// Gives partitions back when their commit is answered.
  mutating func release(_ partitions: [PartitionID], after ticket: UInt64, now: Instant) {
    let deadline = outstanding[ticket] == nil ? now : now + Self.releaseTimeout
    release = PendingRelease(partitions: partitions, ticket: ticket, deadline: deadline)
  }

  /// The partitions that may be given back now.
  mutating func takeRelease(now: Instant) -> [PartitionID]? {
    guard let release, outstanding[release.ticket] == nil || now >= release.deadline else { return nil }
    self.release = nil
    return release.partitions
  }

  /// A commit was answered.
  ///
  /// - Returns: the partitions whose offset is not committed.
  mutating func answered(_ result: CommitResult) -> [PartitionID] {
    let ids = outstanding.removeValue(forKey: result.ticket) ?? []
    if result.error != nil { return ids }
    return result.entries.filter { $0.error != nil }.map(\.partition)
  }
}
