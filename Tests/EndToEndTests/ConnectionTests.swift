import MockAPNs
import TestSupport
import Testing
import Wire

extension OneServiceTests {
  /// What APNs does with connections and streams, and what must come of it.
  @Suite struct ConnectionTests {
    /// Sends so many requests to the app, and checks that each is delivered, with one result.
    private func deliver(
      _ app: String, _ count: Int, token: (Int) -> String = { _ in Planted.token }
    ) async throws -> [Entry] {
      let world = try OneServiceTests.world()
      try await world.writer.send((0..<count).map { PushRequest("\(app)-\($0)-", app: app, token: token($0)) })
      let results = try await world.results("\(app)-", count: count)
      #expect(results.count == count)
      #expect(results.allSatisfy { $0.status == "delivered" })
      return results
    }

    @Test(arguments: [("narrow", 7), ("wide", 1000)])
    func theStreamLimitIsObeyed(app: String, limit: Int) async throws {
      _ = try await deliver(app, 150)
      let journal = try OneServiceTests.world().journal(app)
      let counts = journal.counts
      #expect(counts.resets == 0 && counts.requests == 150)
      #expect(counts.mostOpenStreams <= limit)
      #expect(counts.mostOpenStreams >= 7)
      // A connection's second request waits for the answer to its first: before, one stream is all that is allowed.
      let delay: Int64 = app == "wide" ? 300 : 20
      for (_, requests) in Dictionary(grouping: journal.seen, by: \.connection) where requests.count > 1 {
        let times = requests.map(\.time.milliseconds).sorted()
        #expect(times[1] - times[0] >= delay - 2)
      }
    }

    @Test func a503IsTriedAgain() async throws {
      let results = try await deliver("flaky", 1)
      #expect(results.map { $0.fields["attempts"] } == ["2"])
      let seen = try OneServiceTests.world().journal("flaky").seen
      #expect(seen.map(\.status) == [503, 200])
      #expect(Set(seen.map(\.apnsID)).count == 1)
    }

    /// The socket stays open; what was not processed goes out on another connection, and counts as not sent.
    @Test(arguments: ["goaway-newest", "goaway-previous"])
    func goAwayLosesNothing(app: String) async throws {
      let results = try await deliver(app, 200)
      #expect(results.allSatisfy { $0.fields["attempts"] == "1" })
      let counts = try OneServiceTests.world().journal(app).counts
      #expect(counts.goAwaysSent == 1)
      #expect(counts.connections >= 2)
      #expect(counts.accepted == 200)
      #expect(counts.identifiersAcceptedRepeatedly == 0)
    }

    @Test func abortedConnectionsLoseNothing() async throws {
      let results = try await deliver("aborting", 200)
      let counts = try OneServiceTests.world().journal("aborting").counts
      #expect(counts.connections >= 3)
      #expect(counts.requests > 200)
      #expect(counts.identifiers == 200, "what is sent again has the same apns-id")
      #expect(counts.repeatedIdentifiers > 0)
      #expect(results.contains { $0.fields["attempts"] != "1" })
    }

    @Test func aRefusedStreamIsNoAttempt() async throws {
      let results = try await deliver("refusing", 100)
      #expect(results.allSatisfy { $0.fields["attempts"] == "1" })
      let counts = try OneServiceTests.world().journal("refusing").counts
      #expect(counts.resets >= 33)
      #expect(counts.accepted == 100 && counts.identifiersAcceptedRepeatedly == 0)
    }

    @Test func silenceEndsInAnotherAttempt() async throws {
      let results = try await deliver("silent", 20) { $0 % 6 == 1 ? "51aa" : "00aa" }
      #expect(results.reduce(0) { $0 + (Int($1.fields["attempts"] ?? "") ?? 0) } == 23)
      let counts = try OneServiceTests.world().journal("silent").counts
      #expect(counts.silences == 3 && counts.requests == 23 && counts.identifiers == 20)
    }
  }
}
