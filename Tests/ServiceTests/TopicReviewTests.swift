import Testing

@testable import Service

struct TopicReviewTests {
  private func remarks(_ role: TopicRole, replicas: Int? = nil, _ settings: [String: String]) -> [TopicRemark] {
    TopicReview.remarks(
      on: TopicFacts(partitions: 4, replicationFactor: replicas, settings: settings), as: role,
      longestDeferral: .seconds(7200))
  }

  @Test(
    arguments: [
      (.requests, "delete", nil), (.requests, "compact", .error), (.requests, "compact,delete", .error),
      (.results, "delete", nil), (.results, "compact", .warning), (.invalidTokens, "compact", nil),
      (.invalidTokens, "compact,delete", nil), (.invalidTokens, "delete", .warning), (.deadLetters, "compact", .error),
      (.deferred, "compact", .error), (.deferred, "delete", nil),
    ] as [(TopicRole, String, TopicRemark.Severity?)])
  func thePolicyMustSuitTheUse(_ role: TopicRole, _ policy: String, _ severity: TopicRemark.Severity?) {
    #expect(remarks(role, ["cleanup.policy": policy]).first?.severity == severity)
  }

  @Test func whatIsNotToldIsNotJudged() {
    for role in TopicRole.allCases { #expect(remarks(role, [:]).isEmpty) }
  }

  @Test func deferredRequestsMustOutlastTheTimeOfTrying() {
    let short = remarks(.deferred, ["cleanup.policy": "delete", "retention.ms": "7199999"])
    #expect(short.map(\.severity) == [.error])
    #expect(short.first?.wanted == "at least 2h (delivery.giveUpAfter and the longest wait)")
    for good in ["7200000", "-1", "9223372036854775807"] {
      #expect(remarks(.deferred, ["retention.ms": good]).isEmpty, "\(good)")
    }
    #expect(remarks(.results, ["retention.ms": "1000"]).isEmpty)
  }

  @Test(
    arguments: [
      // An hour's Retry-After, unless the last wait after lasting trouble is longer: twice as long, and a quarter of that.
      (900, 7200), (1440, 7200), (2880, 10_800), (0, 7200),
    ] as [(Int64, Int64)])
  func theLongestWaitMayBeginWhenTheTimeOfTryingIsAlmostOver(_ lasting: Int64, _ longest: Int64) {
    var delivery = DeliverySettings()
    delivery.retryBackoff.lasting = .seconds(lasting)
    #expect(delivery.longestDeferral == .seconds(longest))
  }

  @Test func moreInSyncReplicasThanThereAreForbidEveryWrite() {
    #expect(remarks(.results, replicas: 1, ["min.insync.replicas": "2"]).map(\.severity) == [.error])
    #expect(remarks(.results, replicas: 2, ["min.insync.replicas": "2"]).isEmpty)
    #expect(remarks(.results, replicas: nil, ["min.insync.replicas": "2"]).isEmpty)
  }

  @Test func everyTopicOfTheConfigurationIsPlannedAndPassesItsOwnReview() {
    var settings = Settings()
    settings.kafka.topics.requests = ["a", "b"]
    settings.delivery.giveUpAfter = .seconds(604_800)
    let plans = TopicPlan.all(of: settings)
    #expect(
      plans.map(\.name) == ["a", "b", "push.results", "push.invalid-tokens", "push.dead-letters", "push.deferred"])
    for var plan in plans {
      plan.setReplicationFactor(3)
      let facts = TopicFacts(
        partitions: plan.partitions, replicationFactor: 3,
        settings: Dictionary(plan.settings.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 }))
      let remarks = TopicReview.remarks(on: facts, as: plan.role, longestDeferral: settings.delivery.longestDeferral)
      #expect(remarks.isEmpty, "\(plan.name): \(remarks)")
      #expect(facts.settings["min.insync.replicas"] == "2")
    }
  }

  @Test func onlyWhatWasAskedForIsADifference() {
    let facts = TopicFacts(partitions: 4, replicationFactor: 1, settings: ["retention.ms": "1000"])
    #expect(TopicReview.differences(between: facts, partitions: nil, replicationFactor: nil, wanted: []).isEmpty)
    #expect(
      TopicReview.differences(
        between: facts, partitions: 4, replicationFactor: 1, wanted: [.init(name: "retention.ms", value: "1000")]
      ).isEmpty)
    let found = TopicReview.differences(
      between: facts, partitions: 8, replicationFactor: 3,
      wanted: [.init(name: "retention.ms", value: "5"), .init(name: "segment.ms", value: "5")])
    #expect(found.map(\.subject) == ["partitions", "replication", "retention.ms"])
    #expect(found.first?.text == "partitions is 4, should be 8: a topic that exists is left as it is")
  }

  @Test func factsReadAsOneLine() {
    #expect(TopicFacts(partitions: 1).summary == "1 partition")
    #expect(
      TopicFacts(
        partitions: 8, replicationFactor: 3, settings: ["cleanup.policy": "delete", "retention.ms": "604800000"]
      ).summary == "8 partitions, 3 replicas, kept 7d")
    #expect(
      TopicFacts(partitions: 4, settings: ["cleanup.policy": "compact", "retention.ms": "604800000"]).summary
        == "4 partitions, compacted")
    #expect(TopicFacts(partitions: 4, settings: ["retention.ms": "-1"]).summary == "4 partitions, kept for good")
  }
}
