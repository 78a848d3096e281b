internal import Kafka
internal import Wire

extension ConnectionCheck {
  /// What can be told of Kafka without reading, writing or committing anything. Blocks while it waits for the brokers.
  static func kafka(_ settings: Settings, until end: Instant) -> [Finding] {
    let kafka = settings.kafka
    let brokers = kafka.brokers.joined(separator: ",")
    let plans = TopicPlan.all(of: settings)
    let isInput = { (plan: TopicPlan) in plan.role == .requests || plan.role == .deferred }
    let limit = { () -> Duration in
      min(max(.milliseconds(1), end - ServiceClock.now().instant), settings.delivery.connectTimeout)
    }
    var found: [Finding] = []
    var silence: String?
    var readable: [String: Int] = [:]
    do {
      // Each side is asked with its own properties: credentials may differ.
      for (properties, side) in [
        (try kafka.consumer(), plans.filter(isInput)), (try kafka.producer(), plans.filter { !isInput($0) }),
      ] {
        let desk = try TopicDesk(properties: properties)
        do throws(KafkaError) {
          let states = try desk.look(at: side.map(\.name), timeout: limit())
          silence = silence ?? desk.silence
          for plan in side {
            let state = states[plan.name] ?? .missing
            found.append(finding(plan, state, longestDeferral: settings.delivery.longestDeferral))
            if isInput(plan), case .exists(let facts) = state { readable[plan.name] = facts.partitions }
          }
        } catch {
          let words = desk.explain(error)
          return [Finding(kind: .brokers, name: brokers, isGood: false, message: words)] + found
        }
      }
    } catch {
      return [Finding(kind: .brokers, name: brokers, isGood: false, message: "\(error)")] + found
    }
    if let silence {
      found.append(
        Finding(kind: .permission, name: "settings of topics", state: .unknown, message: "not told: \(silence)"))
    }
    found += permissions(settings, readable, within: limit())
    return [Finding(kind: .brokers, name: brokers, isGood: true, message: "reached")] + found
  }

  static func finding(_ plan: TopicPlan, _ state: TopicDesk.State, longestDeferral: Duration) -> Finding {
    var finding = Finding(kind: .topic, name: plan.name, isGood: false, message: "")
    switch state {
    case .missing:
      finding.message = "there is no such topic, or it may not be described; 'martlet topics create' makes it"
    case .refused(let error): finding.message = error.text
    case .exists(let facts):
      let remarks = TopicReview.remarks(on: facts, as: plan.role, longestDeferral: longestDeferral)
      finding.message = ([facts.summary] + remarks.map(\.text)).joined(separator: "; ")
      finding.state =
        remarks.contains { $0.severity == .error } ? .bad : remarks.isEmpty ? .good : .warning
    }
    return finding
  }

  /// Whether the group may be looked up and the inputs may be read: the partitions' ends are fetched, at which nothing
  /// stands. What may be written cannot be told without writing.
  private static func permissions(
    _ settings: Settings, _ partitions: [String: Int], within limit: Duration
  ) -> [Finding] {
    guard !partitions.isEmpty else { return [] }
    let names = partitions.keys.sorted()
    do {
      let probe = try ReadingProbe(settings.kafka, names, partitions)
      var findings = [
        Finding(kind: .permission, name: "group \(settings.kafka.group)", result: probe.lookUpGroup(timeout: limit))
      ]
      let answers = try probe.fetchNothing(for: min(limit, .seconds(3)))
      for name in names {
        switch answers[name] {
        case .success?:
          findings.append(Finding(kind: .permission, name: "reading \(name)", isGood: true, message: "allowed"))
        case .failure(let error)?:
          findings.append(Finding(kind: .permission, name: "reading \(name)", isGood: false, message: error.text))
        case nil:
          findings.append(
            Finding(kind: .permission, name: "reading \(name)", state: .unknown, message: "no answer in time"))
        }
      }
      return findings
    } catch {
      return [Finding(kind: .permission, name: "reading", isGood: false, message: "\(error)")]
    }
  }
}

/// A consumer outside of the group that reads nothing: it is only there to be refused.
private final class ReadingProbe {
  private let consumer: Consumer
  private let places: [PartitionID]
  private let names: [String]

  /// - Parameter counts: the number of partitions of each topic.
  init(_ kafka: KafkaSettings, _ names: [String], _ counts: [String: Int]) throws {
    self.names = names
    consumer = try Consumer(
      properties: try kafka.consumer(), group: kafka.group, topics: names, membership: .manual, log: { _ in })
    places = names.indices.flatMap { topic in
      (0..<Int32(clamping: counts[names[topic]] ?? 0)).map { PartitionID(topic: UInt32(topic), partition: $0) }
    }
  }

  /// Asks the coordinator for what the group has committed.
  func lookUpGroup(timeout: Duration) -> Result<String, KafkaError> {
    Result { () throws(KafkaError) in
      let committed = try consumer.committed(places, timeout: timeout)
      let known = committed.count { $0.offset != nil }
      return known == 0 ? "nothing is committed yet" : "offsets of \(known) of \(places.count) partitions are committed"
    }
  }

  /// Fetches from the ends of all partitions until each topic has answered, or the time is up.
  func fetchNothing(for time: Duration) throws(KafkaError) -> [String: Result<Void, KafkaError>] {
    let wakeUp = try ConsumerWait(for: consumer)
    try consumer.assign(places.map { StartingPoint(partition: $0, offset: StartingPoint.end) })
    var deadline = ServiceClock.now().instant + time
    var answers: [String: Result<Void, KafkaError>] = [:]
    var batch: [Record] = []
    while ServiceClock.now().instant < deadline {
      batch.removeAll()
      if case .error(let error) = consumer.poll(into: &batch, limit: 100), !error.isRetriable,
        case .partition(let topic, _) = error.subject
      {
        answers[topic] = .failure(error)
      }
      let isComplete = answers.count == names.count
      for place in places where consumer.watermarks(of: place) != nil {
        let name = names[Int(place.topic)]
        if answers[name] == nil { answers[name] = .success(()) }
      }
      // The ends may be told though the fetch is refused, which shows a moment later.
      if !isComplete, answers.count == names.count {
        deadline = min(deadline, ServiceClock.now().instant + .milliseconds(500))
      }
      wakeUp.wait(atMost: .milliseconds(50))
    }
    return answers
  }
}

extension ConnectionCheck.Finding {
  fileprivate init(kind: Kind, name: String, result: Result<String, KafkaError>) {
    switch result {
    case .success(let words): self.init(kind: kind, name: name, isGood: true, message: words)
    case .failure(let error): self.init(kind: kind, name: name, isGood: false, message: error.text)
    }
  }
}
