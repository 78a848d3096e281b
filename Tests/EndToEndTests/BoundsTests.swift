import Delivery
import MockAPNs
import Service
import TestSupport
import Testing
import Wire

/// What may not grow, and who may not suffer.
@Suite(.timeLimit(.minutes(3)))
struct BoundsTests {
  /// The two apps share the one partition. The sick one's requests go out of the way, to the deferred topic, and come
  /// back when it can be served.
  @Test func anAppThatCannotBeReachedSlowsNoOther() async throws {
    let plan = Plan(
      [Plan.Server(name: "healthy"), Plan.Server(name: "sick", isDown: true)], requestPartitions: 1
    ) { settings in
      settings.delivery.maxInFlightPerApp = 20
    }
    try await World.with(plan) { world in
      let service = try world.start()
      func requests(_ round: Int) -> [PushRequest] {
        (0..<200).map { index in
          let app = index % 2 == 0 ? "sick" : "healthy"
          return PushRequest("\(app)-\(round)-\(index)-", app: app, key: "key-\(index)")
        }
      }
      for round in 0..<3 {
        try await world.writer.send(requests(round))
        let results = try await world.results("healthy-", count: 100 * (round + 1))
        #expect(results.count == 100 * (round + 1) && results.allSatisfy { $0.status == "delivered" })
      }
      #expect(await world.books.read(World.topics.results).count == 300, "the sick app has no result yet")
      #expect(await world.books.read(World.topics.deferred).count > 0)
      func faults() -> [Bool] {
        service.service.health.snapshot(at: ServiceClock.now().instant).apps.map { $0.fault != nil }
      }
      #expect(await eventually { faults() == [false, true] })

      let server = try world.raise("sick")
      defer { server.stop() }
      let results = try await world.results("sick-", count: 300)
      #expect(results.count == 300 && results.allSatisfy { $0.status == "delivered" })
      #expect(await eventually { faults() == [false, false] })
      #expect(results.allSatisfy { $0.fields["source.topic"] == "push.requests" && $0.key?.hasPrefix("key-") ?? false })
      #expect(server.journal.counts.identifiersAcceptedRepeatedly == 0)
    }
  }

  /// Batches count by their tokens; the last one that is taken up may begin below the cap and end beyond it.
  @Test func noMoreIsInFlightThanAllowed() async throws {
    let slow = Script([Script.Rule(.delay(.milliseconds(60), upTo: .milliseconds(60)))])
    var plan = Plan([Plan.Server(name: "app", script: slow, streams: (1000, 1000))]) { settings in
      settings.delivery.maxInFlight = 50
      settings.delivery.maxInFlightPerApp = 50
      settings.delivery.maxConnectionsPerApp = 1
    }
    let apps = ["app", "shop", "news", "bank"]
    plan.apps = apps.map { Plan.App(name: $0, server: "app") }
    try await World.with(plan) { world in
      let service = try world.start()
      let bound = 50 + 19
      var requests: [PushRequest] = []
      for batch in 0..<20 {
        let tokens = (0..<20).map { "\"00dd\(1000 + $0)\"" }.joined(separator: ",")
        let text = #"{"id":"batch-\#(batch)-","app":"\#(apps[batch % 4])","tokens":[\#(tokens)],"payload":{"aps":{}}}"#
        requests.append(PushRequest(value: Array(text.utf8)))
      }
      requests += (0..<500).map { PushRequest("single-\($0)-", app: apps[$0 % 4]) }
      try await world.writer.send(requests)
      var most = 0
      let isDone = await eventually {
        let snapshot = service.snapshot
        most = max(most, apps.indices.reduce(0) { $0 + snapshot.value(.inFlight, app: AppIndex(Int32($1))) })
        return await world.books.read(World.topics.results).count >= 900
      }
      #expect(isDone)
      let results = try await world.results(count: 900)
      #expect(results.count == 900 && results.allSatisfy { $0.status == "delivered" })
      #expect(most > 0 && most <= bound)
      let counts = try world.journal().counts
      #expect(counts.mostOpenStreams <= bound)
      #expect(counts.mostOpenStreams > 5, "the room that there is gets used")
    }
  }

  @Test func aFullQueueOfTheProducerHoldsBackAndLosesNothing() async throws {
    let plan = Plan { settings in
      settings.kafka.producerProperties = [KafkaProperty(name: "queue.buffering.max.messages", value: .text("10"))]
    }
    try await World.with(plan) { world in
      let service = try world.start()
      try await world.writer.send((0..<500).map { PushRequest("full-\($0)-", token: $0 % 5 == 0 ? "dead" : "00aa") })
      let results = try await world.results("full-", count: 500)
      #expect(results.count == 500 && results.allSatisfy { $0.status == "delivered" })
      #expect(service.snapshot.value(.publicationFailures(.results)) == 0)
      #expect(try world.journal().counts.requests == 500)
    }
  }
}
