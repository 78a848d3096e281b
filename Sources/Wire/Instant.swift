/// A point on the monotonic clock, in nanoseconds since some start that never changes while the process runs.
///
/// The pure modules never read a clock; whoever calls them passes the time in.
package struct Instant: Hashable, Comparable, Sendable {
  package var nanoseconds: Int64

  package static let distantFuture = Instant(nanoseconds: .max)

  @inlinable
  package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  @inlinable
  package static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }

  /// Later by `duration`; stops at `distantFuture`, which stands for "never".
  @inlinable
  package static func + (instant: Instant, duration: Duration) -> Instant {
    let (sum, overflow) = instant.nanoseconds.addingReportingOverflow(duration.nanoseconds)
    return overflow ? .distantFuture : Instant(nanoseconds: sum)
  }

  @inlinable
  package static func - (later: Instant, earlier: Instant) -> Duration {
    .nanoseconds(later.nanoseconds - earlier.nanoseconds)
  }
}

/// A time of day on the wall clock, in milliseconds since 1970-01-01 UTC. It may jump.
package struct UnixTime: Hashable, Comparable, Sendable {
  package var milliseconds: Int64

  @inlinable
  package init(milliseconds: Int64) { self.milliseconds = milliseconds }

  @inlinable
  package init(seconds: Int64) { self.milliseconds = seconds * 1000 }

  /// Whole seconds since 1970, rounded down.
  @inlinable
  package var seconds: Int64 { milliseconds >= 0 ? milliseconds / 1000 : -((999 - milliseconds) / 1000) }

  @inlinable
  package static func < (left: UnixTime, right: UnixTime) -> Bool { left.milliseconds < right.milliseconds }

  @inlinable
  package static func - (later: UnixTime, earlier: UnixTime) -> Duration {
    .milliseconds(later.milliseconds - earlier.milliseconds)
  }
}

/// One reading of both clocks. Deadlines use the first, expirations and token ages the second.
package struct Moment: Hashable, Sendable {
  package var instant: Instant
  package var time: UnixTime

  @inlinable
  package init(instant: Instant, time: UnixTime) {
    self.instant = instant
    self.time = time
  }
}

extension Duration {
  /// The duration in nanoseconds; saturates at about 292 years.
  @inlinable
  package var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    guard !overflow else { return seconds < 0 ? .min : .max }
    let (sum, carry) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
    return carry ? (seconds < 0 ? .min : .max) : sum
  }
}
