import APNs
import Delivery
import Kafka
import MockAPNs
import Service
import TestSupport
import Testing
import Wire

extension OneServiceTests {
  /// The contract with those who write requests and those who read results.
  @Suite struct ContractTests {
    /// What a request becomes, and whether its token is announced as dead.
    struct Case: Sendable, CustomTestStringConvertible {
      var token = Planted.token
      var fields = ""
      var status: String
      var httpStatus = "null"
      var reason = "null"
      var attempts = "1"
      var isTokenDead = false
      var testDescription: String { "\(status) \(reason)" }
    }

    private static let cases = [
      Case(status: "delivered", httpStatus: "200"),
      Case(token: "DEAD0410", status: "rejected", httpStatus: "410", reason: "Unregistered", isTokenDead: true),
      Case(token: "dead1410", status: "rejected", httpStatus: "410", reason: "ExpiredToken", isTokenDead: true),
      Case(token: "dead0400", status: "rejected", httpStatus: "400", reason: "BadDeviceToken", isTokenDead: true),
      Case(
        token: "dead1400", status: "rejected", httpStatus: "400", reason: "DeviceTokenNotForTopic", isTokenDead: true),
      Case(token: "dead2400", status: "rejected", httpStatus: "400", reason: "TopicDisallowed"),
      Case(token: "dead0413", status: "rejected", httpStatus: "413", reason: "PayloadTooLarge"),
      Case(token: "dead0503", status: "failed", httpStatus: "503", reason: "ServiceUnavailable", attempts: "5"),
      Case(token: "dead0502", status: "failed", httpStatus: "502", attempts: "5"),
      Case(
        token: "dead0503", fields: #","expiration":0"#, status: "failed", httpStatus: "503",
        reason: "ServiceUnavailable"),
      Case(fields: #","expiration":1000000000"#, status: "expired", attempts: "0"),
      Case(fields: #","priority":7"#, status: "invalid", reason: "BadPriority", attempts: "0"),
    ]

    @Test func everyStatusOfTheContract() async throws {
      let world = try OneServiceTests.world()
      try await world.writer.send(
        Self.cases.enumerated().map { index, it in
          PushRequest("status-\(index)-", app: "contract", token: it.token, fields: it.fields)
        })
      let results = try await world.results("status-", count: Self.cases.count)
      #expect(results.count == Self.cases.count)
      let dead = Self.cases.filter(\.isTokenDead).count
      let events = try await world.entries(of: World.topics.invalidTokens, "status-", count: dead)
      #expect(events.count == dead)
      for (index, it) in Self.cases.enumerated() {
        let result = try #require(results.first { $0.id == "status-\(index)-" })
        #expect(result.status == it.status, "\(it.testDescription)")
        #expect(result.fields["http_status"] == it.httpStatus, "\(it.testDescription)")
        #expect(result.fields["reason"] == it.reason, "\(it.testDescription)")
        #expect(result.fields["attempts"] == it.attempts, "\(it.testDescription)")
        #expect(result.fields["token"] == it.token)
        #expect(result.fields["source.topic"] == "push.requests")
        let event = events.first { $0.id == "status-\(index)-" }
        #expect((event != nil) == it.isTokenDead, "\(it.testDescription)")
        guard let event else { continue }
        #expect(event.key == it.token)
        #expect(event.fields["reason"] == it.reason)
        #expect(event.fields["app"] == "contract")
        #expect(event.fields["topic"] == "com.example.contract")
        #expect(event.fields["source.offset"] == result.fields["source.offset"])
        #expect((event.fields["unregistered_at"] == "null") == (it.httpStatus != "410"))
      }
    }

    @Test func payloadBytesArriveUntouched() async throws {
      let world = try OneServiceTests.world()
      let payload = #"{ "aps" : {"alert":"\u00e9\ud83d\ude00 é😀\/","n":1.50e+2},"a":1, "a":2 ,"x":[ ],"e":"" }"#
      try await world.writer.send([
        PushRequest("payload-1", app: "contract", token: "00aabb01", payload: payload),
        PushRequest(
          value: Array(payload.utf8),
          headers: [
            ("app", "contract"), ("token", "00aabb02"), ("id", "payload-2"), ("apns-priority", "5"),
            ("apns-collapse-id", "c1"), ("apns-push-type", "background"), ("apns-expiration", "4000000000"),
          ]),
      ])
      let results = try await world.results("payload-", count: 2)
      #expect(results.allSatisfy { $0.status == "delivered" })
      let seen = try world.journal("contract").seen
      let first = try #require(seen.first { $0.token == "00aabb01" })
      let second = try #require(seen.first { $0.token == "00aabb02" })
      #expect(String(decoding: first.body, as: UTF8.self) == payload)
      #expect(String(decoding: second.body, as: UTF8.self) == payload)
      let fields = Dictionary(second.fields.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
      #expect(fields["apns-priority"] == "5")
      #expect(fields["apns-collapse-id"] == "c1")
      #expect(fields["apns-push-type"] == "background")
      #expect(fields["apns-expiration"] == "4000000000")
      #expect(fields["apns-topic"] == "com.example.contract")
      #expect(Set(results.map { $0.fields["apns_id"] }) == [first.apnsID?.description, second.apnsID?.description])
    }

    @Test func headersAndKeysGoAlong() async throws {
      let world = try OneServiceTests.world()
      let trace = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("tenant", "é")]
      let broken = Array("{ no JSON".utf8)
      try await world.writer.send([
        PushRequest("headers-dead", app: "contract", token: "dead0410", key: "user-1", headers: trace),
        PushRequest("headers-without-key", app: "contract"),
        PushRequest(key: "broken-1", value: broken, headers: trace),
      ])
      let results = try await world.results("headers-", count: 2)
      let result = try #require(results.first { $0.id == "headers-dead" })
      let keyless = try #require(results.first { $0.id == "headers-without-key" })
      let event = try #require(
        try await world.entries(of: World.topics.invalidTokens, "headers-", count: 1).first)
      var letter: Entry?
      let hasLetter = await eventually {
        letter = await world.books.read(World.topics.deadLetters).first { $0.key == "broken-1" }
        return letter != nil
      }
      try #require(hasLetter)
      for entry in [result, event, letter] {
        #expect(entry?.headers["traceparent"] == trace[0].1)
        #expect(entry?.headers["tenant"] == "é")
      }
      #expect(result.key == "user-1")
      #expect(keyless.key == "headers-without-key")
      #expect(event.key == "dead0410")
      #expect(letter?.value == broken)
      #expect(letter?.headers[OwnHeader.errorRule] == "MalformedJSON")
      #expect(letter?.headers[OwnHeader.sourceTopic] == "push.requests")
    }

    @Test func aBatchHasOneResultForEachToken() async throws {
      let world = try OneServiceTests.world()
      var tokens = (0..<100).map { "00cc\($0 + 1000)" }
      tokens[17] = "dead0410"
      tokens[42] = "no hex"
      let list = tokens.map { "\"\($0)\"" }.joined(separator: ",")
      let id = "2b0f5c1e-7a39-4c57-8f5e-6a0d3c5b9e11"
      let text = #"{"id":"\#(id)","app":"contract","tokens":[\#(list)],"payload":{"aps":{}}}"#
      try await world.writer.send([PushRequest(key: "batch-key", value: Array(text.utf8))])
      let results = try await world.results(id, count: 100)
      #expect(results.count == 100)
      #expect(Set(results.map { $0.fields["apns_id"] }).count == 100)
      for result in results {
        let index = try #require(result.fields["source.index"].flatMap { Int($0) })
        #expect(result.key == "batch-key")
        #expect(result.fields["token"] == tokens[index])
        #expect(result.status == (index == 17 ? "rejected" : index == 42 ? "invalid" : "delivered"))
        if index == 0 { #expect(result.fields["apns_id"] == id) }
      }
      let events = try await world.entries(of: World.topics.invalidTokens, id, count: 1)
      #expect(events.map { $0.fields["source.index"] } == ["17"])
    }

    /// All on one partition, so that what stops the stream stops what comes after it.
    @Test func badRecordsNeverStopTheStream() async throws {
      let world = try OneServiceTests.world()
      let service = try OneServiceTests.service()
      let bad: [[UInt8]] = [
        [], [0], [0xff, 0xfe, 0xfd], Array("{".utf8), Array("[]".utf8), Array("null".utf8), Array(#"{"app":"#.utf8),
        Array(repeating: UInt8(ascii: "["), count: 100_000), Array(repeating: 0x20, count: 500_000),
        Array(#"{"app":"nobody","token":"aa","payload":{}}"#.utf8),
        Array(#"{"app":"contract","token":"\ud800","payload":{}}"#.utf8),
        Array(#"{"app":"contract","token":"aa","payload":{}} x"#.utf8),
      ]
      let tombstones = service.snapshot.value(.tombstones)
      var requests: [PushRequest] = []
      for (index, value) in bad.enumerated() {
        requests.append(PushRequest(key: "bad-\(index)", value: value, partition: 1))
        requests.append(PushRequest(key: "tombstone", value: nil, partition: 1))
        requests.append(PushRequest("good-\(index)-", app: "contract", partition: 1))
      }
      try await world.writer.send(requests)
      let results = try await world.results("good-", count: bad.count)
      #expect(results.allSatisfy { $0.status == "delivered" })
      var letters: [Entry] = []
      #expect(
        await eventually {
          letters = await world.books.read(World.topics.deadLetters).filter { $0.key?.hasPrefix("bad-") ?? false }
          return letters.count >= bad.count
        })
      for (index, value) in bad.enumerated() {
        #expect(letters.filter { $0.key == "bad-\(index)" }.map(\.value) == [value], "record \(index)")
      }
      #expect(await eventually { service.snapshot.value(.tombstones) == tombstones + bad.count })
    }

    @Test func appsOfOneTeamSendOneProviderToken() async throws {
      let world = try OneServiceTests.world()
      let apps = ["shop", "news", "bank"]
      try await world.writer.send((0..<30).map { PushRequest("teams-\($0)-", app: apps[$0 % 3]) })
      let results = try await world.results("teams-", count: 30)
      #expect(results.allSatisfy { $0.status == "delivered" })
      let journal = try world.journal("teams")
      #expect(journal.counts.providerTokens == 2)
      var tokens: [String: Set<String>] = [:]
      for request in journal.seen {
        let field = try #require(request.fields.first { $0.name == "authorization" })
        tokens[request.topic, default: []].insert(field.value)
      }
      #expect(tokens.count == 3)
      #expect(tokens["com.example.shop"]?.count == 1)
      #expect(tokens["com.example.shop"] == tokens["com.example.news"])
      #expect(tokens["com.example.bank"]?.count == 1)
      #expect(tokens["com.example.bank"] != tokens["com.example.shop"])
    }

    @Test func theEndpointAnswers() async throws {
      let world = try OneServiceTests.world()
      let service = try OneServiceTests.service()
      try await world.writer.send([PushRequest("endpoint-", app: "contract")])
      _ = try await world.results("endpoint-", count: 1)
      let port = service.service.endpointPort
      let metrics = try await HTTPGet.get("/metrics", port: port)
      #expect(metrics.status == 200)
      #expect(metrics.body.contains("martlet_notifications_total"))
      #expect(metrics.body.contains(#"app="contract""#))
      let ready = try await HTTPGet.get("/readyz", port: port)
      #expect(ready.status == 200, "\(ready.body)")
      let live = try await HTTPGet.get("/healthz", port: port)
      #expect(live.status == 200, "\(live.body)")
      #expect(try await HTTPGet.get("/nothing", port: port).status == 404)
    }
  }
}
