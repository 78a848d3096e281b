import APNs
package import Wire

/// Whether, when and how often a notification is sent again.
///
/// - An answer that settles the matter ends it. What Apple may still take is tried again with exponential backoff and
///   full jitter, at most `attempts` times in all.
/// - Trouble at Apple's side, or with one device, that the quick attempts have not got past is given time before each of
///   the last two: Apple asks for 15 minutes, and more after that.
/// - Where APNs calls the provider token expired, a fresh one on another connection helps, or another connection alone;
///   a third refusal is one of the credentials.
/// - What surely never reached Apple does not count as an attempt: it waits for the app to be reachable again, until
///   `giveUpAfter` has passed since its request was first taken up.
/// - Nothing is tried after its expiration; an expiration of 0 asks for one attempt only.
/// - A wait longer than `longestWait` is not held in memory but parked in Kafka (Apple asks for 15 minutes after some
///   answers; "Handling notification responses from APNs").
package struct RetryPolicy: Sendable {
  package var attempts = 5
  package var initialBackoff: Duration = .milliseconds(500)
  package var maximumBackoff: Duration = .seconds(30)
  /// Attempts that follow one another by `initialBackoff` and so on; those after them wait for `lastingBackoff`.
  var quickAttempts: Int { max(3, attempts - 2) }
  /// Times that a notification is sent again because its provider token was called expired.
  package static let mostRefreshes = 2
  /// The wait after trouble that lasts; the last one is twice as long. Zero: such trouble is waited for no longer than
  /// other.
  package var lastingBackoff: Duration = .seconds(900)
  /// Longer waits are parked.
  package var longestWait: Duration = .seconds(30)
  /// How long after its request was first taken up a notification that cannot be sent at all is given up.
  package var giveUpAfter: Duration = .seconds(3600)

  package init() {}

  /// No wait between two attempts is longer: not one that a server asks for, nor the last one after trouble that lasts,
  /// which is twice `lastingBackoff` and up to a quarter more.
  package var longestPause: Duration {
    max(Response.longestRetryAfter, maximumBackoff, lastingBackoff * 2 + lastingBackoff / 2)
  }

  /// What is known of a notification when an attempt ends.
  package struct Facts: Sendable {
    /// Attempts that reached APNs, or may have, this one included.
    package var attempts: Int
    /// Attempts that surely did not.
    package var unsent: Int
    package var expiration: Int64?
    /// How often it was sent again because its provider token was called expired.
    package var refreshes: Int
    /// When its request was first taken up: an old one out of a backlog is tried as long as a new one.
    package var takenUpAt: UnixTime

    package init(
      attempts: Int, unsent: Int, expiration: Int64?, refreshes: Int = 0, takenUpAt: UnixTime
    ) {
      self.refreshes = refreshes
      self.attempts = attempts
      self.unsent = unsent
      self.expiration = expiration
      self.takenUpAt = takenUpAt
    }
  }

  /// How it goes on after an attempt.
  package enum Decision: Sendable {
    case end(Ending)
    /// Wait in memory.
    case again(after: Duration)
    /// Wait in Kafka.
    case park(after: Duration)
  }

  /// Why a notification goes out again: the bounded set that metrics name.
  package enum Cause: String, CaseIterable, Sendable {
    case refreshedToken = "refreshed_token"
    case replacedConnection = "replaced_connection"
    case throttled
    case serverError = "server_error"
    case notSent = "not_sent"
    case lost
    case timedOut = "timed_out"
  }

  /// Judges the end of an attempt.
  ///
  /// - Parameter facts: what is known of the notification, this attempt included.
  package func decide(
    _ result: SendResult, _ facts: Facts, now: UnixTime, using random: inout some RandomNumberGenerator
  ) -> Decision {
    switch result {
    case .answered(let response):
      switch response.verdict {
      case .delivered: return .end(.delivered(response))
      case .rejected, .invalidToken, .credentialFault: return .end(.rejected(response))
      case .refreshToken where facts.refreshes >= Self.mostRefreshes: return .end(.rejected(response))
      case .refreshToken, .replaceConnection:
        // Another connection may take it at once; a touch of jitter keeps a whole connection's load from moving in step.
        return attempt(again: jitter(.milliseconds(50 * facts.attempts), &random), result, facts, now)
      case .throttled, .retry:
        return attempt(again: delay(after: response, facts, now, &random), result, facts, now)
      }
    case .lost, .timedOut:
      return attempt(again: jitter(.milliseconds(100 * facts.attempts), &random), result, facts, now)
    case .notSent(let failure):
      guard !isGivenUp(takenUpAt: facts.takenUpAt, now: now) else {
        return .end(.failed(result))
      }
      let isImmediate = failure == .streamRefused || failure == .connectionClosed
      let delay =
        isImmediate && facts.unsent < 3 ? jitter(.milliseconds(20), &random) : backoff(facts.unsent, &random)
      return wait(delay, facts, now)
    }
  }

  /// Whether a notification that was never sent has waited long enough.
  func isGivenUp(takenUpAt: UnixTime, now: UnixTime) -> Bool {
    now.milliseconds - takenUpAt.milliseconds >= giveUpAfter.milliseconds
  }

  /// Whether the expiration has passed. 0 is no time at all but Apple's word for "do not store".
  package static func isExpired(_ expiration: Int64?, now: UnixTime) -> Bool {
    guard let expiration, expiration > 0 else { return false }
    return now.seconds >= expiration
  }

  private func attempt(again delay: Duration, _ result: SendResult, _ facts: Facts, _ now: UnixTime) -> Decision {
    guard facts.attempts < attempts, facts.expiration != 0 else { return .end(.failed(result)) }
    return wait(delay, facts, now)
  }

  private func wait(_ delay: Duration, _ facts: Facts, _ now: UnixTime) -> Decision {
    var delay = delay
    if let expiration = facts.expiration, expiration > 0 {
      // It ends as expired when its time has come, neither before nor long after.
      delay = min(delay, .milliseconds(max(0, expiration * 1000 - now.milliseconds)))
    }
    return delay > longestWait && facts.expiration != 0 ? .park(after: delay) : .again(after: delay)
  }

  /// How long APNs, or the device, is left alone. A server that says it itself is taken at its word. What would expire
  /// in a long wait goes on with short ones: they are all it has.
  private func delay(
    after response: Response, _ facts: Facts, _ now: UnixTime, _ random: inout some RandomNumberGenerator
  ) -> Duration {
    let quick = backoff(facts.attempts, &random)
    if let asked = response.askedWait(at: now) { return max(quick, asked) }
    guard facts.attempts >= quickAttempts, lastingBackoff > .zero else { return quick }
    let base = facts.attempts == quickAttempts ? lastingBackoff : lastingBackoff * 2
    // Whatever failed together should not come back together.
    let long = base + jitter(base / 4, &random)
    if let expiration = facts.expiration, expiration > 0,
      now.milliseconds + long.milliseconds >= expiration * 1000
    {
      return quick
    }
    return long
  }

  /// Exponential from `initialBackoff`, full jitter, never above `maximumBackoff`.
  func backoff(_ attempt: Int, _ random: inout some RandomNumberGenerator) -> Duration {
    let doublings = min(max(attempt - 1, 0), 20)
    return jitter(min(initialBackoff * (1 << doublings), maximumBackoff), &random)
  }

  private func jitter(_ ceiling: Duration, _ random: inout some RandomNumberGenerator) -> Duration {
    .nanoseconds(Int64.random(in: 0...max(0, ceiling.nanoseconds), using: &random))
  }
}

extension RetryPolicy.Cause {
  /// The cause that goes with a result that is not the end.
  package init(_ result: SendResult) {
    switch result {
    case .answered(let response):
      switch response.verdict {
      case .refreshToken: self = .refreshedToken
      case .replaceConnection: self = .replacedConnection
      case .throttled: self = .throttled
      case .delivered, .rejected, .invalidToken, .credentialFault, .retry: self = .serverError
      }
    case .notSent: self = .notSent
    case .lost: self = .lost
    case .timedOut: self = .timedOut
    }
  }

  /// What the last attempt of a notification that failed came to; `nil` for every other end.
  init?(_ ending: Ending) {
    guard case .failed(let failure) = ending else { return nil }
    switch failure {
    case .answered(let response): self.init(.answered(response))
    case .notSent(let failure): self.init(.notSent(failure))
    case .lost(let failure): self.init(.lost(failure))
    case .timedOut: self = .timedOut
    }
  }
}

extension Duration {
  /// Whole milliseconds.
  var milliseconds: Int64 { nanoseconds / 1_000_000 }
}
