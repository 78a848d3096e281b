import Wire

/// What kind of push a notification is (Apple, "Sending notification requests to APNs", `apns-push-type`).
///
/// `other` stands for a type that this table does not know; its name travels with the notification, which must then
/// say its topic itself.
package enum PushType: UInt8, CaseIterable, Sendable {
  case alert, background, voip, location, complication, fileprovider, mdm, liveactivity, pushtotalk, widgets, controls
  case other

  /// The longest name that is taken for a push type, in bytes.
  package static let longestName = 32

  /// The type that `text` names, in Apple's lower-case spelling. `other` for a name that is not in the table but looks
  /// like one (lower-case letters, digits, hyphens, a letter first), so that Apple's next type needs no new release;
  /// `nil` for anything else.
  package init?(_ text: Span<UInt8>) {
    if let candidate = PushType.candidate(text), text.spells(candidate.name) {
      self = candidate
      return
    }
    guard PushType.looksLikeName(text) else { return nil }
    self = .other
  }

  /// The one type that has a name of this length with this first letter, so that each request costs one comparison.
  private static func candidate(_ text: Span<UInt8>) -> PushType? {
    guard !text.isEmpty else { return nil }
    return switch (text.count, Unicode.Scalar(text[0])) {
    case (5, "a"): .alert
    case (10, "b"): .background
    case (4, "v"): .voip
    case (8, "l"): .location
    case (12, "c"): .complication
    case (12, "f"): .fileprovider
    case (3, "m"): .mdm
    case (12, "l"): .liveactivity
    case (10, "p"): .pushtotalk
    case (7, "w"): .widgets
    case (8, "c"): .controls
    default: nil
    }
  }

  /// The same for a text of our own, such as one of the configuration or the command line.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    self.init(bytes.span)
  }

  /// Apple's name, as it stands in `apns-push-type`; "other" for `other`, whose name the notification carries.
  package var name: String {
    switch self {
    case .alert: "alert"
    case .background: "background"
    case .voip: "voip"
    case .location: "location"
    case .complication: "complication"
    case .fileprovider: "fileprovider"
    case .mdm: "mdm"
    case .liveactivity: "liveactivity"
    case .pushtotalk: "pushtotalk"
    case .widgets: "widgets"
    case .controls: "controls"
    case .other: "other"
    }
  }

  private static func looksLikeName(_ text: Span<UInt8>) -> Bool {
    guard (1...longestName).contains(text.count), (0x61...0x7a).contains(text[0]) else { return false }
    for index in text.indices {
      switch text[index] {
      case 0x61...0x7a, 0x30...0x39, 0x2d: continue
      default: return false
      }
    }
    return true
  }
}

// MARK: Topics

extension PushType {
  /// What is put behind the bundle id to make the topic; empty where the bundle id is the topic.
  ///
  /// Apple's page has slips in two of them ("h.complication", and no dot before "push-type.liveactivity"); these are
  /// the ones that work. `mdm` and `other` have no rule: see `hasFreeTopic`.
  package var topicSuffix: String {
    switch self {
    case .alert, .background, .mdm, .other: ""
    case .voip: ".voip"
    case .location: ".location-query"
    case .complication: ".complication"
    case .fileprovider: ".pushkit.fileprovider"
    case .liveactivity: ".push-type.liveactivity"
    case .pushtotalk: ".voip-ptt"
    case .widgets: ".push-type.widgets"
    case .controls: ".push-type.controls"
    }
  }

  private static let suffixes = allCases.map(\.topicSuffix).filter { !$0.isEmpty }

  /// The suffix of a known push type that a topic ends in; `nil` where it has none.
  package static func knownSuffix(of topic: Span<UInt8>) -> String? {
    suffixes.first { suffix in
      let count = suffix.utf8.count
      return topic.count > count && topic.extracting((topic.count - count)...).spells(suffix)
    }
  }

  /// Whether the topic does not follow from the bundle id: that of `mdm` is the UID in the subject of the MDM push
  /// certificate, that of `other` is unknown. Such a push should name its topic itself.
  package var hasFreeTopic: Bool { self == .mdm || self == .other }

  /// The topic of a push of this type for an app that is configured with `bundleID`. A bundle id that ends in the
  /// suffix already is a topic, and stays as it is.
  package func topic(bundleID: String) -> String {
    let suffix = topicSuffix
    return suffix.isEmpty || bundleID.hasSuffix(suffix) ? bundleID : bundleID + suffix
  }
}

// MARK: Limits

extension PushType {
  /// The priority of a push that names none: 10, which is Apple's default too, and 5 for `background`, where 10 is an
  /// error.
  package var defaultPriority: UInt8 { self == .background ? 5 : 10 }

  /// The expiration of a push that names none, before that of its app: 0, so that it is tried once, for `pushtotalk`,
  /// where a voice that comes late is worse than none (Apple, "Creating a Push to Talk app").
  package var defaultExpiration: Int64? { self == .pushtotalk ? 0 : nil }

  /// Whether APNs takes this priority: 10 (at once), 5 (power-aware) and 1 (never wakes the device); not 10 for
  /// `background`.
  package func allows(priority: UInt8) -> Bool {
    switch priority {
    case 1, 5: true
    case 10: self != .background
    default: false
    }
  }

  /// The most bytes that a payload may have, inclusive; one more is answered with 413.
  package var maximumPayload: Int { self == .voip ? 5120 : 4096 }

  /// Whether APNs takes this type on token-authenticated connections only.
  package var needsTokenAuthentication: Bool { self == .location }
}

extension Span<UInt8> {
  /// The bytes without white space at both ends; control characters count as white space.
  @_lifetime(copy self)
  func trimmed() -> Span<UInt8> {
    var start = 0
    var end = count
    while start < end, self[start] <= 0x20 { start += 1 }
    while end > start, self[end - 1] <= 0x20 { end -= 1 }
    return extracting(start..<end)
  }
}
