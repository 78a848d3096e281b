import Kafka
import Service
import Testing

@testable import martlet

struct TopicsCommandTests {
  private func wishes(_ words: [String], requests: [String] = ["push.requests"]) throws -> TopicWishes {
    var settings = Settings()
    settings.kafka.topics.requests = requests
    let arguments = try Arguments(
      (["create", "--config", "x"] + words)[...], for: TopicsCommand.command)
    return try TopicWishes(arguments, for: settings)
  }

  private func message(_ words: [String]) throws -> String {
    do {
      _ = try wishes(words)
      return ""
    } catch let error as UsageError {
      return error.message
    }
  }

  @Test func wishesTakeTheirPlaceInThePlans() throws {
    let wishes = try wishes([
      "--partitions", "6", "--topic", "push.results:12", "--replication-factor", "3", "--setting",
      "push.results:retention.ms=1000", "--setting", "push.deferred:segment.ms=5",
    ])
    #expect(wishes.plans.map(\.partitions) == [6, 12, 6, 6, 6])
    #expect(wishes.plans.allSatisfy { $0.replicationFactor == 3 })
    let results = try #require(wishes.plans.first { $0.name == "push.results" })
    #expect(results.settings.contains(.init(name: "retention.ms", value: "1000")))
    #expect(results.settings.count { $0.name == "retention.ms" } == 1)
    #expect(wishes.plans.last?.settings.contains(.init(name: "segment.ms", value: "5")) == true)
  }

  @Test func withoutWishesNothingIsCompared() throws {
    let wishes = try wishes([], requests: ["a", "b"])
    #expect(wishes.plans.map(\.partitions) == [8, 8, 8, 4, 4, 8])
    #expect(wishes.partitions.isEmpty && wishes.settings.isEmpty && wishes.replicationFactor == nil)
  }

  @Test func wishesThatMakeNoSenseAreExplained() throws {
    #expect(try message(["--topic", "push.result:3"]).hasSuffix("did you mean 'push.results'?"))
    #expect(try message(["--topic", "push.results"]).contains("must be NAME:PARTITIONS"))
    #expect(try message(["--topic", "push.results:0"]).contains("must be NAME:PARTITIONS"))
    #expect(try message(["--setting", "push.results:retention.ms"]).contains("NAME:KEY=VALUE"))
    #expect(try message(["--setting", "retention.ms=5"]).contains("NAME:KEY=VALUE"))
    #expect(try message(["--replication-factor", "none"]).contains("whole number from 1 to 100"))
  }

  private func report(_ states: [TopicDesk.State], _ words: [String] = []) throws -> TopicReport {
    let wishes = try wishes(words)
    var report = TopicReport(plans: wishes.plans, longestDeferral: .seconds(3600))
    for (index, state) in states.enumerated() { report.note(state, of: index, wishes) }
    return report
  }

  private let good = TopicDesk.State.exists(TopicFacts(partitions: 8))

  @Test func whatIsThereAndFitIsGood() throws {
    let report = try report(Array(repeating: good, count: 5))
    #expect(report.exitCode == .ok)
    #expect(report.text.split(separator: "\n").allSatisfy { $0.hasPrefix("✓ push.") && $0.hasSuffix("8 partitions") })
    #expect(report.json.hasPrefix(#"{"ok":true,"topics":[{"topic":"push.requests","role":"requests","state":"exists""#))
  }

  @Test func differencesAreWarningsAndLossesAreErrors() throws {
    let differing = try report(Array(repeating: good, count: 5), ["--topic", "push.results:12"])
    #expect(differing.exitCode == .ok)
    #expect(differing.text.contains("! push.results: exists, 8 partitions\n    ! partitions is 8, should be 12"))
    let compacted = TopicDesk.State.exists(TopicFacts(partitions: 8, settings: ["cleanup.policy": "compact"]))
    let losing = try report([compacted, good, good, good, good])
    #expect(losing.exitCode == .badData)
    #expect(losing.text.hasPrefix("✗ push.requests: exists, 8 partitions, compacted\n    ✗ cleanup.policy is compact"))
    #expect(losing.json.contains(#""remarks":[{"severity":"error","subject":"cleanup.policy","found":"compact""#))
  }

  @Test func whatIsMissingIsUnavailable() throws {
    let missing = try report([good, .missing, good, good, good])
    #expect(missing.exitCode == .unavailable)
    #expect(missing.text.contains("✗ push.results: there is no such topic"))
    #expect(missing.json.contains(#""state":"missing","remarks":[]"#))
  }

  @Test func aDryRunSaysWhatWouldBeMade() throws {
    let cluster = try MockCluster()
    var settings = Settings()
    settings.kafka.brokers = [cluster.bootstrapServers]
    let desk = try TopicDesk(settings)
    let wishes = try wishes(["--replication-factor", "1"])
    var report = TopicReport(plans: wishes.plans, longestDeferral: .seconds(3600))
    try report.look(with: desk, wishes, timeout: .seconds(60))
    #expect(report.exitCode == .unavailable)
    try report.create(with: desk, wishes, isDry: true, timeout: .seconds(60))
    #expect(report.exitCode == .ok)
    #expect(
      report.text.contains(
        "+ push.invalid-tokens: would be created, 4 partitions, replication 1, cleanup.policy=compact"))
    // These brokers have no controller: nothing is made, and that is said at once.
    #expect {
      try report.create(with: desk, wishes, isDry: false, timeout: .seconds(60))
    } throws: { ($0 as? KafkaError) == .noController }
  }
}
