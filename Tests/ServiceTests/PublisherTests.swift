import Delivery
import Kafka
import TestSupport
import Testing
import Wire

@testable import Service

/// The publisher and its producers against brokers that refuse.
@Suite(.timeLimit(.minutes(2)))
struct PublisherTests {
  /// A publisher on a clock of its own, and all that it has said.
  private final class Bench {
    final class Producers {
      weak var last: Producer?
      var count = 0
    }

    let cluster: MockCluster
    let producers: Producers
    var publisher: Publisher
    var outcomes: [UInt64: [String]] = [:]
    var changes: [LastingProducer.Change] = []
    var outputs: [OutputHealth.Change] = []

    init(_ settings: [(String, String)] = []) throws {
      let cluster = try MockCluster()
      for topic in OutputTopic.allCases { try cluster.createTopic(TopicSettings().name(of: topic), partitions: 1) }
      self.cluster = cluster
      let list = Producers()
      producers = list
      publisher = try Publisher(topics: TopicSettings()) { (isOneByOne) throws(KafkaError) in
        var properties = try KafkaProperties(brokers: cluster.bootstrapServers)
        for (name, value) in settings { try properties.set(name, to: value) }
        let producer = try Producer(properties: properties, isOneByOne: isOneByOne, log: { _ in })
        list.last = producer
        list.count += 1
        return producer
      }
    }

    private func now() -> Instant { ServiceClock.now().instant }

    func publish(_ slots: Range<UInt32>, size: Int = 10) {
      var outbox = Outbox()
      for slot in slots {
        let start = outbox.arena.count
        outbox.arena.append(contentsOf: [UInt8](repeating: UInt8(ascii: "x"), count: size))
        outbox.items.append(
          Publication(
            topic: .results, slot: PushSlot(index: slot, generation: 1), key: nil,
            value: ByteRange(start, outbox.arena.count), requestStorage: [], headers: [], extraHeaders: []))
      }
      publisher.publish(&outbox, now: now())
    }

    func run(until condition: (Bench) -> Bool) -> Bool {
      waitUntil(within: .seconds(60)) {
        let (receipts, _) = publisher.takeReceipts(limit: 1000, now: now())
        for receipt in receipts { outcomes[UInt64(receipt.slot.index), default: []].append(word(receipt.outcome)) }
        changes += publisher.advance(to: now())
        outputs += publisher.takeOutputChanges(now: now())
        return condition(self)
      }
    }

    private func word(_ outcome: Receipt.Outcome) -> String {
      switch outcome {
      case .acknowledged: "acknowledged"
      case .refused: "refused"
      case .undelivered: "undelivered"
      }
    }

    func last(_ slot: UInt64) -> String { outcomes[slot, default: []].last ?? "nothing" }
  }

  @Test func whatAnotherRecordsFaultHasRefusedIsStoredAlone() throws {
    let bench = try Bench([("linger.ms", "200")])
    bench.cluster.pushErrors([.messageTooLarge], for: .produce)
    bench.publish(0..<5)
    #expect(bench.run { $0.outcomes.count == 5 })
    // The whole batch was refused, so nobody knows which record was meant.
    #expect((0..<5).allSatisfy { bench.last($0) == "undelivered" })
    bench.cluster.pushErrors([.messageTooLarge], for: .produce)
    bench.publish(0..<5)
    #expect(bench.run { $0.outcomes.values.allSatisfy { $0.count == 2 } })
    #expect((0..<5).count { bench.last($0) == "refused" } == 1)
    #expect((0..<5).count { bench.last($0) == "acknowledged" } == 4)
    #expect(bench.producers.count == 2)
  }

  @Test func aRecordThatTheClientItselfRefusesIsNotTriedAgain() throws {
    let bench = try Bench([("message.max.bytes", "2000")])
    bench.publish(0..<1, size: 3000)
    #expect(bench.run { !$0.outcomes.isEmpty })
    #expect(bench.last(0) == "refused")
  }

  @Test func aTopicThatRefusesIsTold() throws {
    let bench = try Bench([("linger.ms", "200")])
    bench.cluster.pushErrors([.topicAuthorizationFailed], for: .produce)
    bench.publish(0..<2)
    #expect(bench.run { $0.outcomes.count == 2 && $0.outputs.count == 1 })
    #expect(bench.last(0) == "undelivered")
    guard case .refused(let text) = bench.outputs.first?.fault else {
      Issue.record("\(bench.outputs)")
      return
    }
    #expect(text.contains("TOPIC_AUTHORIZATION_FAILED"))
    // The library refuses it too, until it has asked the brokers again.
    let isAccepted = bench.run { bench in
      if bench.publisher.isIdle, bench.last(0) != "acknowledged" { bench.publish(0..<1) }
      return bench.outputs.count == 2
    }
    #expect(isAccepted)
    #expect(bench.outputs.last?.fault == nil, "\(bench.outcomes)")
  }

  @Test func aFailedProducerIsReplacedAndNothingIsLost() throws {
    let bench = try Bench()
    for round in 1...3 {
      try bench.cluster.setBroker(1, isUp: false)
      bench.publish(0..<100)
      bench.producers.last?.provokeFatalError()
      // What comes while there is no producer waits.
      #expect(bench.run { $0.changes.count == 2 * round - 1 })
      bench.publish(100..<200)
      let isBlocked = bench.publisher.isBlocked
      #expect(isBlocked)
      try bench.cluster.setBroker(1, isUp: true)
      #expect(bench.run { $0.changes.count == 2 * round && $0.publisher.isIdle })
      #expect((0..<100).allSatisfy { bench.last($0) == "undelivered" })
      #expect((100..<200).allSatisfy { bench.last($0) == "acknowledged" })
      #expect(bench.producers.count == round + 1)
    }
    guard case .failed(let error) = bench.changes.first, case .replaced = bench.changes.last else {
      Issue.record("\(bench.changes)")
      return
    }
    #expect(error.isFatal)
  }
}
