import Delivery
import Testing
import Wire

@testable import Kafka
@testable import Service

struct OutputHealthTests {
  private static func at(_ seconds: Int64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }

  private static func error(_ code: KafkaError.Code) -> KafkaError {
    KafkaError(origin: .broker, code: code, name: "X", text: "no", isRetriable: false, isFatal: false)
  }

  @Test func aRefusedTopicIsToldOnceAndAgainWhenItTakesRecords() {
    var health = OutputHealth()
    for _ in 0..<3 { health.produced(.results, now: Self.at(0)) }
    for _ in 0..<3 { health.failed(.results, Self.error(.topicAuthorizationFailed)) }
    #expect(health.takeChanges(now: Self.at(1)) == [.init(topic: .results, fault: .refused("no (X)"))])
    health.produced(.results, now: Self.at(100))
    #expect(health.takeChanges(now: Self.at(500)) == [], "it is known to take nothing")
    health.acknowledged(.results, now: Self.at(501))
    #expect(health.takeChanges(now: Self.at(501)) == [.init(topic: .results, fault: nil)])
    #expect(health.takeChanges(now: Self.at(600)) == [])
  }

  @Test func aTopicThatAcknowledgesNothingIsStalled() {
    var health = OutputHealth()
    health.produced(.deferred, now: Self.at(0))
    health.produced(.deferred, now: Self.at(10))
    #expect(health.takeChanges(now: Self.at(14)) == [])
    #expect(health.takeChanges(now: Self.at(15)) == [.init(topic: .deferred, fault: .stalled(.seconds(15)))])
    // What fails in the end does not mean that it moves.
    health.failed(.deferred, Self.error(.messageTimedOut))
    #expect(health.takeChanges(now: Self.at(20)) == [])
    health.acknowledged(.deferred, now: Self.at(30))
    #expect(health.takeChanges(now: Self.at(30)) == [.init(topic: .deferred, fault: nil)])
  }

  @Test func whatFailsAndIsProducedAgainIsStalledToo() {
    var health = OutputHealth()
    for second in stride(from: Int64(0), through: 14, by: 2) {
      health.produced(.results, now: Self.at(second))
      health.failed(.results, Self.error(.messageTimedOut))
    }
    #expect(health.takeChanges(now: Self.at(14)) == [])
    #expect(health.takeChanges(now: Self.at(16)) == [.init(topic: .results, fault: .stalled(.seconds(16)))])
  }

  @Test func whatIsGivenUpIsNotWaitedFor() {
    var health = OutputHealth()
    for second in Int64(0)..<3 {
      health.produced(.deadLetters, now: Self.at(second))
      health.failed(.deadLetters, Self.error(.messageTooLarge))
    }
    health.gaveUp(.deadLetters)
    #expect(health.takeChanges(now: Self.at(100)) == [])
    // With another one on its way it is stalled all the same.
    health.produced(.deadLetters, now: Self.at(100))
    health.produced(.deadLetters, now: Self.at(101))
    health.failed(.deadLetters, Self.error(.messageTooLarge))
    health.gaveUp(.deadLetters)
    #expect(health.takeChanges(now: Self.at(115)) == [.init(topic: .deadLetters, fault: .stalled(.seconds(15)))])
    // And when that is given up as well, nothing waits.
    health.failed(.deadLetters, Self.error(.messageTooLarge))
    health.gaveUp(.deadLetters)
    #expect(health.takeChanges(now: Self.at(116)) == [.init(topic: .deadLetters, fault: nil)])
  }

  @Test func anIdleTopicIsNotStalled() {
    var health = OutputHealth()
    health.produced(.results, now: Self.at(0))
    health.acknowledged(.results, now: Self.at(1))
    #expect(health.takeChanges(now: Self.at(1000)) == [])
    health.produced(.results, now: Self.at(1000))
    #expect(health.takeChanges(now: Self.at(1001)) == [])
  }
}
