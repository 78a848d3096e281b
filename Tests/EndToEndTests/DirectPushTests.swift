import MockAPNs
import Service
import TestSupport
import Testing
import Transport
import Wire

/// Pushes that a command sends by itself, over a connection that breaks.
@Suite struct DirectPushTests {
  private let files: TemporaryFiles

  init() throws { files = try TemporaryFiles() }

  /// Statuses of so many pushes, with one attempt each.
  private func statuses(of count: Int, to server: MockServer) async throws -> [DirectResult.Status] {
    var app = AppSettings()
    app.name = "shop"
    app.bundleID = "com.example.shop"
    app.token = TokenSettings(
      keyFile: try files.write("key.p8", try SigningKey.generate().privatePEM()), keyID: "ABC123DEFG",
      teamID: "DEF123GHIJ")
    app.server = ServerSettings(
      host: "localhost", port: Int(server.port), caFile: try files.write("ca.pem", server.authorityPEM))
    let direct = try DirectPush(app, delivery: DeliverySettings(), attempts: 1, trace: { _ in })
    let tokens = (0..<count).map { "\"" + String(repeating: "0", count: 62) + "\(10 + $0)\"" }
    let value = #"{"id":"d","app":"shop","tokens":[\#(tokens.joined(separator: ","))],"payload":{"aps":{}}}"#
    #expect(direct.fault(of: Array(value.utf8)) == nil)
    var statuses: [DirectResult.Status] = []
    await direct.send(Array(value.utf8)) { statuses.append($0.status) }
    await direct.close()
    return statuses
  }

  private func server(_ rules: [Script.Rule]) throws -> MockServer {
    var configuration = MockServer.Configuration()
    configuration.acceptsAnyKey = true
    configuration.script = Script(rules)
    return try MockServer.start(configuration)
  }

  @Test(.timeLimit(.minutes(1)))
  func whatALostConnectionHasNotTakenGoesOutOnTheNext() async throws {
    // Until one is answered there is one stream: the others wait.
    let server = try server([Script.Rule(Script.Condition(connection: 1), .abort)])
    defer { server.stop() }
    let statuses = try await statuses(of: 20, to: server)
    #expect(statuses.count { $0 == .failed } == 1 && statuses.count { $0 == .delivered } == 19)
    #expect(server.journal.counts.connections == 2)
  }

  @Test(.timeLimit(.minutes(1)))
  func aServerThatTakesNothingIsNotTriedForEver() async throws {
    let server = try server([Script.Rule(Script.Condition(), .abort)])
    defer { server.stop() }
    #expect(try await statuses(of: 5, to: server) == Array(repeating: .failed, count: 5))
    #expect(server.journal.counts.connections == 5)
  }
}
