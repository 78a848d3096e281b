package import Wire

/// The way from work to the end, each step with a deadline of its own, and what may be committed on it.
package enum DrainPhase: Equatable, Sendable {
  case running
  /// No new records; what is out may finish until the deadline.
  case draining(deadline: Instant)
  /// The last commit is on its way, or said again while it is refused; while the group rebalances, until the limit.
  case committing(deadline: Instant, limit: Instant)
  /// The consumer leaves its group.
  case leaving(deadline: Instant)
  case ended

  /// How long leaving the group may take.
  private static let leaveTimeout: Duration = .seconds(4)

  /// What the shell sees around it.
  package struct View {
    /// Nothing is out, and nothing is to be produced.
    var isIdle: Bool
    /// The group's answer to a request to join is awaited.
    var isJoining: Bool
    /// No commit awaits its answer, and there is none to be made.
    var isCommitted: Bool
    var hasLeft: Bool

    package init(isIdle: Bool, isJoining: Bool, isCommitted: Bool, hasLeft: Bool) {
      self.isIdle = isIdle
      self.isJoining = isJoining
      self.isCommitted = isCommitted
      self.hasLeft = hasLeft
    }
  }

  /// What is to be done next.
  package enum Step: Sendable {
    /// Commit all that has settled, and say it again while it is refused.
    case commit
    case leave
    /// All is done; the shell says so by `ended`.
    case end
  }

  /// Goes on to the next phase, when the one before is done with or its time is up.
  package mutating func advance(_ view: View, now: Instant) -> Step? {
    switch self {
    case .running, .ended: return nil
    case .draining(let deadline):
      guard view.isIdle || now >= deadline else { return nil }
      self = .committing(deadline: now + CommitPlan.releaseTimeout, limit: deadline)
      return .commit
    case .committing(let deadline, let limit):
      // No commit is made meanwhile, so that its time begins when the group has answered.
      if view.isJoining, now < limit {
        self = .committing(deadline: now + CommitPlan.releaseTimeout, limit: limit)
        return nil
      }
      guard view.isCommitted || now >= deadline else { return nil }
      self = .leaving(deadline: now + Self.leaveTimeout)
      return .leave
    case .leaving(let deadline):
      return view.hasLeft || now >= deadline ? .end : nil
    }
  }

  /// Whether commits may be sent each interval: also while draining, so that a kill in its midst repeats no more than at
  /// any other time. Commits of released partitions are sent apart.
  ///
  /// - Parameter isJoining: between a member's request to join its group and the answer that tells its partitions. A
  ///   commit that is sent then would be refused, and might cost the assignment.
  package func mayCommit(isJoining: Bool) -> Bool {
    switch self {
    case .running, .draining, .committing: !isJoining
    case .leaving, .ended: false
    }
  }

  /// How long what is out of revoked partitions may take; no drain becomes longer by a rebalance.
  ///
  /// - Parameter timeout: the time that it has in work.
  package func timeToFinish(_ timeout: Duration, now: Instant) -> Duration {
    switch self {
    case .running: timeout
    case .draining(let deadline): min(timeout, max(.zero, deadline - now))
    case .committing, .leaving, .ended: .zero
    }
  }
}
