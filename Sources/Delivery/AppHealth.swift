package import Wire

/// One app's health: keeps an app that cannot be served from slowing the others.
///
/// Two things set an app apart. A *breaker* opens after a run of failures to reach APNs at all (or of refused
/// credentials): until its time has come the app's requests wait in memory, then one probe at a time is let through. And
/// an app that is at its cap and would take long to get below it is *slow*. What either has beyond its cap is parked,
/// since waiting for it would hold the partitions that it shares.
package struct AppHealth: Sendable {
  /// Failures in a row that open the breaker.
  static let failureLimit = 10
  private static let firstPause: Duration = .seconds(2)
  private static let longestPause: Duration = .seconds(60)
  /// An app whose backlog in flight would take longer than this is slow.
  private static let patience: Duration = .seconds(2)
  /// One whose backlog takes no longer than this is brisk: it is at its cap since it has much to do.
  private static let brisk: Duration = .milliseconds(500)
  /// How long an app counts as having something to do after a push of it was taken up.
  private static let recently: Duration = .seconds(10)
  private static let window: Duration = .milliseconds(500)

  private var failuresInARow = 0
  private var openings = 0
  private var openUntil: Instant?
  private var isProbing = false

  private var windowStart: Instant?
  private var windowCount = 0
  private var perSecond: Double?
  private var lastProgress: Instant?
  private var lastBegan: Instant?

  /// Pushes taken up and not ended.
  package var inFlight = 0

  package init() {}

  /// Whether a push of the app may go out.
  package enum Permission: Equatable, Sendable {
    case granted
    /// The breaker is open until then.
    case refused(until: Instant)
  }

  /// What has become of the breaker; while it is open, nothing goes out but probes.
  package enum Change: Equatable, Sendable { case opened(until: Instant), closed }

  package var isBroken: Bool { openUntil != nil }

  /// May a push of this app go out? Takes the one probe if it is due.
  mutating func admit(now: Instant) -> Permission {
    guard let openUntil else { return .granted }
    if now < openUntil { return .refused(until: openUntil) }
    if isProbing { return .refused(until: now + Self.firstPause) }
    isProbing = true
    return .granted
  }

  /// APNs answered, whatever it said of the request.
  mutating func succeeded() -> Change? {
    failuresInARow = 0
    openings = 0
    isProbing = false
    guard openUntil != nil else { return nil }
    openUntil = nil
    return .closed
  }

  /// APNs could not be reached, or refused the app's credentials.
  mutating func failed(now: Instant, using random: inout some RandomNumberGenerator) -> Change? {
    failuresInARow += 1
    let wasProbe = isProbing
    isProbing = false
    guard failuresInARow >= Self.failureLimit, openUntil == nil || wasProbe else { return nil }
    let ceiling = min(Self.firstPause * (1 << min(openings, 10)), Self.longestPause).nanoseconds
    let until = now + .nanoseconds(Int64.random(in: ceiling / 2...ceiling, using: &random))
    openings += 1
    openUntil = until
    return .opened(until: until)
  }

  /// A probe came back without a word on the app (it was abandoned, or only its stream was refused).
  mutating func probeAbandoned() { isProbing = false }

  /// A push of this app is taken up. The first one after a rest starts the clocks: how long ago the last one ended says
  /// nothing about how fast these will.
  mutating func began(now: Instant) {
    if inFlight == 0 {
      windowStart = now
      windowCount = 0
      perSecond = nil
      lastProgress = now
    }
    inFlight += 1
    lastBegan = now
  }

  /// The app has new credentials or another server: what was held against the old ones counts no more.
  mutating func forgive() {
    failuresInARow = 0
    openings = 0
    openUntil = nil
    isProbing = false
  }

  /// A push of this app was put aside or let go, or ended without being sent: room, but no progress.
  mutating func left() { inFlight -= 1 }

  /// A push of this app ended.
  mutating func ended(now: Instant) {
    inFlight -= 1
    lastProgress = now
    windowCount += 1
    guard let start = windowStart, now - start >= Self.window else { return }
    perSecond = Double(windowCount) * 1e9 / Double((now - start).nanoseconds)
    windowStart = now
    windowCount = 0
  }

  /// Whether nothing has ended since it began: its first connection may not be there yet.
  var isUntried: Bool { perSecond == nil && windowCount == 0 }

  /// Whether what is in flight would take longer than patience allows. Asked at the cap only.
  func isSlow(now: Instant) -> Bool {
    guard let lastProgress else { return false }
    return now - lastProgress > Self.window || backlog > Self.patience
  }

  /// Whether room comes so fast that it is worth waiting for. Asked at the cap only.
  ///
  /// - Parameter typically: how long most pushes take at present. Before that has passed, an app that has just begun has
  ///   nothing to show: what was there before it goes first.
  func isBrisk(typically: Duration, now: Instant) -> Bool {
    if perSecond != nil { return backlog <= Self.brisk }
    // It has just begun; what it has done so far must do.
    guard let start = windowStart, now - start >= max(typically + typically, IntakePatience.most) else { return true }
    return Double(inFlight) * Double((now - start).nanoseconds)
      <= Double(windowCount) * Double(Self.brisk.nanoseconds)
  }

  /// How long what is in flight takes at the speed that the app shows; nothing, where that is not known yet.
  private var backlog: Duration {
    guard let perSecond, perSecond > 0 else { return .zero }
    return .nanoseconds(Int64(min(Double(inFlight) / perSecond, 1e6) * 1e9))
  }

  /// Whether a push of this app was taken up of late.
  func wasSeen(now: Instant) -> Bool { lastBegan.map { now - $0 < Self.recently } ?? false }
}
