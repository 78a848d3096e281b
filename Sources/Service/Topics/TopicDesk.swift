package import Kafka
internal import Synchronization
internal import Wire

/// Asks the brokers about topics, and has them make those that are not there. Every call blocks.
package final class TopicDesk {
  /// What the brokers say of one topic.
  package enum State: Sendable, Equatable {
    case missing
    case exists(TopicFacts)
    /// The brokers refuse to say.
    case refused(KafkaError)
  }

  private let admin: Admin
  private let words = LastWords()
  /// Why the brokers say nothing of topics' settings; `nil`: they do, or have not been asked yet.
  package private(set) var silence: String?

  /// - Parameter properties: whose credentials are used.
  package init(properties: KafkaProperties) throws(KafkaError) {
    let words = words
    admin = try Admin(properties: properties, log: { words.take($0) })
  }

  /// The same with the credentials that results are written with.
  package convenience init(_ settings: Settings) throws {
    try self.init(properties: try settings.kafka.producer())
  }

  /// Whether there is a controller; only brokers in a test have none. Known once they have been asked something.
  package var hasController: Bool { admin.hasController }

  /// The topics as they are; none is made by the question.
  ///
  /// - Parameters:
  ///   - timeout: for each of two questions.
  ///   - withSettings: whether the second one, about their settings, is asked.
  /// - Throws: when no broker answers in time.
  package func look(
    at names: [String], timeout: Duration, withSettings: Bool = true
  ) throws(KafkaError) -> [String: State] {
    let all = try admin.describeAll(timeout: timeout)
    var states: [String: State] = [:]
    for name in names {
      switch all[name] {
      case .success(let topic):
        states[name] = topic.partitionCount.map {
          .exists(TopicFacts(partitions: $0, replicationFactor: topic.replicationFactor))
        }
      case .failure(let error): states[name] = .refused(error)
      case nil: break
      }
      // A question for this one topic could tell more, but brokers may create a topic that is asked for.
      if states[name] == nil { states[name] = .missing }
    }
    if withSettings { addSettings(to: &states, timeout: timeout) }
    return states
  }

  private func addSettings(to states: inout [String: State], timeout: Duration) {
    let known = states.compactMap { name, state in if case .exists = state { name } else { nil } }.sorted()
    guard !known.isEmpty else { return }
    guard admin.hasController else {
      silence = "these brokers have no controller that could be asked"
      return
    }
    do {
      for (name, answer) in try admin.settings(of: known, timeout: timeout) {
        switch (states[name], answer) {
        case (.exists(var facts), .success(let settings)):
          facts.settings = settings
          states[name] = .exists(facts)
        case (_, .failure(let error)): silence = error.description
        default: break
        }
      }
    } catch {
      silence = error.description
    }
  }

  /// Has topics made.
  ///
  /// - Returns: those that could not be made and why; a topic that somebody else has made meanwhile is not among them.
  /// - Throws: when no broker takes the request in time.
  package func create(_ plans: [TopicPlan], timeout: Duration) throws(KafkaError) -> [String: KafkaError] {
    guard !plans.isEmpty else { return [:] }
    guard admin.hasController else { throw .noController }
    var failures: [String: KafkaError] = [:]
    for error in try admin.create(plans.map(\.request), timeout: timeout) where error.code != .topicAlreadyExists {
      guard case .topic(let name) = error.subject else { continue }
      failures[name] = error
    }
    return failures
  }

  /// An error of this desk with what the library last said of a connection that failed.
  package func explain(_ error: KafkaError) -> String { words.text.map { "\(error); \($0)" } ?? "\(error)" }
}

/// The latest that librdkafka said of a connection that failed: why, where the error itself only says that it did.
package final class LastWords: Sendable {
  private let words = Mutex<String?>(nil)

  package init() {}

  /// A line of the library's log.
  package func take(_ line: KafkaLogLine) {
    guard line.facility == "FAIL" else { return }
    // The text begins with the library's names for its thread and the broker.
    let text = line.text.split(separator: "]: ", maxSplits: 1).last.map(String.init) ?? line.text
    words.withLock { $0 = text }
  }

  /// `nil`: nothing has failed.
  package var text: String? { words.withLock { $0 } }
}
