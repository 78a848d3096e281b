import Kafka
import Service
import Wire

/// `martlet topics`: makes the topics that a configuration names, or looks at them.
enum TopicsCommand {
  enum Action: String, CaseIterable { case create, check }

  static let command = Command(
    "topics", "Make the topics of a configuration, or look whether they are fit for their use.",
    options: [
      Option("config", value: "FILE", "The configuration (JSON5).", isRequired: true),
      Option("partitions", value: "N", "For every topic (default: 8, and 4 for invalid tokens and dead letters)."),
      Option("topic", value: "NAME:PARTITIONS", "The partitions of one topic.", isRepeated: true),
      Option("replication-factor", value: "N", "Replicas of each partition (default: as the brokers are set up)."),
      Option(
        "setting", value: "NAME:KEY=VALUE",
        "A topic-level setting of Kafka, such as push.results:retention.ms=86400000.", isRepeated: true),
      Option("timeout", value: "DURATION", "How long the brokers may take for each answer (default 30s)."),
      Option(flag: "dry-run", "Say what would be made, and make nothing."),
      Option(flag: "json", "The outcome as one JSON object, for programs."),
    ],
    examples: [
      (
        "martlet topics create --config martlet.json5 --replication-factor 3",
        "Makes what is not there; running it again changes nothing."
      ),
      ("martlet topics create --config martlet.json5 --topic push.requests:32 --dry-run", "What would be made?"),
      ("martlet topics check --config martlet.json5", "Are they there, and do they keep what they must keep?"),
    ],
    operands: "create|check", run: run)

  @Sendable
  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let action = try self.action(arguments.operands)
    let settings = try SettingsLoader.loadWithoutApps(file: try arguments.required("config"))
    let wishes = try TopicWishes(arguments, for: settings)
    let timeout = try arguments.duration("timeout", default: .seconds(30))
    let desk = try TopicDesk(settings)
    var report = TopicReport(plans: wishes.plans, longestDeferral: settings.delivery.longestDeferral)
    do {
      try report.look(with: desk, wishes, timeout: timeout)
      if action == .create {
        try report.create(with: desk, wishes, isDry: arguments.has("dry-run"), timeout: timeout)
      }
    } catch {
      Console.error("martlet topics: \(settings.kafka.brokers.joined(separator: ",")): \(desk.explain(error))")
      return .unavailable
    }
    Console.out(arguments.has("json") ? report.json : report.text)
    return report.exitCode
  }

  private static func action(_ operands: [String]) throws(UsageError) -> Action {
    guard operands.count == 1, let action = Action(rawValue: operands[0]) else {
      let words = Action.allCases.map(\.rawValue)
      let nearest = operands.first.flatMap { NearestName.find($0, in: words) }
      throw UsageError(
        message: "say either 'create' or 'check'" + (nearest.map { "; did you mean '\($0)'?" } ?? ""))
    }
    return action
  }
}

/// What the command line asks of the topics, beyond what the configuration says.
struct TopicWishes {
  var plans: [TopicPlan]
  /// By topic; only what was asked for. What exists is compared with these alone.
  private(set) var partitions: [String: Int] = [:]
  private(set) var settings: [String: [TopicPlan.Setting]] = [:]
  private(set) var replicationFactor: Int?

  init(_ arguments: Arguments, for settings: Settings) throws(UsageError) {
    plans = TopicPlan.all(of: settings)
    if arguments.has("partitions") {
      let count = try arguments.integer("partitions", in: 1...10_000, default: 8)
      for plan in plans { partitions[plan.name] = count }
    }
    for text in arguments.all("topic") {
      let topic = try Self.topic(text)
      try require(topic.name, of: "--topic")
      partitions[topic.name] = topic.partitions
    }
    if arguments.has("replication-factor") {
      replicationFactor = try arguments.integer("replication-factor", in: 1...100, default: 1)
    }
    for text in arguments.all("setting") {
      let (name, setting) = try Self.setting(text)
      try require(name, of: "--setting")
      self.settings[name, default: []].append(setting)
    }
    for index in plans.indices {
      let name = plans[index].name
      if let count = partitions[name] { plans[index].partitions = count }
      for setting in self.settings[name] ?? [] { plans[index].set(setting.name, to: setting.value) }
      if let replicationFactor { plans[index].setReplicationFactor(replicationFactor) }
    }
  }

  private func require(_ name: String, of option: String) throws(UsageError) {
    let names = plans.map(\.name)
    guard !names.contains(name) else { return }
    let nearest = NearestName.find(name, in: names).map { "; did you mean '\($0)'?" } ?? ""
    throw UsageError(message: "'\(option)': the configuration has no topic '\(name)'\(nearest)")
  }

  /// `NAME:PARTITIONS`.
  static func topic(_ text: String) throws(UsageError) -> (name: String, partitions: Int) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, let count = Int(parts[1]), (1...10_000).contains(count) else {
      throw UsageError(message: "'--topic' must be NAME:PARTITIONS, such as push.requests:8, not '\(text)'")
    }
    return (String(parts[0]), count)
  }

  private static func setting(_ text: String) throws(UsageError) -> (String, TopicPlan.Setting) {
    let parts = text.split(separator: ":", maxSplits: 1)
    let sides = parts.count == 2 ? parts[1].split(separator: "=", maxSplits: 1) : []
    guard sides.count == 2 else {
      throw UsageError(
        message: "'--setting' must be NAME:KEY=VALUE, such as push.results:retention.ms=86400000, not '\(text)'")
    }
    return (String(parts[0]), TopicPlan.Setting(name: String(sides[0]), value: String(sides[1])))
  }
}
