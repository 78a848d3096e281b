internal import Delivery
internal import Wire

/// Something about a topic that its reader should know.
package struct TopicRemark: Sendable, Equatable {
  /// How much it matters.
  package enum Severity: String, Sendable {
    /// Records are lost, or cannot be written.
    case error
    /// The service works, but perhaps not as it is meant.
    case warning
  }

  package var severity: Severity
  /// The setting of Kafka, or `partitions`, or `replication`.
  package var subject: String
  package var found: String
  package var wanted: String
  /// What comes of it.
  package var why: String

  /// All of it in one clause.
  package var text: String { "\(subject) is \(found), should be \(wanted): \(why)" }
}

/// A topic as the brokers have it.
package struct TopicFacts: Sendable, Equatable {
  package var partitions: Int
  /// `nil`: not told.
  package var replicationFactor: Int?
  /// Settings in force; empty where the brokers tell none.
  package var settings: [String: String]

  package init(partitions: Int, replicationFactor: Int? = nil, settings: [String: String] = [:]) {
    self.partitions = partitions
    self.replicationFactor = replicationFactor
    self.settings = settings
  }

  /// How long records stay; `nil`: for good, or it is not told.
  var retention: Duration? {
    guard let milliseconds = settings["retention.ms"].flatMap(Int64.init), milliseconds >= 0 else { return nil }
    return .milliseconds(min(milliseconds, 9_000_000_000_000))
  }

  /// In one line, for people.
  package var summary: String {
    var parts = ["\(partitions) \(partitions == 1 ? "partition" : "partitions")"]
    if let replicationFactor { parts.append("\(replicationFactor) \(replicationFactor == 1 ? "replica" : "replicas")") }
    if let policy = settings["cleanup.policy"] {
      parts.append(policy == "compact" ? "compacted" : policy == "delete" ? "" : policy)
    }
    if settings["cleanup.policy"] != "compact", settings["retention.ms"] != nil {
      parts.append(retention.map { "kept \(Quantity.text($0))" } ?? "kept for good")
    }
    return parts.filter { !$0.isEmpty }.joined(separator: ", ")
  }
}

extension DeliverySettings {
  /// How long a deferred request may have to stay on its topic: until it is given up, and the longest wait that may begin
  /// just before.
  package var longestDeferral: Duration { giveUpAfter + RetryPolicy(self).longestPause }
}

/// Judges whether a topic is fit for its use.
package enum TopicReview {
  /// What every topic of this use must fulfil, whoever made it. What the brokers do not tell is not judged.
  ///
  /// - Parameters:
  ///   - facts: what the brokers say of the topic.
  ///   - role: what the service does with it.
  ///   - longestDeferral: how long a deferred request may have to stay.
  package static func remarks(on facts: TopicFacts, as role: TopicRole, longestDeferral: Duration) -> [TopicRemark] {
    [policy(facts, role), retention(facts, role, longestDeferral), replicas(facts)].compactMap(\.self)
  }

  private static func policy(_ facts: TopicFacts, _ role: TopicRole) -> TopicRemark? {
    guard let policy = facts.settings["cleanup.policy"] else { return nil }
    let isCompacted = policy.split(separator: ",").contains("compact")
    func remark(_ severity: TopicRemark.Severity, _ wanted: String, _ why: String) -> TopicRemark {
      TopicRemark(severity: severity, subject: "cleanup.policy", found: policy, wanted: wanted, why: why)
    }
    switch (role, isCompacted) {
    case (.invalidTokens, false):
      return remark(.warning, "compact", "events are gone after the retention, also for those who have not read them")
    case (.requests, true), (.deferred, true):
      return remark(.error, "delete", "a request is lost when a later one has the same key before it is sent")
    case (.deadLetters, true):
      return remark(.error, "delete", "a dead letter without a key is refused, and one with a key may be dropped")
    case (.results, true):
      return remark(.warning, "delete", "of the results with one key only the last stays")
    default: return nil
    }
  }

  private static func retention(_ facts: TopicFacts, _ role: TopicRole, _ longest: Duration) -> TopicRemark? {
    guard role == .deferred, let retention = facts.retention, retention < longest else { return nil }
    return TopicRemark(
      severity: .error, subject: "retention.ms", found: text(retention),
      wanted: "at least \(text(longest)) (delivery.giveUpAfter and the longest wait)",
      why: "a request that waits can be deleted before it is sent or given up")
  }

  private static func replicas(_ facts: TopicFacts) -> TopicRemark? {
    guard let needed = facts.settings["min.insync.replicas"].flatMap(Int.init), let factor = facts.replicationFactor,
      needed > factor
    else { return nil }
    return TopicRemark(
      severity: .error, subject: "min.insync.replicas", found: String(needed), wanted: "\(factor) at most",
      why: "no record can be written, as there are only \(factor) replicas")
  }

  /// Where a topic that exists differs from what was asked for.
  ///
  /// - Parameters:
  ///   - facts: what the brokers say of the topic.
  ///   - partitions: as many as were asked for; `nil`: any number will do.
  ///   - replicationFactor: the same.
  ///   - wanted: the setting and value, for those that were asked for.
  package static func differences(
    between facts: TopicFacts, partitions: Int?, replicationFactor: Int?, wanted: [TopicPlan.Setting]
  ) -> [TopicRemark] {
    func remark(_ subject: String, _ found: String, _ wanted: String, _ why: String) -> TopicRemark {
      TopicRemark(severity: .warning, subject: subject, found: found, wanted: wanted, why: why)
    }
    let mend = "a topic that exists is left as it is"
    var remarks: [TopicRemark] = []
    if let partitions, partitions != facts.partitions {
      remarks.append(remark("partitions", String(facts.partitions), String(partitions), mend))
    }
    if let replicationFactor, let found = facts.replicationFactor, found != replicationFactor {
      remarks.append(remark("replication", String(found), String(replicationFactor), mend))
    }
    for setting in wanted {
      guard let found = facts.settings[setting.name], found != setting.value else { continue }
      remarks.append(remark(setting.name, found, setting.value, mend))
    }
    return remarks
  }

  private static func text(_ duration: Duration) -> String { Quantity.text(duration) }
}
