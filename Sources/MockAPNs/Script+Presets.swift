import APNs
import Transport

extension Script {
  /// Device tokens that always get the same answer, for demonstrations and staging. Eight digits, so that no real token
  /// is met by chance: "dead", a digit, and the HTTP status; or "dead" and a word that is nearly hex.
  package static let wellKnownTokens: [(prefix: String, action: Action, meaning: String)] = [
    ("deadbeef", .answer(Answer(.unregistered)), "410 Unregistered"),
    ("dead0410", .answer(Answer(.unregistered)), "410 Unregistered"),
    ("dead1410", .answer(Answer(.expiredToken)), "410 ExpiredToken"),
    ("dead0400", .answer(Answer(.badDeviceToken)), "400 BadDeviceToken"),
    ("dead1400", .answer(Answer(.deviceTokenNotForTopic)), "400 DeviceTokenNotForTopic"),
    ("dead2400", .answer(Answer(.topicDisallowed)), "400 TopicDisallowed"),
    ("dead0403", .answer(Answer(.forbidden)), "403 Forbidden"),
    ("dead1403", .answer(Answer(.expiredProviderToken)), "403 ExpiredProviderToken"),
    ("dead0413", .answer(Answer(.payloadTooLarge)), "413 PayloadTooLarge"),
    ("dead0429", .answer(Answer(.tooManyRequests)), "429 TooManyRequests"),
    ("dead0500", .answer(Answer(.internalServerError)), "500 InternalServerError"),
    ("dead0502", .answer(Answer(status: 502, body: Array("<html>bad gateway</html>".utf8))), "502, no JSON"),
    ("dead0503", .answer(Answer(.serviceUnavailable)), "503 ServiceUnavailable"),
    ("dead1503", .answer(Answer(.shutdown)), "503 Shutdown"),
    ("dead0000", .silence, "no answer"),
    ("dead0007", .reset(code: HTTP2Code.refusedStream), "RST_STREAM(REFUSED_STREAM)"),
    ("dead0002", .reset(code: HTTP2Code.internalError), "RST_STREAM(INTERNAL_ERROR)"),
    (
      "dead60a7",
      .goAway(code: HTTP2Code.noError, last: .newest, debugData: #"{"reason":"Shutdown"}"#, closes: false),
      "GOAWAY, the socket stays open; accepted"
    ),
  ]

  /// The rules of `wellKnownTokens`.
  package static let wellKnown = Script(
    wellKnownTokens.map { Rule(Condition(tokenPrefix: $0.prefix), $0.action) })

  /// Everything that goes wrong at times, in small shares.
  ///
  /// - Parameter strength: 1 spoils about one request in fifty, 2 twice as many; 0 none.
  package static func faults(strength: Double = 1) -> Script {
    func rule(_ share: Double, _ action: Action) -> Rule {
      Rule(Condition(share: min(1, share * strength)), action)
    }
    let shutdown = #"{"reason":"Shutdown"}"#
    return Script([
      rule(0.00002, .abort),
      rule(0.00001, .silentConnection),
      rule(0.0001, .goAway(code: HTTP2Code.noError, last: .newest, debugData: shutdown, closes: false)),
      rule(0.00005, .goAway(code: HTTP2Code.noError, last: .previous, debugData: "", closes: true)),
      Rule(Condition(tokenShare: min(1, 0.005 * strength)), .answer(Answer(.unregistered))),
      Rule(Condition(tokenShare: min(1, 0.002 * strength)), .answer(Answer(.badDeviceToken))),
      rule(0.003, .answer(Answer(.tooManyRequests))),
      rule(0.003, .answer(Answer(.serviceUnavailable))),
      rule(0.002, .answer(Answer(.internalServerError))),
      rule(0.002, .reset(code: HTTP2Code.refusedStream)),
      rule(0.001, .reset(code: HTTP2Code.internalError)),
      rule(0.0001, .silence),
      rule(0.01, .delay(.milliseconds(20), upTo: .milliseconds(500))),
    ])
  }
}
