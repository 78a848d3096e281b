package import APNs

/// Tells an app whose configuration names the wrong environment from one that has dead tokens.
///
/// A device token is good in one of Apple's environments only; in the other, APNs calls every token `BadDeviceToken`.
/// With the wrong bundle id, it calls every one `DeviceTokenNotForTopic`. Whoever deletes tokens by our events would
/// then delete all of them. A few tokens are always dead, nearly all are not: when most of the last answers say so, the
/// app is suspect, and each event says that too.
package struct EnvironmentGuard: Sendable {
  /// So many answers are looked at, the last ones.
  package static let window = 200
  /// Fewer answers tell nothing.
  package static let fewest = 100
  /// Suspect from this many bad ones in a hundred on, and no longer below that many.
  package static let alarmPercent = 80
  package static let clearPercent = 20

  /// A turn of the verdict.
  package enum Change: Equatable, Sendable { case suspected, cleared }

  package private(set) var isSuspect = false
  /// A bit for each answer, 1 for a bad one; used in turn.
  private var bits = InlineArray<4, UInt64>(repeating: 0)
  private var next = 0
  private var count = 0
  private var bad = 0

  package init() {}

  /// Takes an answer to a first attempt. Answers that say nothing of the token (credentials, overload, faults of Apple's)
  /// are left out.
  package mutating func note(_ response: borrowing Response) -> Change? {
    switch response.verdict {
    case .delivered, .rejected, .throttled: note(isBad: false)
    case .invalidToken: note(isBad: response.reason == .badDeviceToken || response.reason == .deviceTokenNotForTopic)
    case .credentialFault, .refreshToken, .replaceConnection, .retry: nil
    }
  }

  mutating func note(isBad: Bool) -> Change? {
    let (word, bit) = (next / 64, UInt64(1) << UInt64(next % 64))
    if count == Self.window {
      if bits[word] & bit != 0 { bad -= 1 }
    } else {
      count += 1
    }
    if isBad {
      bits[word] |= bit
      bad += 1
    } else {
      bits[word] &= ~bit
    }
    next = (next + 1) % Self.window
    return judge()
  }

  private mutating func judge() -> Change? {
    guard count >= Self.fewest else { return nil }
    if !isSuspect, bad * 100 >= count * Self.alarmPercent {
      isSuspect = true
      return .suspected
    }
    if isSuspect, bad * 100 < count * Self.clearPercent {
      isSuspect = false
      return .cleared
    }
    return nil
  }
}
