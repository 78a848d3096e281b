import Wire

/// How long most pushes take at present, from being taken up to their end: about the median, followed step by step, so
/// that a few apps that take very long, or have nothing to say, do not move it.
struct TypicalStay: Sendable {
  /// Longer stays tell of trouble, not of a machine that has much to do.
  private static let most = 250.0
  private static let step = 1.02

  private var milliseconds = 1.0

  var duration: Duration { .microseconds(Int64(milliseconds * 1000)) }

  /// - Parameter stay: of one push, in milliseconds.
  @inline(__always)
  mutating func note(_ stay: Int64) {
    let isLonger = Double(stay) > milliseconds
    milliseconds = isLonger ? min(milliseconds * Self.step, Self.most) : max(milliseconds / Self.step, 1)
  }
}
