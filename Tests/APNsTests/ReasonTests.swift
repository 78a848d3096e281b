import APNs
import Testing

@Suite struct ReasonTests {
  struct Row {
    let text: String
    let status: UInt16
    let reason: Reason
    let verdict: Verdict
  }

  /// Apple's table, written down a second time.
  static let rows: [Row] = [
    Row(text: "BadCollapseId", status: 400, reason: .badCollapseID, verdict: .rejected),
    Row(text: "BadDeviceToken", status: 400, reason: .badDeviceToken, verdict: .invalidToken),
    Row(text: "BadExpirationDate", status: 400, reason: .badExpirationDate, verdict: .rejected),
    Row(text: "BadMessageId", status: 400, reason: .badMessageID, verdict: .rejected),
    Row(text: "BadPriority", status: 400, reason: .badPriority, verdict: .rejected),
    Row(text: "BadTopic", status: 400, reason: .badTopic, verdict: .rejected),
    Row(text: "DeviceTokenNotForTopic", status: 400, reason: .deviceTokenNotForTopic, verdict: .invalidToken),
    Row(text: "DuplicateHeaders", status: 400, reason: .duplicateHeaders, verdict: .rejected),
    Row(text: "IdleTimeout", status: 400, reason: .idleTimeout, verdict: .replaceConnection),
    Row(text: "InvalidPushType", status: 400, reason: .invalidPushType, verdict: .rejected),
    Row(text: "MissingDeviceToken", status: 400, reason: .missingDeviceToken, verdict: .rejected),
    Row(text: "MissingTopic", status: 400, reason: .missingTopic, verdict: .rejected),
    Row(text: "PayloadEmpty", status: 400, reason: .payloadEmpty, verdict: .rejected),
    Row(text: "TopicDisallowed", status: 400, reason: .topicDisallowed, verdict: .credentialFault),
    Row(text: "BadCertificate", status: 403, reason: .badCertificate, verdict: .credentialFault),
    Row(
      text: "BadCertificateEnvironment", status: 403, reason: .badCertificateEnvironment, verdict: .credentialFault),
    Row(text: "ExpiredProviderToken", status: 403, reason: .expiredProviderToken, verdict: .refreshToken),
    Row(text: "Forbidden", status: 403, reason: .forbidden, verdict: .credentialFault),
    Row(text: "InvalidProviderToken", status: 403, reason: .invalidProviderToken, verdict: .credentialFault),
    Row(text: "MissingProviderToken", status: 403, reason: .missingProviderToken, verdict: .credentialFault),
    Row(text: "UnrelatedKeyIdInToken", status: 403, reason: .unrelatedKeyIDInToken, verdict: .replaceConnection),
    Row(
      text: "BadEnvironmentKeyIdInToken", status: 403, reason: .badEnvironmentKeyIDInToken, verdict: .credentialFault),
    Row(text: "BadPath", status: 404, reason: .badPath, verdict: .rejected),
    Row(text: "MethodNotAllowed", status: 405, reason: .methodNotAllowed, verdict: .rejected),
    Row(text: "ExpiredToken", status: 410, reason: .expiredToken, verdict: .invalidToken),
    Row(text: "Unregistered", status: 410, reason: .unregistered, verdict: .invalidToken),
    Row(text: "PayloadTooLarge", status: 413, reason: .payloadTooLarge, verdict: .rejected),
    Row(
      text: "TooManyProviderTokenUpdates", status: 429, reason: .tooManyProviderTokenUpdates,
      verdict: .replaceConnection),
    Row(text: "TooManyRequests", status: 429, reason: .tooManyRequests, verdict: .throttled),
    Row(text: "InternalServerError", status: 500, reason: .internalServerError, verdict: .retry),
    Row(text: "ServiceUnavailable", status: 503, reason: .serviceUnavailable, verdict: .retry),
    Row(text: "Shutdown", status: 503, reason: .shutdown, verdict: .replaceConnection),
    Row(text: "BadChannelId", status: 400, reason: .badChannelID, verdict: .rejected),
    Row(text: "BadRequestParams", status: 400, reason: .badRequestParams, verdict: .rejected),
    Row(text: "BadRequestPayload", status: 400, reason: .badRequestPayload, verdict: .rejected),
    Row(text: "ChannelNotRegistered", status: 400, reason: .channelNotRegistered, verdict: .rejected),
    Row(text: "FeatureNotEnabled", status: 400, reason: .featureNotEnabled, verdict: .rejected),
    Row(text: "MissingChannelId", status: 400, reason: .missingChannelID, verdict: .rejected),
    Row(text: "MissingPushType", status: 400, reason: .missingPushType, verdict: .rejected),
    Row(text: "TopicMismatch", status: 403, reason: .topicMismatch, verdict: .credentialFault),
    Row(
      text: "CannotCreateChannelConfig", status: 400, reason: .cannotCreateChannelConfig, verdict: .rejected),
  ]

  @Test func everyReasonHasItsRow() {
    #expect(Self.rows.map(\.reason) + [.unknown] == Reason.allCases)
    for row in Self.rows {
      #expect(row.reason.text == row.text)
      #expect(row.reason.status == row.status)
      #expect(row.reason.verdict == row.verdict)
      #expect(Verdict(status: row.status, reason: row.reason) == row.verdict)
      for spelling in [row.text, " " + row.text, row.text + " ", "\t\(row.text)\r\n"] {
        #expect(Reason(spelling) == row.reason)
      }
    }
  }

  @Test func otherSpellingsAreKnown() {
    #expect(Reason("BadEnvironmentKeyInToken") == .badEnvironmentKeyIDInToken)
    #expect(Reason("Service Unavailable") == .serviceUnavailable)
  }

  @Test(arguments: ["", "Unknown", "baddevicetoken", "BadDeviceTokens", "Bad Device Token", "NewReason", "\u{e9}"])
  func otherTextsAreUnknown(text: String) {
    #expect(Reason(text) == .unknown)
    #expect(Reason.unknown.verdict == nil)
    #expect(Reason.unknown.status == nil)
  }

  @Test func fourReasonsNameADeadToken() {
    let dead: [Reason] = [.badDeviceToken, .deviceTokenNotForTopic, .expiredToken, .unregistered]
    #expect(Reason.allCases.filter { $0.verdict == .invalidToken } == dead)
  }

  @Test func withoutAReasonTheStatusDecides() {
    for status in UInt16(0)...999 {
      let wanted: Verdict =
        switch status {
        case 200..<300: .delivered
        case 429: .throttled
        case 300..<500: .rejected
        default: .retry
        }
      #expect(Verdict(status: status, reason: nil) == wanted)
      #expect(Verdict(status: status, reason: .unknown) == wanted)
    }
  }

  @Test func aReasonCountsOnlyWithAStatusOfItsClass() {
    #expect(Verdict(status: 502, reason: .badDeviceToken) == .retry)
    #expect(Verdict(status: 200, reason: .unregistered) == .delivered)
    #expect(Verdict(status: 400, reason: .unregistered) == .invalidToken)
    #expect(Verdict(status: 500, reason: .serviceUnavailable) == .retry)
    #expect(Verdict(status: 429, reason: .shutdown) == .throttled)
  }
}
