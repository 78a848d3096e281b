import Wire

/// Apple's reasons (Apple, "Handling notification responses from APNs").
package enum Reason: UInt8, CaseIterable, Sendable {
  case badCollapseID, badDeviceToken, badExpirationDate, badMessageID, badPriority, badTopic, deviceTokenNotForTopic
  case duplicateHeaders, idleTimeout, invalidPushType, missingDeviceToken, missingTopic, payloadEmpty, topicDisallowed
  case badCertificate, badCertificateEnvironment, expiredProviderToken, forbidden, invalidProviderToken
  case missingProviderToken, unrelatedKeyIDInToken, badEnvironmentKeyIDInToken, badPath, methodNotAllowed
  case expiredToken, unregistered, payloadTooLarge, tooManyProviderTokenUpdates, tooManyRequests
  case internalServerError, serviceUnavailable, shutdown
  /// Those of broadcasts and of managing channels (Apple, "Handling error responses from Apple Push Notification service").
  case badChannelID, badRequestParams, badRequestPayload, channelNotRegistered, featureNotEnabled, missingChannelID
  case missingPushType, topicMismatch, cannotCreateChannelConfig
  /// A text that the table does not know.
  case unknown
}

// MARK: The table

extension Reason {
  /// What is known about a reason.
  struct Row {
    let reason: Reason
    /// Apple's spelling, as it stands in the answer's body.
    let text: String
    /// The HTTP status that it comes with.
    let status: UInt16
    let verdict: Verdict

    init(_ reason: Reason, _ text: String, _ status: UInt16, _ verdict: Verdict) {
      self.reason = reason
      self.text = text
      self.status = status
      self.verdict = verdict
    }
  }

  /// One row a reason, in the order of the cases. Other parts of the program ask this table and decide nothing about
  /// reasons themselves.
  static let table: [Row] = [
    Row(.badCollapseID, "BadCollapseId", 400, .rejected),
    Row(.badDeviceToken, "BadDeviceToken", 400, .invalidToken),
    Row(.badExpirationDate, "BadExpirationDate", 400, .rejected),
    Row(.badMessageID, "BadMessageId", 400, .rejected),
    Row(.badPriority, "BadPriority", 400, .rejected),
    Row(.badTopic, "BadTopic", 400, .rejected),
    Row(.deviceTokenNotForTopic, "DeviceTokenNotForTopic", 400, .invalidToken),
    Row(.duplicateHeaders, "DuplicateHeaders", 400, .rejected),
    Row(.idleTimeout, "IdleTimeout", 400, .replaceConnection),
    Row(.invalidPushType, "InvalidPushType", 400, .rejected),
    Row(.missingDeviceToken, "MissingDeviceToken", 400, .rejected),
    Row(.missingTopic, "MissingTopic", 400, .rejected),
    Row(.payloadEmpty, "PayloadEmpty", 400, .rejected),
    Row(.topicDisallowed, "TopicDisallowed", 400, .credentialFault),
    Row(.badCertificate, "BadCertificate", 403, .credentialFault),
    Row(.badCertificateEnvironment, "BadCertificateEnvironment", 403, .credentialFault),
    Row(.expiredProviderToken, "ExpiredProviderToken", 403, .refreshToken),
    Row(.forbidden, "Forbidden", 403, .credentialFault),
    Row(.invalidProviderToken, "InvalidProviderToken", 403, .credentialFault),
    Row(.missingProviderToken, "MissingProviderToken", 403, .credentialFault),
    Row(.unrelatedKeyIDInToken, "UnrelatedKeyIdInToken", 403, .replaceConnection),
    Row(.badEnvironmentKeyIDInToken, "BadEnvironmentKeyIdInToken", 403, .credentialFault),
    Row(.badPath, "BadPath", 404, .rejected),
    Row(.methodNotAllowed, "MethodNotAllowed", 405, .rejected),
    Row(.expiredToken, "ExpiredToken", 410, .invalidToken),
    Row(.unregistered, "Unregistered", 410, .invalidToken),
    Row(.payloadTooLarge, "PayloadTooLarge", 413, .rejected),
    // The connection is of no use until time has passed; the token itself is good (Apple developer forums, 675879).
    Row(.tooManyProviderTokenUpdates, "TooManyProviderTokenUpdates", 429, .replaceConnection),
    Row(.tooManyRequests, "TooManyRequests", 429, .throttled),
    Row(.internalServerError, "InternalServerError", 500, .retry),
    Row(.serviceUnavailable, "ServiceUnavailable", 503, .retry),
    Row(.shutdown, "Shutdown", 503, .replaceConnection),
    Row(.badChannelID, "BadChannelId", 400, .rejected),
    Row(.badRequestParams, "BadRequestParams", 400, .rejected),
    Row(.badRequestPayload, "BadRequestPayload", 400, .rejected),
    Row(.channelNotRegistered, "ChannelNotRegistered", 400, .rejected),
    Row(.featureNotEnabled, "FeatureNotEnabled", 400, .rejected),
    Row(.missingChannelID, "MissingChannelId", 400, .rejected),
    Row(.missingPushType, "MissingPushType", 400, .rejected),
    Row(.topicMismatch, "TopicMismatch", 403, .credentialFault),
    Row(.cannotCreateChannelConfig, "CannotCreateChannelConfig", 400, .rejected),
  ]

  /// Spellings that are seen beside those of the table: the server's own for a key of the other environment, and the
  /// one of Apple's page on broadcast errors.
  static let otherSpellings: [(text: String, reason: Reason)] = [
    ("BadEnvironmentKeyInToken", .badEnvironmentKeyIDInToken),
    ("Service Unavailable", .serviceUnavailable),
  ]

  fileprivate var row: Row? { self == .unknown ? nil : Reason.table[Int(rawValue)] }
}

// MARK: What callers ask

extension Reason {
  /// The reason that `text` spells, in Apple's case, with or without blanks around it; `unknown` for all other texts.
  package init(_ text: Span<UInt8>) {
    let text = text.trimmed()
    for row in Reason.table where text.spells(row.text) {
      self = row.reason
      return
    }
    for (spelling, reason) in Reason.otherSpellings where text.spells(spelling) {
      self = reason
      return
    }
    self = .unknown
  }

  /// The same for a text of our own.
  package init(_ text: String) {
    let bytes = Array(text.utf8)
    self.init(bytes.span)
  }

  /// Apple's spelling; for `unknown` the word "Unknown", which is good as a metric label.
  package var text: String { row?.text ?? "Unknown" }

  /// The HTTP status that Apple sends with it; `nil` for `unknown`.
  package var status: UInt16? { row?.status }

  /// What it means where it comes with a status of its own class; `nil` for `unknown`, which is judged by the status.
  package var verdict: Verdict? { row?.verdict }
}

// MARK: Verdicts

extension Verdict {
  /// The verdict for an answer. A known reason decides, if it comes with a status of the class that it belongs to (a
  /// 5xx of a proxy must not kill a token, whatever its body says); else the class of the status does: 4xx for good,
  /// 429 throttled, 5xx transient.
  package init(status: UInt16, reason: Reason?) {
    if let row = reason?.row, row.status / 100 == status / 100 {
      self = row.verdict
    } else {
      self.init(status: status)
    }
  }

  /// The verdict where no known reason is given.
  package init(status: UInt16) {
    switch status {
    case 200..<300: self = .delivered
    case 429: self = .throttled
    case 300..<500: self = .rejected
    // A status under 200 ends no answer, and one over 599 is none: something between us and APNs is broken.
    default: self = .retry
    }
  }
}
