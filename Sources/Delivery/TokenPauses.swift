import APNs
import Wire

/// Device tokens that APNs throttles (429 `TooManyRequests`), each with the time until when it is left alone: what is
/// for another device of the app goes on ("Handling notification responses from APNs").
///
/// Requests for such a token come one after the other, a second apart, once its time is over, until APNs takes one. The
/// tokens are told apart by a hash of 64 bits with the app; two that share one would wait for each other, and no more.
struct TokenPauses: Sendable {
  private struct Pause: Sendable {
    var until: Instant
    /// When the next one that has to wait may go.
    var next: Instant
  }

  /// Between two requests for a token of which it is not known yet whether it may have more.
  static let spacing: Duration = .seconds(1)
  /// No request waits longer for those before it; what comes when that is full meets APNs' answer together.
  private static let longestLine: Duration = .seconds(60)
  /// The most tokens that are remembered. The next ones are not: each of their requests learns it for itself.
  static let limit = 10_000

  private var pauses: [UInt64: Pause] = [:]
  private var swept: Instant?

  var isEmpty: Bool { pauses.isEmpty }
  var count: Int { pauses.count }

  /// Of app and token; hexadecimal digits count alike in either case.
  static func key(_ app: AppIndex, _ token: Span<UInt8>) -> UInt64 {
    var hash = FNV1a(seed: UInt64(UInt32(bitPattern: app.value)) &* 0x9e37_79b9_7f4a_7c15)
    hash.add(token, setting: 0x20)
    return hash.value
  }

  /// APNs throttles the token.
  mutating func pause(_ key: UInt64, until: Instant, now: Instant) {
    if pauses[key] == nil, pauses.count >= Self.limit, !makeRoom(now) { return }
    let known = pauses[key] ?? Pause(until: until, next: until)
    let latest = max(until, known.until)
    pauses[key] = Pause(until: latest, next: max(latest + Self.spacing, known.next))
  }

  /// APNs has taken a request for the token, or said something else of it.
  mutating func end(_ key: UInt64) { pauses[key] = nil }

  /// When a request for the token may go; `nil`: now.
  ///
  /// - Parameter isDue: it has waited for its time already, which has come.
  mutating func wait(_ key: UInt64, isDue: Bool, now: Instant) -> Instant? {
    guard let pause = pauses[key] else { return nil }
    if isDue, pause.until <= now { return nil }
    let turn = max(pause.until, pause.next)
    if turn <= now {
      // Nobody else waits; who comes within the next second does not know yet what comes of this one.
      pauses[key]?.next = now + Self.spacing
      return nil
    }
    pauses[key]?.next = min(turn + Self.spacing, max(pause.until, now + Self.longestLine))
    return turn
  }

  /// Forgets those whose time is over; looks at them all, once a second at most.
  private mutating func makeRoom(_ now: Instant) -> Bool {
    if let swept, now - swept < .seconds(1) { return false }
    swept = now
    pauses = pauses.filter { $0.value.next > now }
    return pauses.count < Self.limit
  }
}
