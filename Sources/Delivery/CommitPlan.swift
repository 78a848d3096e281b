package import Wire

/// When offsets are committed, and what waits for the answers: one commit at a time, each interval, and the last one
/// before partitions are given back.
///
/// It knows commits by their tickets; the shell around it sends them and hands in the answers.
package struct CommitPlan: Sendable {
  /// Partitions that wait for their last commit to be answered before they are given back.
  package struct PendingRelease: Sendable {
    package var partitions: [PartitionID]
    var ticket: UInt64
    package var deadline: Instant
  }

  /// How long the answer to a commit is waited for before partitions are given back without it.
  package static let releaseTimeout: Duration = .seconds(3)

  /// How long a refused last commit waits before it is said again.
  private static let lastPause: Duration = .milliseconds(100)

  private var interval: Duration
  /// When the next commit is to be made.
  package private(set) var due: Instant
  package private(set) var release: PendingRelease?
  private var lastTicket: UInt64 = 0
  /// What each commit that is not answered yet was about.
  private var outstanding: [UInt64: [PartitionID]] = [:]

  /// - Parameter interval: from one commit to the next.
  package init(interval: Duration, now: Instant) {
    self.interval = interval
    due = now + interval
  }

  /// No commit awaits its answer.
  package var isIdle: Bool { outstanding.isEmpty }

  /// Whether it is time for the next commit; then the one after that is due an interval later.
  package mutating func isDue(now: Instant) -> Bool {
    guard now >= due else { return false }
    due = now + interval
    // The last one has not been answered: its successor will say more anyway.
    return outstanding.isEmpty
  }

  /// From now on each commit may be the last: what is refused is said again soon.
  package mutating func hurry(now: Instant) {
    interval = min(interval, Self.lastPause)
    due = now
  }

  /// A commit is sent.
  ///
  /// - Parameter partitions: those that it is about; of none, nothing is sent and nothing waited for.
  /// - Returns: its ticket.
  package mutating func begin(_ partitions: [PartitionID]) -> UInt64 {
    lastTicket += 1
    if !partitions.isEmpty { outstanding[lastTicket] = partitions }
    return lastTicket
  }

  /// A commit was answered, or could not be sent.
  ///
  /// - Returns: the partitions that it was about.
  package mutating func answered(_ ticket: UInt64) -> [PartitionID] {
    outstanding.removeValue(forKey: ticket) ?? []
  }

  /// Gives partitions back when their commit is answered.
  package mutating func release(_ partitions: [PartitionID], after ticket: UInt64, now: Instant) {
    let deadline = outstanding[ticket] == nil ? now : now + Self.releaseTimeout
    release = PendingRelease(partitions: partitions, ticket: ticket, deadline: deadline)
  }

  /// The partitions that may be given back now.
  package mutating func takeRelease(now: Instant) -> [PartitionID]? {
    guard let release, outstanding[release.ticket] == nil || now >= release.deadline else { return nil }
    self.release = nil
    return release.partitions
  }
}
