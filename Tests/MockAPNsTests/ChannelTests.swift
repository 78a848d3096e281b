import APNs
import Testing
import Transport
import Wire

@testable import MockAPNs

/// The management of channels, rule by rule.
struct ChannelTests {
  private static let bundleID = "com.example.shop"
  private let book = ChannelBook()
  private var connection = Behaviour.Connection()
  private let behaviour: Behaviour
  private let authorization: String

  init() throws {
    let key = try ProviderKey.make(keyID: "KEY0000001", teamID: "TEAM000001")
    var rules = Behaviour.Rules()
    rules.topics = ["TEAM000001": [Self.bundleID]]
    behaviour = Behaviour(judge: ProviderTokenJudge(keys: [key], acceptsAnyKey: false), rules: rules)
    authorization = try key.bearer(issuedAt: TestTime.moment().time)
  }

  private mutating func ask(
    _ call: ChannelRequest.Call, _ bundleID: String = bundleID, body: [UInt8]? = nil, changes: [(String, String?)] = []
  ) throws -> Behaviour.ChannelAnswer {
    let request = ChannelRequest(call, bundleID: bundleID)
    var test = TestRequest(fields: [
      (":method", request.method), (":path", request.path), ("authorization", authorization),
    ])
    if let channel = request.channel { test = test.with("apns-channel-id", channel) }
    for (name, value) in changes { test = test.with(name, value) }
    let path = try #require(ChannelPath(test.list.text(of: ":path") ?? ""))
    return behaviour.answer(
      toManagement: test.list, path, body: body ?? request.body, on: &connection, at: TestTime.moment(), book: book,
      newID: UUID(high: 7, low: UInt64(book.channels(of: bundleID).count)))
  }

  @Test
  mutating func `channels are made, listed, shown and deleted`() throws {
    let made = try ask(.create(storesMessages: true))
    #expect(made.answer.status == 201)
    let channel = try #require(made.channel)
    let other = try #require(try ask(.create(storesMessages: false)).channel)
    let listed = try ask(.list)
    #expect(listed.answer.status == 200)
    let list = listed.answer.body ?? []
    let channels = try ChannelSettings.list(answer: list.span)
    #expect(channels == [channel, other])
    let shown = try ask(.show(channel))
    let body = shown.answer.body ?? []
    let settings = try ChannelSettings(answer: body.span)
    #expect(settings == ChannelSettings(storesMessages: true, pushType: "LiveActivity"))
    #expect(try ask(.delete(channel)).answer.status == 204)
    #expect(try ask(.show(channel)).answer.reason == "ChannelNotRegistered")
    #expect(try ask(.delete(channel)).answer.reason == "ChannelNotRegistered")
    #expect(book.channels(of: Self.bundleID) == [other])
  }

  @Test
  mutating func `what Apple refuses is refused by its name`() throws {
    let create = ChannelRequest.Call.create(storesMessages: true)
    func body(_ text: String) -> [UInt8] { Array(text.utf8) }
    #expect(try ask(create, body: []).answer.reason == "PayloadEmpty")
    #expect(try ask(create, body: body("[]")).answer.reason == "BadRequestPayload")
    #expect(try ask(create, body: body(#"{"push-type":"LiveActivity"}"#)).answer.reason == "BadRequestPayload")
    #expect(try ask(create, body: body(#"{"message-storage-policy":1}"#)).answer.reason == "MissingPushType")
    let alert = #"{"message-storage-policy":1,"push-type":"Alert"}"#
    #expect(try ask(create, body: body(alert)).answer.reason == "InvalidPushType")
    #expect(try ask(.show("a*")).answer.reason == "BadChannelId")
    #expect(try ask(.show("dHN0"), changes: [("apns-channel-id", nil)]).answer.reason == "MissingChannelId")
    #expect(try ask(.list, changes: [(":method", "POST")]).answer.status == 405)
    #expect(try ask(.list, changes: [("apns-request-id", "7")]).answer.reason == "BadMessageId")
    #expect(try ask(.list, changes: [("authorization", nil)]).answer.reason == "MissingProviderToken")
    #expect(try ask(.list, "com.example.other").answer.reason == "TopicMismatch")
    #expect(try ask(.list, "com.example.shop.push-type.liveactivity").answer.reason == "TopicDisallowed")
  }

  @Test
  mutating func `an app has so many channels and no more`() throws {
    for number in 0..<ChannelBook.mostChannels {
      _ = book.create(Self.bundleID, storesMessages: false, id: UUID(high: 1, low: UInt64(number)))
    }
    #expect(try ask(.create(storesMessages: false)).answer.reason == "CannotCreateChannelConfig")
  }

  @Test(arguments: [
    ("/1/apps/a/channels", true), ("/1/apps/a/all-channels", true), ("/1/apps//channels", false),
    ("/1/apps/a/channels/", false), ("/1/apps/a", false), ("/3/device/aa", false), ("/2/apps/a/channels", false),
  ])
  func `paths of channels are told apart`(path: String, isOne: Bool) {
    #expect((ChannelPath(path) != nil) == isOne)
  }

  @Test
  func `a broadcast needs a channel that was made, once one was`() {
    func refusal(_ channel: String, expiration: String) -> Reason? {
      let request = TestRequest(fields: [("apns-channel-id", channel), ("apns-expiration", expiration)])
      return behaviour.channelRefusal(request.list, "/4/broadcasts/apps/\(Self.bundleID)", book)
    }
    #expect(refusal("dHN0", expiration: "5") == nil)
    let kept = book.create(Self.bundleID, storesMessages: true, id: UUID(high: 1, low: 1)) ?? ""
    let forgotten = book.create(Self.bundleID, storesMessages: false, id: UUID(high: 1, low: 2)) ?? ""
    #expect(refusal("dHN0", expiration: "5") == .channelNotRegistered)
    #expect(refusal(kept, expiration: "5") == nil)
    #expect(refusal(forgotten, expiration: "0") == nil)
    #expect(refusal(forgotten, expiration: "5") == .badExpirationDate)
  }
}
