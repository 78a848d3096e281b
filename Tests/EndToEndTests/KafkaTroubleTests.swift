import Delivery
import Kafka
import MockAPNs
import Service
import TestSupport
import Testing
import Wire

/// Brokers that fail, and replicas that come and go.
@Suite(.timeLimit(.minutes(3)))
struct KafkaTroubleTests {
  private static func slow(_ time: Duration) -> [Plan.Server] {
    [Plan.Server(name: "app", script: Script([Script.Rule(.delay(time, upTo: time))]), streams: (1000, 1000))]
  }

  /// APNs answers while no broker is there; the results wait until one is.
  @Test func aBrokerThatComesBackFindsAllResults() async throws {
    try await World.with(Plan(Self.slow(.milliseconds(500)))) { world in
      let service = try world.start()
      try await world.writer.send((0..<300).map { PushRequest("broker-\($0)-") })
      let journal = try world.journal()
      #expect(await eventually { journal.requests == 300 })
      try world.cluster.setBroker(1, isUp: false)
      #expect(await eventually { journal.counts.accepted == 300 && service.snapshot.value(.kafkaErrors) > 0 })
      try world.cluster.setBroker(1, isUp: true)
      let results = try await world.results("broker-", count: 300)
      #expect(results.allSatisfy { $0.status == "delivered" })
      #expect(journal.requests == 300, "none is sent again")
      try await world.writer.send([PushRequest("later-")])
      _ = try await world.results("later-", count: 1)
    }
  }

  /// Some errors the library deals with; with the others the records come back and are produced again.
  @Test func resultsThatAreRefusedAreProducedAgain() async throws {
    try await World.with(Plan(Self.slow(.seconds(4)))) { world in
      let service = try world.start()
      try await world.writer.send((0..<50).map { PushRequest("refused-\($0)-") })
      // The requests are stored, and APNs has answered none of them: the next records that are produced are results.
      let notLeader = KafkaError.Code(rawValue: 6)
      world.cluster.pushErrors(
        [.topicAuthorizationFailed, notLeader, .topicAuthorizationFailed, .topicAuthorizationFailed], for: .produce)
      let journal = try world.journal()
      let results = try await world.results("refused-", count: 50)
      #expect(results.count == 50 && results.allSatisfy { $0.status == "delivered" })
      #expect(service.snapshot.value(.publicationFailures(.results)) > 0)
      #expect(journal.requests == 50, "none is sent again")
    }
  }

  /// A second replica joins under load, and the first one leaves: no request is without a result.
  @Test(arguments: ["range", "cooperative-sticky"])
  func replicasShareThePartitions(strategy: String) async throws {
    // Cooperative assignors count the partitions of all topics together: a replica that comes may get those of the
    // deferred topic first, and a few of the others.
    let partitions = 8
    var plan = Plan(Self.slow(.milliseconds(20))) { settings in
      settings.kafka.consumerProperties.append(
        KafkaProperty(name: "partition.assignment.strategy", value: .text(strategy)))
    }
    plan.requestPartitions = partitions
    try await World.with(plan) { world in
      var sent = 0
      /// Keeps requests coming, a few ahead of the results, until `condition` holds.
      func run(until condition: () -> Bool) async throws {
        let isMet = try await eventually {
          let answered = await Set(world.books.read(World.topics.results).map(\.name)).count
          if sent - answered < 200 {
            try await world.writer.send((sent..<sent + 50).map { PushRequest("group-\($0)-") })
            sent += 50
          }
          return condition()
        }
        try #require(isMet)
      }
      let first = try world.start()
      try await run { first.snapshot.value(.recordsConsumed) >= 200 }
      let second = try world.start()
      try await run { second.snapshot.value(.recordsConsumed) >= 200 }
      try await run { first.share > 0 && second.share > 0 && first.share + second.share == partitions }
      let before = second.snapshot.value(.recordsConsumed)
      async let end = world.drain(first)
      try await run { second.share == partitions && second.snapshot.value(.recordsConsumed) >= before + 200 }
      guard case .drained(unfinished: 0) = await end else {
        Issue.record("the first service did not drain")
        return
      }
      let results = try await world.results("group-", count: sent)
      #expect(results.allSatisfy { $0.status == "delivered" })
      // Commits that fall into a rebalance may be refused: what was settled since is sent again, as the same one.
      for (_, repeated) in Dictionary(grouping: results, by: \.name) where repeated.count > 1 {
        #expect(Set(repeated.map { $0.fields["apns_id"] }).count == 1)
      }
      let counts = try world.journal().counts
      #expect(counts.identifiers == sent)
    }
  }
}

extension RunningService {
  /// How many partitions with requests it has.
  fileprivate var share: Int { snapshot.partitions.count { $0.topic == World.topics.requests[0] } }
}
