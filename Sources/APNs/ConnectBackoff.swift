import Wire

/// When a pool may try to connect again: exponential, with full jitter.
///
/// Two things count. Failed attempts do from the first one. Connections that were made and did not last do from the
/// second in a row: once may happen, but if APNs does away with one after the other, connecting again and again would
/// look like an attack. That some of them did a little good first does not make it better.
struct ConnectBackoff: Sendable {
  /// Until then no connection is opened; `nil` when there is no reason to wait.
  private(set) var retryAt: Instant?

  private let base: Duration
  private let cap: Duration
  private var random: SeededRandom
  private var failures = 0
  private var shortLives = 0
  private var lastShortLife: Instant?
  /// Without another short life for so long, earlier ones are forgotten.
  private let memory: Duration

  init(limits: PoolLimits, random: SeededRandom) {
    base = limits.backoffBase
    cap = limits.backoffCap
    memory = limits.backoffCap + limits.backoffCap
    self.random = random
  }

  /// An attempt has failed.
  mutating func failed(now: Instant) {
    failures += 1
    wait(failures, now)
  }

  /// A connection did not last.
  mutating func wasShort(now: Instant) {
    if let lastShortLife, now - lastShortLife > memory { shortLives = 0 }
    lastShortLife = now
    shortLives += 1
    if shortLives > 1 { wait(shortLives - 1, now) }
  }

  /// An attempt has succeeded.
  mutating func connected() {
    failures = 0
    retryAt = nil
  }

  /// A connection that was opened then has lasted: what happened before it is over. Of one that is older than the last
  /// short life it says nothing, since others may still come and go beside it.
  mutating func lasted(since openedAt: Instant) {
    if let lastShortLife, openedAt < lastShortLife { return }
    shortLives = 0
  }

  /// What happened before no longer tells anything.
  mutating func forget() {
    failures = 0
    shortLives = 0
    lastShortLife = nil
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
