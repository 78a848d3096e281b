import Wire

/// How long the intake may wait for apps at their caps, for all of them together: a bucket that time fills, so that
/// however many apps are slow they cost the others no more than a fiftieth of the time, and this much at once.
struct IntakePatience: Sendable {
  static let most: Duration = .milliseconds(50)
  /// Of how much time one part may go by waiting.
  private static let share: Int64 = 50

  private var left = most
  private var since: Instant?
  private var isWaiting = false
  /// Once it is spent it must be half full before it counts again: many short waits are no better than one.
  private var isSpent = false

  /// Whether the intake waits for an app from now on.
  mutating func note(isWaiting: Bool, now: Instant) {
    left = left(now: now)
    since = now
    self.isWaiting = isWaiting
    if left <= .zero { isSpent = true }
    if left >= Self.most / 2 { isSpent = false }
  }

  func isOver(now: Instant) -> Bool {
    let left = left(now: now)
    return left <= .zero || (isSpent && left < Self.most / 2)
  }

  /// What is left of it; below zero where it was overdrawn, since nobody looked in time or the app is brisk.
  func left(now: Instant) -> Duration {
    guard let since else { return Self.most }
    let passed = (now - since).nanoseconds
    let change = isWaiting ? -passed : passed / Self.share
    return .nanoseconds(min(max(-Self.most.nanoseconds, left.nanoseconds + change), Self.most.nanoseconds))
  }
}
