import Kafka
import Service
import Synchronization
import Wire

/// `martlet results` and `martlet invalid-tokens`: follow what the service publishes.
enum FollowCommand {
  static let results = Command(
    "results", "Follow the results of notifications: one line for each.",
    options: FollowOptions.common + [
      Option("status", value: "STATUS", "Only with this status: delivered, rejected, …", isRepeated: true)
    ] + FollowOptions.ends,
    examples: [
      ("martlet results --config martlet.json5", "What comes from now on; Ctrl-C ends."),
      (
        "martlet results --config martlet.json5 --since 1h --status rejected --until-end --json | jq -r .reason",
        "Why notifications were refused in the last hour."
      ),
      ("martlet results --config martlet.json5 --limit 3 --timeout 30s", "For scripts: fails if fewer come."),
    ]
  ) { arguments in
    try await run(arguments, "results", .results) { $0.results }
  }

  static let invalidTokens = Command(
    "invalid-tokens", "Follow the events about tokens that APNs says are no longer good.",
    options: FollowOptions.common + FollowOptions.ends,
    examples: [
      ("martlet invalid-tokens --config martlet.json5", "What comes from now on; Ctrl-C ends."),
      (
        "martlet invalid-tokens --config martlet.json5 --since beginning --until-end --export csv > tokens.csv",
        "All that are known, as a table: what the feedback service was asked for."
      ),
    ]
  ) { arguments in
    try await run(arguments, "invalid-tokens", .invalidTokens) { $0.invalidTokens }
  }

  private static func run(
    _ arguments: Arguments, _ name: String, _ kind: FollowedKind, topic: (TopicSettings) -> String
  ) async throws -> ExitCode {
    let options = try FollowOptions(arguments, now: ServiceClock.now().time)
    let settings = try SettingsLoader.loadWithoutApps(file: try arguments.required("config"))
    StopSignal.install()
    let topic = topic(settings.kafka.topics)
    let follower: TopicFollower
    do {
      follower = try TopicFollower(
        topic, of: settings.kafka, from: options.start, timeout: settings.delivery.connectTimeout)
    } catch {
      Console.error("martlet \(name): \(error)")
      return .unavailable
    }
    if !options.untilEnd {
      Console.error("following \(topic), \(follower.partitionCount) partitions; Ctrl-C ends")
    }
    return FollowLoop(name, topic, FollowWriter(kind, options.format), options).run(follower)
  }
}

/// Whether a signal has asked the command to end. A second one ends the process on the spot. For commands that loop.
enum StopSignal {
  private static let isAsked = Atomic(false)

  static func install() {
    _ = Signals.install { request in
      switch request {
      case .drain: isAsked.store(true, ordering: .relaxed)
      case .exitNow(let signal): endProcess(128 + signal)
      case .reload: break
      }
    }
  }

  static var isSet: Bool { isAsked.load(ordering: .relaxed) }
}

/// Takes records and writes them, until one of the ends is reached.
struct FollowLoop {
  private let name: String
  private let topic: String
  private let writer: FollowWriter
  private let options: FollowOptions
  private var shown = 0
  private var unreadable = 0
  private var lastTrouble: KafkaError.Code?
  private var output: [UInt8] = []

  init(_ name: String, _ topic: String, _ writer: FollowWriter, _ options: FollowOptions) {
    self.name = name
    self.topic = topic
    self.writer = writer
    self.options = options
  }

  private var isLimitReached: Bool { options.limit.map { shown >= $0 } ?? false }

  /// - Returns: how the program ends.
  consuming func run(_ follower: TopicFollower) -> ExitCode {
    let deadline = options.timeout.map { ServiceClock.now().instant + $0 }
    var batch: [Record] = []
    output = writer.header
    while !StopSignal.isSet {
      batch.removeAll(keepingCapacity: true)
      // Asked before the poll: what it finds may be the end.
      let isAtEnd = options.untilEnd && follower.isAtEnd
      let trouble = follower.poll(into: &batch, limit: 1000)
      for record in batch where !isLimitReached { take(record) }
      // Whoever read has gone: that is an end like any other.
      guard StandardOutput.write(&output) else { return .ok }
      if isLimitReached { return .ok }
      if let trouble, tell(trouble) { return .unavailable }
      if batch.isEmpty {
        if isAtEnd { break }
        if let deadline, ServiceClock.now().instant >= deadline {
          guard let limit = options.limit else { break }
          Console.error("martlet \(name): \(shown) of \(limit) records came in time")
          return .unavailable
        }
        follower.wait(atMost: .milliseconds(100))
      }
    }
    if unreadable > 0 { Console.error("martlet \(name): \(unreadable) records of \(topic) could not be read") }
    return .ok
  }

  private mutating func take(_ record: Record) {
    do {
      guard let json = try FollowedForms.json(record.body, of: writer.kind) else { return }
      let read = try FollowedRecord(json, as: writer.kind)
      guard options.filter.admits(read, of: writer.kind) else { return }
      writer.write(read, to: &output)
      shown += 1
    } catch {
      unreadable += 1
      guard unreadable <= 3 else { return }
      Console.error("martlet \(name): \(topic)[\(record.source.partition)] offset \(record.offset): \(error)")
    }
  }

  /// - Returns: whether it will not pass by itself.
  private mutating func tell(_ trouble: KafkaError) -> Bool {
    let isLasting = trouble.isFatal || !trouble.isRetriable
    if isLasting || trouble.code != lastTrouble { Console.error("martlet \(name): \(trouble)") }
    lastTrouble = trouble.code
    return isLasting
  }
}
