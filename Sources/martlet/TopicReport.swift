import Kafka
import Service
import Wire

/// What became of each topic.
struct TopicReport {
  /// The state of one topic at the end.
  enum State: Equatable {
    case missing
    case exists(TopicFacts)
    case created
    /// Would have been created.
    case planned
    case failed(String)

    var word: String {
      switch self {
      case .missing: "missing"
      case .exists: "exists"
      case .created: "created"
      case .planned: "planned"
      case .failed: "failed"
      }
    }
  }

  struct Entry {
    var plan: TopicPlan
    var state: State
    var remarks: [TopicRemark] = []
  }

  private(set) var entries: [Entry]
  private let longestDeferral: Duration
  /// Why the topics' settings are not known.
  private(set) var silence: String?

  init(plans: [TopicPlan], longestDeferral: Duration) {
    entries = plans.map { Entry(plan: $0, state: .missing) }
    self.longestDeferral = longestDeferral
  }

  mutating func look(with desk: TopicDesk, _ wishes: TopicWishes, timeout: Duration) throws(KafkaError) {
    let states = try desk.look(at: entries.map(\.plan.name), timeout: timeout)
    silence = desk.silence
    for index in entries.indices { note(states[entries[index].plan.name] ?? .missing, of: index, wishes) }
  }

  mutating func note(_ state: TopicDesk.State, of index: Int, _ wishes: TopicWishes) {
    let plan = entries[index].plan
    switch state {
    case .missing: entries[index].state = .missing
    case .refused(let error): entries[index].state = .failed(error.text)
    case .exists(let facts):
      entries[index].state = .exists(facts)
      let remarks = TopicReview.remarks(on: facts, as: plan.role, longestDeferral: longestDeferral)
      let told = Set(remarks.map(\.subject))
      let differences = TopicReview.differences(
        between: facts, partitions: wishes.partitions[plan.name], replicationFactor: wishes.replicationFactor,
        wanted: wishes.settings[plan.name] ?? [])
      entries[index].remarks = remarks + differences.filter { !told.contains($0.subject) }
    }
  }

  mutating func create(
    with desk: TopicDesk, _ wishes: TopicWishes, isDry: Bool, timeout: Duration
  ) throws(KafkaError) {
    let missing = entries.indices.filter { entries[$0].state == .missing || entries[$0].state == .planned }
    guard !isDry else {
      for index in missing { entries[index].state = .planned }
      return
    }
    let failures = try desk.create(missing.map { entries[$0].plan }, timeout: timeout)
    for index in missing {
      entries[index].state = failures[entries[index].plan.name].map { .failed("\($0.text) (\($0.name))") } ?? .created
    }
  }

  var exitCode: ExitCode {
    for entry in entries {
      switch entry.state {
      case .missing, .failed: return .unavailable
      default: break
      }
    }
    return entries.contains { $0.remarks.contains { $0.severity == .error } } ? .badData : .ok
  }

  /// A list with a mark before each topic: ✗ an error, ! a warning, ✓ in order, + made or to be made.
  var text: String {
    var lines: [String] = []
    for entry in entries {
      lines.append("\(Self.mark(of: entry)) \(entry.plan.name): \(Self.words(of: entry))")
      for remark in entry.remarks { lines.append("    \(remark.severity == .error ? "✗" : "!") \(remark.text)") }
    }
    if let silence { lines.append("! the settings of the topics are not known: \(silence)") }
    return lines.joined(separator: "\n")
  }

  private static func mark(of entry: Entry) -> String {
    switch entry.state {
    case .missing, .failed: "✗"
    case .created, .planned: "+"
    case .exists:
      entry.remarks.contains { $0.severity == .error } ? "✗" : entry.remarks.isEmpty ? "✓" : "!"
    }
  }

  private static func words(of entry: Entry) -> String {
    switch entry.state {
    case .missing: "there is no such topic, or it may not be described"
    case .exists(let facts): "exists, \(facts.summary)"
    case .created: "created, \(summary(of: entry.plan))"
    case .planned: "would be created, \(summary(of: entry.plan))"
    case .failed(let why): "failed: \(why)"
    }
  }

  private static func summary(of plan: TopicPlan) -> String {
    let replicas = plan.replicationFactor.map { [", replication \($0)"] } ?? []
    let settings = plan.settings.map { ", \($0.name)=\($0.value)" }
    return "\(plan.partitions) \(plan.partitions == 1 ? "partition" : "partitions")"
      + (replicas + settings).joined()
  }

  /// The same for programs: `ok` and, for each topic, `topic`, `role`, `state`, what is known of it, and `remarks`.
  var json: String {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("ok")
    writer.bool(exitCode == .ok)
    writer.key("topics")
    writer.beginArray()
    for entry in entries { Self.write(entry, to: &writer) }
    writer.endArray()
    writer.endObject()
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  private static func write(_ entry: Entry, to writer: inout JSONWriter) {
    writer.beginObject()
    writer.field("topic", entry.plan.name)
    writer.field("role", entry.plan.role.rawValue)
    writer.field("state", entry.state.word)
    var facts = TopicFacts(partitions: entry.plan.partitions, replicationFactor: entry.plan.replicationFactor)
    for setting in entry.plan.settings { facts.settings[setting.name] = setting.value }
    if case .exists(let found) = entry.state { facts = found }
    if case .failed(let why) = entry.state { writer.field("why", why) }
    if entry.state != .missing {
      writer.key("partitions")
      writer.integer(facts.partitions)
      if let factor = facts.replicationFactor {
        writer.key("replication_factor")
        writer.integer(factor)
      }
      for name in ["cleanup.policy", "retention.ms", "min.insync.replicas"] {
        if let value = facts.settings[name] { writer.field(name, value) }
      }
    }
    writer.key("remarks")
    writer.beginArray()
    for remark in entry.remarks {
      writer.beginObject()
      writer.field("severity", remark.severity.rawValue)
      writer.field("subject", remark.subject)
      writer.field("found", remark.found)
      writer.field("wanted", remark.wanted)
      writer.field("why", remark.why)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
  }
}
