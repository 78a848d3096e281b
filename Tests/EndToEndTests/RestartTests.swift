import Delivery
import Glibc
import Kafka
import MockAPNs
import Service
import TestSupport
import Testing
import Wire

/// The end of a service, in order or not, and what the next one makes of it.
@Suite(.timeLimit(.minutes(3)))
struct RestartTests {
  @Test func aDrainFinishesWhatIsOpenAndTheNextServiceSendsNoneOfIt() async throws {
    let slow = Script([Script.Rule(.delay(.seconds(1), upTo: .seconds(1)))])
    let plan = Plan([Plan.Server(name: "app", script: slow, streams: (1000, 1000))])
    try await World.with(plan) { world in
      let first = try world.start()
      try await world.writer.send((0..<100).map { PushRequest("drain-\($0)-") })
      let journal = try world.journal()
      #expect(await eventually { journal.requests == 100 })
      let end = await world.drain(first)
      guard case .drained(unfinished: 0) = end else { throw NotDrained(end: end) }
      let results = try await world.results("drain-", count: 100)
      #expect(results.count == 100 && results.allSatisfy { $0.status == "delivered" })
      #expect(try await world.committed(4).reduce(0) { $0 + ($1.offset ?? 0) } == 100)

      _ = try world.start()
      try await world.writer.send([PushRequest("after-")])
      _ = try await world.results("after-", count: 1)
      #expect(journal.requests == 101)
      #expect(await world.books.read(World.topics.results).count == 101)
    }
  }

  struct NotDrained: Error {
    var end: Service.End
  }

  /// Five requests in fifty are never answered; the commit says which of the others are settled beyond them.
  @Test func afterAKillOnlyWhatIsUnsettledIsSentAgain() async throws {
    let script = Script([Script.Rule(Script.Condition(tokenPrefix: "51", times: 5), .silence)])
    let plan = Plan([Plan.Server(name: "app", script: script, streams: (1000, 1000))], requestPartitions: 1)
    try await World.with(plan) { world in
      try world.files.write("martlet.json5", configuration(world.settings))
      let program = try Program(["run", "--config", world.files.path(of: "martlet.json5")])
      var committed: [CommittedOffset] = []
      let isCommitted: Bool
      do {
        try await world.writer.send(
          (0..<50).map { PushRequest("kill-\($0)-", token: $0 % 10 == 3 ? "51aa" : "00aa", partition: 0) })
        isCommitted = try await eventually {
          committed = try await world.committed(1)
          let settled = LedgerCodec.decode(committed[0].metadata, commitPoint: committed[0].offset ?? 0).records
          return settled.reduce(0) { $0 + $1.count } == 42
        }
      } catch {
        _ = program.end(SIGKILL)
        throw error
      }
      #expect(program.end(SIGKILL) == -SIGKILL)
      #expect(isCommitted)
      #expect(committed[0].offset == 3)
      let journal = try world.journal()
      #expect(journal.requests == 50)

      _ = try world.start()
      let results = try await world.results("kill-", count: 50)
      #expect(results.count == 50 && results.allSatisfy { $0.status == "delivered" })
      let counts = journal.counts
      #expect(counts.requests == 55)
      #expect(counts.identifiers == 50 && counts.repeatedIdentifiers == 5)
      #expect(counts.identifiersAcceptedRepeatedly == 0)
    }
  }

  /// What the program is told of the world's settings.
  private func configuration(_ settings: Settings) -> String {
    let app = settings.apps[0]
    let properties = settings.kafka.consumerProperties.map { property in
      guard case .text(let text) = property.value else { return "" }
      return "\"\(property.name)\": \"\(text)\""
    }
    return """
      {
        kafka: { brokers: "\(settings.kafka.brokers[0])", group: "\(settings.kafka.group)",
                 consumerProperties: { \(properties.joined(separator: ", ")) } },
        apps: { "\(app.name)": {
          bundleId: "\(app.bundleID)",
          token: { keyFile: "\(app.token?.keyFile ?? "")", keyId: "\(app.token?.keyID ?? "")",
                   teamId: "\(app.token?.teamID ?? "")" },
          server: { host: "localhost", port: \(app.server?.port ?? 0), caFile: "\(app.server?.caFile ?? "")" },
        } },
        delivery: { lanes: 1, commitInterval: "200ms" },
        http: { listen: "127.0.0.1:0" },
      }
      """
  }
}
