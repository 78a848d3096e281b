import Glibc
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Kafka

struct OAuthTokenTests {
  private static let now = UnixTime(seconds: 1_790_000_000)

  private static func jwt(_ payload: String) -> String {
    "eyJhbGciOiJIUzI1NiJ9.\(Base64URL.encode(Array(payload.utf8).span)).c2lnbmF0dXJl"
  }

  @Test(arguments: [
    (#"{"sub":"svc","exp":1790000010}"#, "svc", 1_790_000_010_000),
    (#"{"exp":1790000010.75,"aud":["a"],"sub":"svc"}"#, "svc", 1_790_000_010_000),
    // However long a token is good, the file is read again within a minute.
    (#"{"sub":"svc","exp":1790003600}"#, "svc", 1_790_000_060_000),
    (#"{"sub":"svc"}"#, "svc", 1_790_000_060_000),
    (#"{"exp":1790000010}"#, "martlet", 1_790_000_010_000),
    (#"["no claims"]"#, "martlet", 1_790_000_060_000),
  ])
  func readsWhoseATokenIsAndWhenItEnds(payload: String, principal: String, lifetime: Int64) throws {
    let token = try OAuthToken(Self.jwt(payload), now: Self.now)
    #expect(token.principal == principal)
    #expect(token.lifetime.milliseconds == lifetime)
  }

  @Test(arguments: ["opaque", "a.b", "a.!!!.c", "a.b.c.d"])
  func passesOnWhatIsNoJWT(text: String) throws {
    let token = try OAuthToken(text, now: Self.now)
    #expect(token.value == text && token.principal == "martlet")
  }

  @Test(arguments: [
    ("", "empty"), ("a b", "characters"), ("tök.en", "characters"),
    (OAuthTokenTests.jwt(#"{"exp":1789999000}"#), "expired 1000 s ago"),
  ])
  func refusesWhatCannotBeAToken(text: String, mention: String) {
    #expect {
      try OAuthToken(text, now: Self.now)
    } throws: { "\($0)".contains(mention) && (text.isEmpty || !"\($0)".contains(text)) }
  }

  private static func properties(_ source: BearerTokenSource?) throws -> KafkaProperties {
    var properties = try KafkaProperties(brokers: "localhost:1")
    try properties.set("security.protocol", to: "SASL_PLAINTEXT")
    try properties.set("sasl.mechanism", to: "OAUTHBEARER")
    properties.tokenSource = source
    return properties
  }

  @Test func aClientWithoutATokenSourceIsRefused() throws {
    #expect {
      try Producer(properties: Self.properties(nil), log: { _ in })
    } throws: { "\($0)".contains("kafka.oauthTokenFile") }
  }

  @Test func aTokenIsAskedForAtOnceAndAgainBeforeItEnds() throws {
    let asked = Mutex(0)
    let source: BearerTokenSource = {
      asked.withLock { $0 += 1 }
      let soon = UnixTime(seconds: Int64(time(nil)) + 3)
      return Self.jwt(#"{"sub":"svc","exp":\#(soon.seconds)}"#)
    }
    let producer = try Producer(properties: Self.properties(source), log: { _ in })
    #expect(asked.withLock { $0 } >= 1)
    var reports: [DeliveryReport] = []
    let isAsked = waitUntil {
      _ = producer.takeReports(into: &reports, limit: 1)
      return asked.withLock { $0 } >= 3
    }
    #expect(isAsked)
  }

  @Test func aTokenThatCannotBeHadIsAnErrorOfTheClient() throws {
    struct Missing: Error, CustomStringConvertible { let description = "/token: no such file" }
    let producer = try Producer(properties: Self.properties({ throw Missing() }), log: { _ in })
    var reports: [DeliveryReport] = []
    var errors: [KafkaError] = []
    _ = waitUntil {
      if let error = producer.takeReports(into: &reports, limit: 1) { errors.append(error) }
      return errors.contains { $0.text.contains("/token") }
    }
    let error = try #require(errors.first { $0.text.contains("/token: no such file") })
    #expect(error.isRefusal)
  }
}
