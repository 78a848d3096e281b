import APNs
import Delivery
import Kafka
import Wire

/// Turns what the pipeline does into metrics, log lines and health. It decides nothing.
///
/// Used on the pipeline's loop alone.
struct PipelineObserver {
  private static let samplePeriod: Duration = .seconds(1)

  let metrics: MetricShard
  let registry: Registry
  let log: Log
  let health: HealthBoard
  let topics: [String]
  private let maxInFlightPerApp: Int
  private var apps: AppTable
  private var paused: Set<PartitionID> = []
  private var committed: [PartitionID: Int64] = [:]
  private var lastSample: Instant?
  /// What the gauges show, of no known app, then by app.
  private var shownInFlight: [Int] = []

  /// - Parameter maxInFlightPerApp: the cap of apps that have none of their own.
  init(
    metrics: MetricShard, registry: Registry, log: Log, health: HealthBoard, topics: [String], apps: AppTable,
    maxInFlightPerApp: Int
  ) {
    self.metrics = metrics
    self.registry = registry
    self.log = log
    self.health = health
    self.topics = topics
    self.apps = apps
    self.maxInFlightPerApp = maxInFlightPerApp
    registry.setApps(apps.names, configured: apps.active.count, caps: apps.caps(default: maxInFlightPerApp))
  }

  /// The apps have changed.
  mutating func update(_ update: AppsUpdate) {
    apps = update.table
    registry.setApps(apps.names, configured: apps.active.count, caps: apps.caps(default: maxInFlightPerApp))
    health.updateApps(update.names, unchanged: update.unchanged)
  }

  /// Takes the machine's events and counts.
  mutating func note(_ machine: inout DeliveryMachine, consumer: Consumer, queued: Int, at moment: Moment) {
    for event in machine.events { note(event) }
    machine.namesTraces = log.isOn(.trace)
    machine.events.removeAll(keepingCapacity: true)
    note(machine.tally)
    machine.tally = Tally()
    if let lastSample, moment.instant - lastSample < Self.samplePeriod { return }
    lastSample = moment.instant
    sample(machine, consumer)
    metrics.set(.producerQueue, to: queued)
  }

  func note(_ event: DeliveryEvent) {
    switch event {
    case .finished(let finished): note(finished)
    case .attempted(let attempt):
      metrics.add(.attempts, app: attempt.app)
      if let age = attempt.recordToSend { metrics.observe(.recordToSend, age) }
      if let time = attempt.sendToAnswer { metrics.observe(.sendToAnswer, app: attempt.app, time) }
    case .settled(let age, let sinceEnd):
      metrics.observe(.endToEnd, age)
      metrics.observe(.answerToSettled, sinceEnd)
    case .retried(let app, let cause):
      metrics.add(.retries(cause), app: app)
      if cause == .lost || cause == .timedOut { metrics.add(.resent, app: app) }
    case .parked(let app): metrics.add(.deferred, app: app)
    case .unparked(let app): metrics.add(.undeferred, app: app)
    case .breaker(let app, let change, let result): note(change, of: app, after: result)
    case .environment(let app, let change): note(change, of: app)
    case .publicationRefused(let topic, let source, let trace, let text, let isFinal):
      metrics.add(.publicationFailures(topic))
      log.error(
        "publication_refused",
        isFinal
          ? "Kafka refused a record for good, and its shortened form too: it is missing"
          : "Kafka refused a record for good; it is published again without what was only copied",
        [.topic(topic.label), .partition(source.partition.partition), .offset(source.offset), .cause(CauseText(text))]
          + (trace.map { [.trace($0)] } ?? []))
    case .publicationRepeated(let topic, let text):
      metrics.add(.publicationFailures(topic))
      log.warning(
        "publication_repeated", "Kafka did not store a record; it is published again",
        [.topic(topic.label), .cause(CauseText(text))])
    case .rewound(let partition, let offset):
      log.error(
        "offsets_began_again", "a partition's offsets began again below what was committed: the topic was made anew",
        [.topic(name(partition)), .partition(partition.partition), .offset(offset)])
    }
  }

  private func note(_ finished: DeliveryEvent.Finished) {
    log.trace("ended", "a notification has ended", fields(of: finished))
    metrics.add(.notifications(finished.status, finished.pushType), app: finished.app)
    if let cause = finished.cause { metrics.add(.failures(cause), app: finished.app) }
    if finished.status == .rejected { metrics.add(.rejections(finished.reason ?? .unknown), app: finished.app) }
    if let rule = finished.rule {
      metrics.add(.invalid(rule))
      if finished.app == nil { metrics.add(.deadLetters) }
    }
    if finished.isTokenDead, let reason = finished.reason.flatMap(TokenEventReason.init) {
      metrics.add(.invalidTokens(reason), app: finished.app)
    }
  }

  /// All that says which notification it was, and what became of it.
  private func fields(of finished: DeliveryEvent.Finished) -> [LogField] {
    var fields: [LogField] = [
      .topic(name(finished.source.partition)), .partition(finished.source.partition.partition),
      .offset(finished.source.offset), .item(finished.source.item), .ending(finished.status),
      .attempts(finished.attempts),
      .duration(
        finished.completedAt - finished.requestedAt),
    ]
    if let app = finished.app { fields += [.app(apps[app].name), .requestID(finished.apnsID)] }
    if let reason = finished.reason { fields.append(.reason(reason)) }
    if let trace = finished.trace { fields.append(.trace(trace)) }
    return fields
  }

  private func note(_ change: AppHealth.Change, of app: AppIndex, after result: SendResult) {
    let name = apps[app].name
    switch change {
    case .opened:
      health.setFault(result.fault + "; it is tried again", ofApp: name, replacesKnown: !result.isWithoutCredentials)
      log.warning(
        "app_unavailable", "an app cannot be served; its requests wait", [.app(name), .cause(CauseText(result.fault))])
    case .closed:
      health.setFault(nil, ofApp: name)
      log.info("app_available", "an app can be served again", [.app(name)])
    }
  }

  private func note(_ change: EnvironmentGuard.Change, of app: AppIndex) {
    let name = apps[app].name
    switch change {
    case .suspected:
      metrics.add(.suspect, app: app)
      health.setNote("APNs calls most of its device tokens bad: is the environment right?", ofApp: name)
      log.error(
        "app_suspect", "APNs calls most of an app's device tokens bad: the app's environment or bundle id may be wrong",
        [
          .app(name),
          .cause(CauseText("environment \(apps[app].environment.rawValue), bundle id \(apps[app].bundleID)")),
        ])
    case .cleared:
      metrics.add(.suspect, app: app, -1)
      health.setNote(nil, ofApp: name)
      log.info("app_unsuspected", "an app's device tokens are accepted again", [.app(name)])
    }
  }

  private func note(_ tally: Tally) {
    guard tally != Tally() else { return }
    if tally.consumed > 0 { health.setKafkaFault(nil, of: KafkaSide.consumer.rawValue, at: nil) }
    if tally.stored != Tally().stored { health.setKafkaFault(nil, of: KafkaSide.producer.rawValue, at: nil) }
    metrics.add(.recordsConsumed, tally.consumed)
    metrics.add(.requestsDecoded, tally.requests)
    metrics.add(.tombstones, tally.tombstones)
    metrics.add(.publications(.results), tally.stored.results)
    metrics.add(.publications(.invalidTokens), tally.stored.invalidTokens)
    metrics.add(.publications(.deadLetters), tally.stored.deadLetters)
    metrics.add(.publications(.deferred), tally.stored.deferred)
    metrics.add(.unknownFields, tally.unknownFields)
    metrics.add(.recordsSkipped, tally.alreadySettled + tally.known)
    metrics.add(.abandoned, tally.abandoned)
  }

  // MARK: Gauges

  private mutating func sample(_ machine: DeliveryMachine, _ consumer: Consumer) {
    while shownInFlight.count < apps.count + 1 { shownInFlight.append(0) }
    for row in 0..<apps.count + 1 {
      let app = row == 0 ? nil : AppIndex(Int32(row - 1))
      let value = machine.unsettled(of: app)
      // Rows of apps that were never used are not made for a zero.
      guard value != shownInFlight[row] else { continue }
      metrics.set(.inFlight, app: app, to: value)
      shownInFlight[row] = value
    }
    metrics.set(.bytesInFlight, to: machine.inFlightBytes + machine.heldBytes)
    metrics.set(.waiting, to: machine.waiting)
    metrics.set(.intakeHeld, to: machine.isIntakeHeld ? 1 : 0)
    registry.setPartitions(
      machine.assignedPartitions.map { id in
        PartitionSample(
          topic: name(id), partition: id.partition, lag: committed[id].flatMap { consumer.lag(of: id, from: $0) },
          isPaused: machine.isPaused(id))
      })
  }

  // MARK: The group

  mutating func assigned(_ partitions: [PartitionID]) {
    metrics.add(.rebalances)
    health.setJoinedGroup(true)
    // An idle producer could not show that it is let in again; where it is not, that is told once more.
    for side in [KafkaSide.consumer, .producer] { health.setKafkaFault(nil, of: side.rawValue, at: nil) }
    log.info("partitions_assigned", "partitions were assigned", [.count(partitions.count)])
  }

  mutating func revoked(_ partitions: [PartitionID], isLost: Bool) {
    metrics.add(.rebalances)
    for id in partitions { committed[id] = nil }
    if isLost {
      health.setJoinedGroup(false)
      log.warning(
        "partitions_lost", "partitions were lost to the group; what was in flight may be sent again by another replica",
        [.count(partitions.count)])
    } else {
      log.info("partitions_revoked", "partitions are given back", [.count(partitions.count)])
    }
  }

  /// Where the group stood when a partition was assigned.
  mutating func began(_ id: PartitionID, at offset: Int64?) { committed[id] = offset ?? 0 }

  mutating func committed(_ result: CommitResult, failed: [PartitionID]) {
    metrics.add(.commits)
    for entry in result.entries where entry.error == nil { committed[entry.partition] = entry.offset }
    guard let error = result.error ?? result.entries.first(where: { $0.error != nil })?.error else {
      health.setKafkaFault(nil, of: KafkaSide.consumer.rawValue, at: nil)
      return
    }
    metrics.add(.commitFailures)
    log.warning(
      "commit_failed", "offsets were not committed; the next commit says them again",
      [.count(failed.count), .cause(CauseText(error.description))])
  }

  func commitNotSent(_ error: KafkaError) {
    metrics.add(.commits)
    metrics.add(.commitFailures)
    log.warning("commit_failed", "a commit could not be sent", [.cause(CauseText(error.description))])
  }

  func kafkaError(_ error: KafkaError, of client: KafkaSide, at now: Instant) {
    metrics.add(.kafkaErrors)
    guard error.isRefusal else {
      log.warning("kafka_error", "Kafka's client reports an error", [.cause(CauseText(error.description))])
      return
    }
    health.setKafkaFault("the brokers refuse the \(client.rawValue): \(error)", of: client.rawValue, at: now)
    log.error(
      "kafka_refused", "Kafka refuses the credentials or rights of a client; it is tried again",
      [.cause(CauseText("\(client.rawValue): \(error)"))])
  }

  // MARK: Producers and their topics

  func note(_ change: LastingProducer.Change) {
    switch change {
    case .failed(let error):
      metrics.add(.producerFailures)
      log.error(
        "producer_failed",
        "Kafka's producer can do nothing more; a new one takes over, and what was not stored is produced again",
        [.cause(CauseText(error.description))])
    case .replaced: log.info("producer_replaced", "a new Kafka producer is at work")
    case .lost: break
    }
  }

  func note(_ change: OutputHealth.Change) {
    let name = "topic \(change.topic.label)"
    metrics.set(.outputBlocked(change.topic), to: change.fault == nil ? 0 : 1)
    switch change.fault {
    case .refused(let text):
      health.setKafkaFault("\(name) takes no records: \(text)", of: name, at: nil)
      log.error(
        "output_refused",
        "a topic takes no records; they are produced again until it does, and the intake stops at its cap",
        [.topic(change.topic.label), .cause(CauseText(text))])
    case .stalled(let span):
      log.warning(
        "output_stalled", "a topic has acknowledged nothing for some time, though records wait for it",
        [.topic(change.topic.label), .duration(span)])
    case nil:
      health.setKafkaFault(nil, of: name, at: nil)
      log.info("output_accepted", "a topic takes records again", [.topic(change.topic.label)])
    }
  }

  /// A parked request may come from a topic that is no longer read.
  private func name(_ id: PartitionID) -> String { Int(id.topic) < topics.count ? topics[Int(id.topic)] : "" }
}

extension SendResult {
  /// The app's key or certificate cannot be used. What has found that out knows more of it.
  fileprivate var isWithoutCredentials: Bool {
    if case .notSent(.credentials) = self { true } else { false }
  }

  /// Why an app cannot be served, when this is the last of many such results.
  fileprivate var fault: String {
    switch self {
    case .answered(let response):
      "APNs refuses the app's credentials: \(response.reason?.text ?? "HTTP \(response.status)")"
    case .notSent(.tls): "the TLS handshake with APNs fails"
    case .notSent(.credentials): "the app's key or certificate cannot be used"
    case .notSent, .lost, .timedOut: "APNs cannot be reached"
    }
  }
}

extension AppTable {
  /// How many notifications of each app may be in flight, by index; `nil` for those that were removed.
  func caps(default cap: Int) -> [Int?] {
    (0..<count).map { index in
      let app = AppIndex(Int32(index))
      return isRemoved(app) ? nil : maxInFlight(of: app) ?? cap
    }
  }
}

/// Kafka's two clients; each has connections and rights of its own.
enum KafkaSide: String {
  case consumer, producer
}

extension TokenEventReason {
  init?(_ reason: Reason) {
    switch reason {
    case .unregistered: self = .unregistered
    case .expiredToken: self = .expiredToken
    case .badDeviceToken: self = .badDeviceToken
    case .deviceTokenNotForTopic: self = .deviceTokenNotForTopic
    default: return nil
    }
  }
}
