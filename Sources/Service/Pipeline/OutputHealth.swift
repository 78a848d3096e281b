import Delivery
import Kafka
import Wire

/// Whether the output topics take what is produced to them; from that, what the operator is told.
struct OutputHealth {
  /// Why a topic takes nothing.
  enum Fault: Equatable {
    /// Somebody must mend it: the topic is missing, or may not be written to.
    case refused(String)
    /// Nothing has been acknowledged for so long, though something waits for it.
    case stalled(Duration)
  }

  /// A topic that takes nothing any more, or (`nil`) takes records again.
  struct Change: Equatable {
    var topic: OutputTopic
    var fault: Fault?
  }

  private struct Output {
    var outstanding = 0
    /// Since when something waits for it to take anything; `nil` while nothing does. What fails waits on.
    var since: Instant?
    var fault: Fault?
  }

  /// A topic is stalled after this long.
  static let patience: Duration = .seconds(15)

  private var outputs = [Output](repeating: Output(), count: OutputTopic.allCases.count)
  private var changes: [Change] = []

  mutating func produced(_ topic: OutputTopic, now: Instant) {
    let place = Int(topic.rawValue)
    if outputs[place].since == nil { outputs[place].since = now }
    outputs[place].outstanding += 1
  }

  mutating func acknowledged(_ topic: OutputTopic, now: Instant) {
    let place = Int(topic.rawValue)
    outputs[place].outstanding -= 1
    outputs[place].since = outputs[place].outstanding > 0 ? now : nil
    if outputs[place].fault != nil { change(place, to: nil) }
  }

  /// - Parameter error: why it was not stored, if that is a matter of the topic.
  mutating func failed(_ topic: OutputTopic, _ error: KafkaError) {
    let place = Int(topic.rawValue)
    outputs[place].outstanding -= 1
    guard error.publishingFault == .topic else { return }
    if case .refused = outputs[place].fault { return }
    change(place, to: .refused(error.description))
  }

  /// What failed last is not produced again. Unless something else is on its way, nothing waits for the topic.
  mutating func gaveUp(_ topic: OutputTopic) {
    let place = Int(topic.rawValue)
    guard outputs[place].outstanding == 0 else { return }
    outputs[place].since = nil
    if case .stalled = outputs[place].fault { change(place, to: nil) }
  }

  /// What has changed since the last call.
  mutating func takeChanges(now: Instant) -> [Change] {
    for place in outputs.indices where outputs[place].fault == nil {
      guard let since = outputs[place].since else { continue }
      let span = now - since
      if span >= Self.patience { change(place, to: .stalled(span)) }
    }
    guard !changes.isEmpty else { return [] }
    defer { changes.removeAll() }
    return changes
  }

  private mutating func change(_ place: Int, to fault: Fault?) {
    outputs[place].fault = fault
    changes.append(Change(topic: OutputTopic.allCases[place], fault: fault))
  }
}
