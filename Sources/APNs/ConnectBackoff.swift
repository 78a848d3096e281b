import Wire

/// When a pool may try to connect again: exponential, with full jitter.
///
/// Two things count. Failed attempts do from the first one. Connections that were made and came to nothing soon
/// afterwards do from the second in a row: once may happen, but if APNs does away with one after the other, connecting
/// again and again would look like an attack.
struct ConnectBackoff: Sendable {
  /// Until then no connection is opened; `nil` when there is no reason to wait.
  private(set) var retryAt: Instant?

  private let base: Duration
  private let cap: Duration
  private var random: SeededRandom
  private var failures = 0
  private var shortLives = 0

  init(limits: PoolLimits, random: SeededRandom) {
    base = limits.backoffBase
    cap = limits.backoffCap
    self.random = random
  }

  /// An attempt has failed.
  mutating func failed(now: Instant) {
    failures += 1
    wait(failures, now)
  }

  /// A young connection came to nothing.
  mutating func cameToNothing(now: Instant) {
    shortLives += 1
    if shortLives > 1 { wait(shortLives - 1, now) }
  }

  /// An attempt has succeeded.
  mutating func connected() {
    failures = 0
    retryAt = nil
  }

  /// A connection has done its work.
  mutating func proven() {
    shortLives = 0
  }

  /// What happened before no longer tells anything.
  mutating func forget() {
    failures = 0
    shortLives = 0
    retryAt = nil
  }

  /// Time has passed.
  mutating func tick(now: Instant) {
    if let retryAt, now >= retryAt { self.retryAt = nil }
  }

  /// `duration`, give or take a tenth.
  mutating func spread(_ duration: Duration) -> Duration {
    duration - duration / 10 + random.uniform(below: duration / 5)
  }

  private mutating func wait(_ attempt: Int, _ now: Instant) {
    var ceiling = min(base, cap)
    var doublings = attempt - 1
    while doublings > 0, ceiling < cap {
      ceiling = min(ceiling + ceiling, cap)
      doublings -= 1
    }
    let until = now + random.uniform(below: ceiling)
    retryAt = max(retryAt ?? until, until)
  }
}
