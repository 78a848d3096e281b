internal import Kafka
internal import Wire

/// What the service uses a topic for.
package enum TopicRole: String, CaseIterable, Sendable {
  case requests
  case results
  case invalidTokens = "invalid-tokens"
  case deadLetters = "dead-letters"
  case deferred
}

/// One topic of the configuration, as it should be made where it is not there.
package struct TopicPlan: Sendable, Equatable {
  /// A topic-level setting of Kafka, as `retention.ms`.
  package struct Setting: Sendable, Equatable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  package var role: TopicRole
  package var name: String
  package var partitions: Int
  /// `nil`: the brokers' default.
  package var replicationFactor: Int?
  package var settings: [Setting]

  /// All topics that a configuration names, in the order of `TopicRole`.
  ///
  /// Requests and results wait a week for those who read them. Dead letters are for people, so they stay a month.
  /// Events about tokens stay for good, one for each token. A deferred request must outlast the time that the service
  /// goes on trying.
  package static func all(of settings: Settings) -> [TopicPlan] {
    let topics = settings.kafka.topics
    let day = Duration.seconds(86_400)
    let deferred = max(day * 7, settings.delivery.giveUpAfter * 2)
    return topics.requests.map { TopicPlan(.requests, $0, partitions: 8, keeping: day * 7) } + [
      TopicPlan(.results, topics.results, partitions: 8, keeping: day * 7),
      TopicPlan(.invalidTokens, topics.invalidTokens, partitions: 4, keeping: nil),
      TopicPlan(.deadLetters, topics.deadLetters, partitions: 4, keeping: day * 30),
      TopicPlan(.deferred, topics.deferred, partitions: 8, keeping: deferred),
    ]
  }

  /// - Parameter retention: `nil`: compacted, and so kept for good.
  private init(_ role: TopicRole, _ name: String, partitions: Int, keeping retention: Duration?) {
    self.role = role
    self.name = name
    self.partitions = partitions
    settings = [Setting(name: "cleanup.policy", value: retention == nil ? "compact" : "delete")]
    if let retention {
      settings.append(Setting(name: "retention.ms", value: String(retention.nanoseconds / 1_000_000)))
    }
  }

  /// Sets one of the topic's settings, in place of the planned value if there is one.
  package mutating func set(_ name: String, to value: String) {
    if let place = settings.firstIndex(where: { $0.name == name }) {
      settings[place].value = value
    } else {
      settings.append(Setting(name: name, value: value))
    }
  }

  /// Sets the number of replicas. From three on, a write must reach two of them: with one, the loss of a single broker
  /// could take with it what was already acknowledged.
  package mutating func setReplicationFactor(_ factor: Int) {
    replicationFactor = factor
    if factor >= 3, !settings.contains(where: { $0.name == "min.insync.replicas" }) {
      set("min.insync.replicas", to: "2")
    }
  }

  var request: NewTopic {
    NewTopic(
      name: name, partitionCount: partitions, replicationFactor: replicationFactor,
      settings: settings.map { ($0.name, $0.value) })
  }
}
