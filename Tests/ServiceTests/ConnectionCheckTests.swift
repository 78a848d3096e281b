import Kafka
import TestSupport
import Testing
import Transport
import Wire

@testable import Service

/// A look-alike of APNs that shakes hands and answers whatever it is asked as Apple does what is no POST.
private final class Server {
  let files: TemporaryFiles
  let loop: EventLoop
  let server: HTTP2Server
  let authorityFile: String

  /// - Parameter date: as it tells it; `nil`: it does not.
  init(protocols: [String] = ["h2"], names: [String] = ["localhost"], date: String? = nil) throws {
    files = try TemporaryFiles()
    let authority = try CertificateAuthority(name: "test")
    authorityFile = try files.write("ca.pem", try authority.pem())
    let tls = try TLSContext.server(
      identity: try authority.issueServer(names: names), applicationProtocols: protocols)
    loop = try EventLoop.start(name: "server")
    server = try HTTP2Server.listen(on: [loop], at: Endpoint(host: "127.0.0.1", port: 0), tls: tls) { _ in
      Refusing(date: date)
    }
  }

  deinit {
    server.close()
    loop.stop()
  }

  private final class Refusing: HTTP2ServerDelegate {
    let date: String?

    init(date: String?) { self.date = date }

    func serverRequest(_ connection: HTTP2ServerConnection, _ stream: HTTP2StreamID, _ request: HTTP2Request) {
      #expect(request.method == "GET" && request.path == "/" && request.body.isEmpty)
      #expect(request.text(of: "authorization") == nil)
      var fields = HeaderList()
      if let date { fields.append(name: "date", value: date) }
      connection.respond(stream, status: 405, fields: fields)
    }
    func serverStreamClosed(
      _ connection: HTTP2ServerConnection, _ stream: HTTP2StreamID, code: UInt32, answered: Bool
    ) {}
    func serverSettingsAcknowledged(_ connection: HTTP2ServerConnection) {}
    func serverPingAcknowledged(_ connection: HTTP2ServerConnection) {}
    func serverGoAway(_ connection: HTTP2ServerConnection, lastStream: Int32, code: UInt32, debugData: [UInt8]) {}
    func serverClosed(_ connection: HTTP2ServerConnection, _ error: TransportError?) {}
  }
}

struct ConnectionCheckTests {
  private let files: TemporaryFiles
  private let keyFile: String

  init() throws {
    files = try TemporaryFiles()
    keyFile = try files.write("key.p8", SigningKey.generate().privatePEM())
  }

  private func settings(brokers: String, apps: [AppSettings]) -> Settings {
    var settings = Settings()
    settings.kafka.brokers = [brokers]
    settings.delivery.connectTimeout = .seconds(120)
    settings.apps = apps
    return settings
  }

  private func app(_ name: String, at port: UInt16, caFile: String?) -> AppSettings {
    var app = AppSettings()
    app.name = name
    app.bundleID = "com.example.\(name)"
    app.token = TokenSettings(keyFile: keyFile, keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
    app.server = ServerSettings(host: "localhost", port: Int(port), caFile: caFile)
    return app
  }

  private func cluster(without missing: String? = nil) throws -> MockCluster {
    let cluster = try MockCluster()
    for topic in [
      "push.requests", "push.deferred", "push.results", "push.invalid-tokens", "push.dead-letters",
    ] where topic != missing {
      try cluster.createTopic(topic, partitions: topic == "push.requests" ? 3 : 1)
    }
    return cluster
  }

  @Test
  func whatIsThereIsFound() async throws {
    let cluster = try cluster()
    let server = try Server()
    let apps = ["a", "b"].map { app($0, at: server.server.endpoint.port, caFile: server.authorityFile) }
    let found = await ConnectionCheck.findings(
      of: settings(brokers: cluster.bootstrapServers, apps: apps), within: .seconds(240))
    #expect(found.allSatisfy { $0.isGood }, "\(found)")
    let kinds: [ConnectionCheck.Finding.Kind] =
      [.brokers] + Array(repeating: .topic, count: 5) + Array(repeating: .permission, count: 4) + [.apns, .clock]
    try #require(found.map(\.kind) == kinds)
    #expect(found[0].name == cluster.bootstrapServers)
    #expect(found[1].name == "push.requests" && found[1].message == "3 partitions, 1 replica")
    #expect(found[2].name == "push.deferred" && found[2].message == "1 partition, 1 replica")
    // The embedded brokers tell nothing of settings; that is no fault.
    #expect(found[6].state == .unknown && found[6].message.contains("no controller"))
    #expect(found[7].name == "group martlet" && found[7].message == "nothing is committed yet")
    #expect(found[8].name == "reading push.deferred" && found[8].state == .good)
    #expect(found[9].name == "reading push.requests" && found[9].state == .good)
    #expect(found.last?.state == .unknown && found.last?.message.contains("no date") == true)
    let last = try #require(found.last { $0.kind == .apns })
    // Apps that share the server and the certificate share the handshake.
    #expect(last.apps == ["a", "b"] && server.server.acceptedConnections == 1)
    #expect(last.message.hasPrefix("TLS and HTTP/2, "))
    #expect(server.server.requests == 1)
    #expect(waitUntil { server.server.connections == 0 })
  }

  @Test
  func aMissingTopicIsNamedAndNotCreated() async throws {
    let cluster = try cluster(without: "push.results")
    for _ in 1...2 {
      let found = await ConnectionCheck.findings(
        of: settings(brokers: cluster.bootstrapServers, apps: []), within: .seconds(240))
      let bad = found.filter { !$0.isGood }
      #expect(bad.map(\.name) == ["push.results"], "\(found)")
      #expect(bad.first?.message.contains("no such topic") == true)
    }
  }

  @Test
  func aTopicThatMayNotBeSeenIsNamed() async throws {
    let cluster = try cluster()
    cluster.setError(.topicAuthorizationFailed, topic: "push.requests")
    let found = await ConnectionCheck.findings(
      of: settings(brokers: cluster.bootstrapServers, apps: []), within: .seconds(240))
    #expect(found.filter { !$0.isGood }.map(\.name) == ["push.requests"], "\(found)")
  }

  @Test
  func whatMayNotBeReadIsNamed() async throws {
    let cluster = try cluster()
    cluster.pushErrors(Array(repeating: .topicAuthorizationFailed, count: 20), for: .fetch)
    cluster.pushErrors(Array(repeating: .groupAuthorizationFailed, count: 20), for: .offsetFetch)
    let found = await ConnectionCheck.findings(
      of: settings(brokers: cluster.bootstrapServers, apps: []), within: .seconds(240))
    let bad = found.filter { $0.state == .bad }
    #expect(bad.contains { $0.name == "group martlet" }, "\(found)")
    #expect(bad.contains { $0.name.hasPrefix("reading push.") }, "\(found)")
    #expect(bad.allSatisfy { $0.kind == .permission }, "\(found)")
  }

  @Test
  func aTopicIsJudgedByItsUse() {
    let plans = TopicPlan.all(of: Settings())
    func state(_ role: TopicRole, _ settings: [String: String]) throws -> ConnectionCheck.Finding {
      let plan = try #require(plans.first { $0.role == role })
      let facts = TopicDesk.State.exists(TopicFacts(partitions: 4, settings: settings))
      return ConnectionCheck.finding(plan, facts, longestDeferral: .seconds(3600))
    }
    #expect(throws: Never.self) {
      #expect(try state(.invalidTokens, ["cleanup.policy": "compact"]).state == .good)
      let deleted = try state(.invalidTokens, ["cleanup.policy": "delete"])
      #expect(deleted.state == .warning && deleted.message.contains("cleanup.policy is delete, should be compact"))
      #expect(try state(.requests, ["cleanup.policy": "compact"]).state == .bad)
    }
  }

  @Test
  func theClockIsComparedWithTheServers() async throws {
    let cluster = try cluster()
    let server = try Server(date: "Sat, 31 Jan 2026 12:00:00 GMT")
    let apps = [app("a", at: server.server.endpoint.port, caFile: server.authorityFile)]
    let found = await ConnectionCheck.findings(
      of: settings(brokers: cluster.bootstrapServers, apps: apps), within: .seconds(240))
    let clock = try #require(found.last)
    #expect(clock.kind == .clock && clock.name == "localhost:\(server.server.endpoint.port)")
    // This machine's clock shows another time than that.
    #expect(clock.state == .bad && clock.message.contains("hour off"))
  }

  @Test(
    arguments: [
      (0, .good), (4, .good), (-4, .good), (5, .warning), (-1799, .warning), (1800, .bad), (-3600, .bad),
    ] as [(Int64, ConnectionCheck.Finding.State)])
  func howFarAClockMayBeOff(_ seconds: Int64, _ state: ConnectionCheck.Finding.State) {
    let date = UnixTime(seconds: 1_769_860_800)
    let finding = ConnectionCheck.clock(
      at: "x:1", server: date, own: UnixTime(milliseconds: date.milliseconds + seconds * 1000 + 400))
    #expect(finding.state == state, "\(finding)")
    if state != .good { #expect(finding.message.contains(seconds > 0 ? "ahead" : "behind")) }
  }

  @Test
  func brokersThatAreNotThereAreToldWithTheCause() async throws {
    // Bound and not listening: nobody else gets the port, and nobody answers.
    let port = try ClosedPort()
    let clock = ContinuousClock()
    let start = clock.now
    let found = await ConnectionCheck.findings(
      of: settings(brokers: "127.0.0.1:\(port.number)", apps: []), within: .seconds(5))
    #expect(found.map(\.kind) == [.brokers])
    #expect(found.first?.isGood == false)
    #expect(found.first?.message.contains("refused") == true, "\(found)")
    #expect(clock.now - start < .seconds(200))
  }

  @Test
  func aServerThatIsNotThereIsToldWithItsApps() async throws {
    let cluster = try cluster()
    let port = try ClosedPort()
    let found = await ConnectionCheck.findings(
      of: settings(brokers: cluster.bootstrapServers, apps: [app("a", at: port.number, caFile: nil)]),
      within: .seconds(240))
    let last = try #require(found.last)
    #expect(last.kind == .apns && !last.isGood && last.apps == ["a"])
    #expect(last.name == "localhost:\(port.number)")
    #expect(last.message.contains("refused"), "\(last)")
    #expect(found.dropLast().allSatisfy { $0.isGood })
  }

  @Test
  func aServerWithoutHTTP2OrWithAnotherNameIsRefused() async throws {
    let cluster = try cluster()
    let old = try Server(protocols: ["http/1.1"])
    let other = try Server(names: ["elsewhere.example"])
    let found = await ConnectionCheck.findings(
      of: settings(
        brokers: cluster.bootstrapServers,
        apps: [
          app("old", at: old.server.endpoint.port, caFile: old.authorityFile),
          app("other", at: other.server.endpoint.port, caFile: other.authorityFile),
          app("stranger", at: other.server.endpoint.port, caFile: old.authorityFile),
        ]), within: .seconds(240))
    let apns = found.filter { $0.kind == .apns }
    #expect(apns.map(\.apps) == [["old"], ["other"], ["stranger"]])
    #expect(apns.allSatisfy { !$0.isGood }, "\(apns)")
    #expect(apns.first?.message.contains("ALPN") == true, "\(apns)")
  }

  @Test
  func aSilentServerCostsNoMoreThanTheLimit() async throws {
    let cluster = try cluster()
    let server = try ClosedPort(listening: true)
    let clock = ContinuousClock()
    let start = clock.now
    let found = await ConnectionCheck.findings(
      of: settings(brokers: cluster.bootstrapServers, apps: [app("a", at: server.number, caFile: nil)]),
      within: .seconds(1))
    #expect(found.last?.kind == .apns && found.last?.isGood == false, "\(found)")
    #expect(clock.now - start < .seconds(200))
  }
}
