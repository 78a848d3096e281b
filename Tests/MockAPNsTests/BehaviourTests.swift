import APNs
import Testing
import Transport
import Wire

@testable import MockAPNs

struct BehaviourTests {
  private let key: ProviderKey
  private let behaviour: Behaviour

  init() throws {
    key = try ProviderKey.make(keyID: "KEY0000001", teamID: "TEAM000001")
    var rules = Behaviour.Rules()
    rules.topics["TEAM000001"] = ["com.example.shop"]
    behaviour = Behaviour(judge: ProviderTokenJudge(keys: [key]), rules: rules)
  }

  private func refusal(_ request: TestRequest, authorization: String? = nil) throws -> Reason? {
    var connection = Behaviour.Connection()
    let bearer = try authorization ?? key.bearer(issuedAt: UnixTime(seconds: TestTime.now))
    return behaviour.refusal(
      of: request.with("authorization", bearer).list, bodyLength: request.bodyLength, on: &connection,
      at: TestTime.moment())
  }

  @Test func `accepts a request that is in order`() throws {
    #expect(try refusal(TestRequest()) == nil)
  }

  @Test(
    arguments: [
      (":method", "GET", .methodNotAllowed), (":path", "/3/devices/00aa", .badPath),
      (":path", "/3/device/", .missingDeviceToken),
      (":path", "/3/device/00aax1", .badDeviceToken), (":path", "/3/device/00aa1", .badDeviceToken),
      (":path", "/3/device/00aa/11", .badDeviceToken), (":path", "/", .badPath), ("apns-id", "1234", .badMessageID),
      ("apns-push-type", "shout", .invalidPushType), ("apns-push-type", "", .invalidPushType),
      ("apns-priority", "7", .badPriority), ("apns-priority", "ten", .badPriority),
      ("apns-priority", "-5", .badPriority),
      ("apns-expiration", "soon", .badExpirationDate), ("apns-expiration", "-1", .badExpirationDate),
      ("apns-expiration", "1790000000000", .badExpirationDate),
      ("apns-collapse-id", String(repeating: "a", count: 65), .badCollapseID), ("apns-topic", nil, .missingTopic),
      ("apns-topic", "com.example.other", .topicDisallowed), ("apns-topic", "com.example.shop.voip", .topicDisallowed),
      ("apns-push-type", "voip", .topicDisallowed),
    ] as [(String, String?, Reason)])
  func `refuses with the reason of the field at fault`(name: String, value: String?, reason: Reason) throws {
    #expect(try refusal(TestRequest().with(name, value)) == reason)
  }

  @Test(
    arguments: [
      ("apns-id", nil), ("apns-push-type", nil), ("apns-priority", nil), ("apns-priority", "1"), ("apns-priority", "5"),
      ("apns-expiration", "0"), ("apns-expiration", "1790000000"),
      ("apns-collapse-id", String(repeating: "a", count: 64)), (":path", "/3/device/ABcd"),
      ("user-agent", "test"), ("x-other", "1"),
    ] as [(String, String?)])
  func `takes what Apple takes`(name: String, value: String?) throws {
    #expect(try refusal(TestRequest().with(name, value)) == nil)
  }

  private static let broadcast = TestRequest().with(":path", "/4/broadcasts/apps/com.example.shop")
    .with("apns-topic", nil).with("apns-id", nil).with("apns-push-type", "liveactivity")
    .with("apns-channel-id", "Y2hhbm5lbA==").with("apns-expiration", "0")
    .with("apns-request-id", "123e4567-e89b-12d3-a456-426614174000")

  @Test func `takes a broadcast`() throws {
    #expect(try refusal(Self.broadcast) == nil)
    var long = Self.broadcast
    long.bodyLength = 5120
    #expect(try refusal(long) == nil)
    long.bodyLength = 5121
    #expect(try refusal(long) == .payloadTooLarge)
  }

  @Test(
    arguments: [
      ("apns-channel-id", nil, .missingChannelID), ("apns-channel-id", "?", .badChannelID),
      ("apns-push-type", nil, .missingPushType), ("apns-push-type", "alert", .invalidPushType),
      ("apns-expiration", nil, .badExpirationDate), ("apns-priority", nil, .badPriority),
      ("apns-request-id", "1", .badMessageID),
      (":path", "/4/broadcasts/apps/com.example.shop.push-type.liveactivity", .topicDisallowed),
      (":path", "/4/broadcasts/apps/com.example.other", .topicMismatch), (":path", "/4/broadcasts/apps/", .badPath),
    ] as [(String, String?, Reason)])
  func `refuses a broadcast with the reason of the field at fault`(name: String, value: String?, reason: Reason) throws
  {
    #expect(try refusal(Self.broadcast.with(name, value)) == reason)
  }

  @Test func `a background push may not have priority 10`() throws {
    let background = TestRequest().with("apns-push-type", "background")
    #expect(try refusal(background) == .badPriority)
    #expect(try refusal(background.with("apns-priority", "5")) == nil)
  }

  @Test func `each push type needs its suffix`() throws {
    for type in PushType.allCases where type != .other && type != .mdm {
      let request = TestRequest().with("apns-push-type", type.name).with("apns-priority", "5")
      let topic = type.topic(bundleID: "com.example.shop")
      #expect(try refusal(request.with("apns-topic", topic)) == nil, "\(type)")
      #expect(try refusal(request.with("apns-topic", topic + "x")) == .topicDisallowed, "\(type)")
    }
  }

  @Test func `a topic is judged anew for another type`() throws {
    var connection = Behaviour.Connection()
    let bearer = try key.bearer(issuedAt: UnixTime(seconds: TestTime.now))
    func refusal(_ type: String, _ topic: String) -> Reason? {
      let request = TestRequest().with("authorization", bearer).with("apns-push-type", type).with("apns-topic", topic)
      return behaviour.refusal(of: request.list, bodyLength: 1, on: &connection, at: TestTime.moment())
    }
    for _ in 1...2 {
      #expect(refusal("alert", "com.example.shop") == nil)
      #expect(refusal("voip", "com.example.shop") == .topicDisallowed)
      #expect(refusal("voip", "com.example.shop") == .topicDisallowed)
      #expect(refusal("voip", "com.example.shop.voip") == nil)
      #expect(refusal("alert", "com.example.shop.voip") == .topicDisallowed)
    }
  }

  @Test func `a header twice is refused`() throws {
    var request = TestRequest()
    request.fields.append(("apns-priority", "10"))
    #expect(try refusal(request) == .duplicateHeaders)
  }

  @Test(arguments: [
    ("alert", 0, Reason.payloadEmpty), ("alert", 1, nil), ("alert", 4096, nil), ("alert", 4097, .payloadTooLarge),
    ("voip", 4097, nil), ("voip", 5120, nil), ("voip", 5121, .payloadTooLarge),
  ])
  func `bodies have limits`(type: String, length: Int, reason: Reason?) throws {
    var request = TestRequest().with("apns-push-type", type)
    if type == "voip" { request = request.with("apns-topic", "com.example.shop.voip") }
    request.bodyLength = length
    #expect(try refusal(request) == reason)
  }

  @Test func `bad credentials tell nothing about the device token`() throws {
    #expect(
      try refusal(TestRequest().with(":path", "/3/device/xyz"), authorization: "bearer a.b.c") == .invalidProviderToken)
  }
}

struct ProviderTokenTests {
  private let key: ProviderKey
  private let second: ProviderKey
  private let behaviour: Behaviour

  init() throws {
    key = try ProviderKey.make(keyID: "KEY0000001", teamID: "TEAM000001")
    second = try ProviderKey.make(keyID: "KEY0000002", teamID: "TEAM000002")
    behaviour = Behaviour(judge: ProviderTokenJudge(keys: [key, second]))
  }

  private func refusal(
    _ authorization: String?, _ connection: inout Behaviour.Connection, after seconds: Int64 = 0
  ) -> Reason? {
    behaviour.refusal(
      of: TestRequest().with("authorization", authorization).list, bodyLength: 10, on: &connection,
      at: TestTime.moment(seconds))
  }

  private func refusal(_ authorization: String?) -> Reason? {
    var connection = Behaviour.Connection()
    return refusal(authorization, &connection)
  }

  @Test(
    arguments: [
      (0, nil), (-3600, nil), (-3601, Reason.expiredProviderToken), (3600, nil), (3601, .expiredProviderToken),
    ] as [(Int64, Reason?)])
  func `a token is good for an hour on both sides`(offset: Int64, reason: Reason?) throws {
    #expect(refusal(try key.bearer(issuedAt: UnixTime(seconds: TestTime.now + offset))) == reason)
  }

  @Test func `what is no token of a registered key is refused`() throws {
    let issued = UnixTime(seconds: TestTime.now)
    let good = try key.bearer(issuedAt: issued)
    #expect(refusal(nil) == .missingProviderToken)
    #expect(refusal("basic abc") == .missingProviderToken)
    #expect(refusal("bearer ") == .missingProviderToken)
    #expect(refusal("bearer abc") == .invalidProviderToken)
    #expect(refusal(good + ".x") == .invalidProviderToken)
    #expect(refusal(String(good.dropLast(2)) + "AA") == .invalidProviderToken)
    #expect(refusal("Bearer " + good.dropFirst(7)) == nil)
    let stranger = try ProviderKey.make(keyID: "KEY0000009", teamID: "TEAM000001")
    #expect(refusal(try stranger.bearer(issuedAt: issued)) == .invalidProviderToken, "an unknown key")
    #expect(refusal(try key.bearer(issuedAt: issued, teamID: "TEAM000002")) == .invalidProviderToken, "a wrong team")
    let forged = ProviderKey(keyID: key.keyID, teamID: key.teamID, key: second.key)
    #expect(refusal(try forged.bearer(issuedAt: issued)) == .invalidProviderToken, "signed with another key")
  }

  @Test func `with any key a well-formed token will do`() throws {
    let stranger = try ProviderKey.make(keyID: "KEY0000009", teamID: "TEAM000009")
    let judge = ProviderTokenJudge(keys: [], acceptsAnyKey: true)
    let bearer = try stranger.bearer(issuedAt: UnixTime(seconds: TestTime.now))
    #expect(judge.judge(Array(bearer.utf8.dropFirst(7))).refusal == nil)
    #expect(judge.judge(Array("a.b.c".utf8)).refusal == .invalidProviderToken)
    #expect(judge.distinctTokens == 2)
  }

  @Test func `a connection may change its token every twenty minutes`() throws {
    var connection = Behaviour.Connection()
    let first = try key.bearer(issuedAt: UnixTime(seconds: TestTime.now))
    let next = try key.bearer(issuedAt: UnixTime(seconds: TestTime.now + 60))
    #expect(refusal(first, &connection) == nil)
    #expect(refusal(next, &connection, after: 1199) == .tooManyProviderTokenUpdates)
    #expect(refusal(first, &connection, after: 1199) == nil, "the token in use stays good")
    #expect(refusal(next, &connection, after: 1200) == nil)
    #expect(refusal(first, &connection, after: 1201) == .tooManyProviderTokenUpdates)
  }

  @Test func `a connection belongs to its first team`() throws {
    var connection = Behaviour.Connection()
    #expect(refusal(try key.bearer(issuedAt: UnixTime(seconds: TestTime.now)), &connection) == nil)
    #expect(refusal(try second.bearer(issuedAt: UnixTime(seconds: TestTime.now)), &connection) == .invalidProviderToken)
  }

  @Test func `a client certificate takes the token's place`() {
    var connection = Behaviour.Connection()
    connection.certificateTopic = "com.example.shop"
    #expect(refusal(nil, &connection) == nil)
    var other = Behaviour.Connection()
    other.certificateTopic = "com.example.other"
    #expect(refusal(nil, &other) == .topicDisallowed)
  }
}
