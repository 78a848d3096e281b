internal import APNs
internal import Delivery
internal import Wire

/// What `/status.json` says: all that the status page shows, bounded however much there is of it.
package struct StatusDocument {
  /// More apps, partitions and problems than these are counted, not shown.
  static let mostApps = 2_000
  static let mostPartitions = 500
  static let mostProblems = 30

  let snapshot: MetricSnapshot
  let health: HealthState
  let process: ProcessSample?
  let history: StatusHistory
  let problems: [ProblemBook.Problem]
  /// Of this replica.
  let host: String
  let time: UnixTime

  /// The document, as JSON.
  func json() -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("time")
    writer.integer(time.milliseconds)
    writeService(&writer)
    writeTotals(&writer)
    writeHistory(&writer)
    writeConnections(&writer)
    StatusApps(self).write(&writer)
    writePartitions(&writer)
    StatusProblems(self).write(&writer)
    writer.endObject()
    return writer.take()
  }

  // MARK: The service

  private func writeService(_ writer: inout JSONWriter) {
    writer.key("service")
    writer.beginObject()
    writer.field("version", snapshot.versions.martlet)
    writer.field("host", host)
    let (state, why) = state
    writer.field("state", state)
    writer.list("why", why)
    writer.field("started", process?.startTime.milliseconds ?? time.milliseconds)
    writer.field("configured", Int64(snapshot.value(.configuredAt)) * 1000)
    writer.key("reload_ok")
    writer.bool(snapshot.value(.lastReloadGood) != 0)
    writer.decimal("cpu", history.processorPercent)
    writer.field("memory", Int64(process?.residentBytes ?? 0))
    writer.field("descriptors", Int64(process?.openDescriptors ?? 0))
    writer.field("most_descriptors", Int64(process?.mostDescriptors ?? 0))
    writer.field("threads", Int64(process?.threads ?? 0))
    writer.endObject()
  }

  /// One word, and what there is to say to it.
  private var state: (String, [String]) {
    let stuck = HealthAnswer.liveChecks(health).filter { $0.fault != nil }
    if !stuck.isEmpty { return ("stuck", stuck.map { "\($0.name) \($0.fault ?? "")" }) }
    if health.isDraining { return ("draining", []) }
    let missing = HealthAnswer.readyChecks(health).filter { $0.fault != nil }
    if missing.isEmpty { return ("ready", []) }
    let words = missing.map { "\($0.name) \($0.fault ?? "")" }
    return (health.hadJoinedGroup ? "not ready" : "starting", words)
  }

  private func writeTotals(_ writer: inout JSONWriter) {
    let totals = history.service.last?.totals ?? OutcomeTotals()
    writer.key("totals")
    writer.beginObject()
    writer.field("delivered", Int64(totals.delivered))
    writer.field("not_delivered", Int64(totals.bad))
    let invalid = InvalidRule.allCases.reduce(0) { $0 + snapshot.value(.invalid($1)) }
    let failures = OutputTopic.allCases.reduce(0) { $0 + snapshot.value(.publicationFailures($1)) }
    let apps = snapshot.apps.indices.map { AppIndex(Int32($0)) }
    let inFlight = ([nil] + apps).reduce(0) { $0 + max(0, snapshot.value(.inFlight, app: $1)) }
    let numbers: [(String, Int)] = [
      ("consumed", snapshot.value(.recordsConsumed)), ("invalid_requests", invalid),
      ("dead_letters", snapshot.value(.deadLetters)), ("in_flight", inFlight),
      ("in_flight_bytes", snapshot.value(.bytesInFlight)), ("waiting", snapshot.value(.waiting)),
      ("producer_queue", snapshot.value(.producerQueue)), ("publication_failures", failures),
      ("commits", snapshot.value(.commits)), ("commit_failures", snapshot.value(.commitFailures)),
      ("rebalances", snapshot.value(.rebalances)), ("kafka_errors", snapshot.value(.kafkaErrors)),
      ("abandoned", snapshot.value(.abandoned)),
      ("parked", apps.reduce(0) { $0 + snapshot.value(.deferred, app: $1) }),
      ("unparked", apps.reduce(0) { $0 + snapshot.value(.undeferred, app: $1) }),
    ]
    for (name, number) in numbers { writer.field(name, Int64(number)) }
    writer.key("held")
    writer.bool(snapshot.value(.intakeHeld) != 0)
    writer.endObject()
  }

  private func writeHistory(_ writer: inout JSONWriter) {
    writer.key("latency_us")
    writer.beginObject()
    for stage in StatusHistory.Stage.allCases {
      writer.list(stage.name, history.lastMinute(stage, [0.5, 0.99]))
    }
    writer.endObject()
    writer.key("history")
    writer.beginObject()
    writer.decimals("delivered", history.steps { Double($1.totals.delivered - $0.totals.delivered) / $2 })
    writer.decimals("not_delivered", history.steps { Double($1.totals.bad - $0.totals.bad) / $2 })
    writer.decimals("retries", history.steps { Double($1.totals.retries - $0.totals.retries) / $2 })
    writer.list("in_flight", history.service.map(\.inFlight))
    writer.list("lag", history.service.map(\.lag))
    writer.list("connections", history.service.map(\.connections))
    writer.list("p50_us", history.quantiles(0.5, of: .endToEnd))
    writer.list("p99_us", history.quantiles(0.99, of: .endToEnd))
    writer.endObject()
  }

  private func writeConnections(_ writer: inout JSONWriter) {
    let apps = snapshot.apps.indices.map { AppIndex(Int32($0)) }
    func all(_ series: AppSeries) -> Int64 { Int64(max(0, apps.reduce(0) { $0 + snapshot.value(series, app: $1) })) }
    writer.key("connections")
    writer.beginObject()
    for phase in ConnectionPhase.allCases { writer.field(phase.label, all(.connections(phase))) }
    writer.field("streams", all(.openStreams))
    writer.field("opened", all(.connectionsOpened))
    writer.field("goaways", all(.goAways))
    writer.key("closed")
    writer.beginObject()
    for cause in CloseCause.allCases { writer.field(cause.label, all(.connectionsClosed(cause))) }
    writer.endObject()
    writer.endObject()
  }

  private func writePartitions(_ writer: inout JSONWriter) {
    let partitions = snapshot.partitions.sorted {
      ($1.lag ?? -1, $0.topic, $0.partition) < ($0.lag ?? -1, $1.topic, $1.partition)
    }
    writer.key("partitions")
    writer.beginArray()
    for partition in partitions.prefix(Self.mostPartitions) {
      writer.beginObject()
      writer.field("topic", partition.topic)
      writer.field("partition", Int64(partition.partition))
      writer.key("lag")
      if let lag = partition.lag { writer.integer(max(0, lag)) } else { writer.null() }
      writer.key("paused")
      writer.bool(partition.isPaused)
      writer.endObject()
    }
    writer.endArray()
    writer.field("partitions_left_out", Int64(max(0, partitions.count - Self.mostPartitions)))
  }
}

extension JSONWriter {
  mutating func list(_ name: String, _ numbers: [Int?]) {
    key(name)
    beginArray()
    for number in numbers { if let number { integer(number) } else { null() } }
    endArray()
  }

  /// A number with one decimal; what is none, or far out, is 0.
  mutating func decimal(_ name: String, _ number: Double) {
    key(name)
    tenths(number)
  }

  mutating func decimals(_ name: String, _ numbers: [Double]) {
    key(name)
    beginArray()
    for number in numbers { tenths(number) }
    endArray()
  }

  private mutating func tenths(_ number: Double) {
    let tenths = number.isFinite && number.magnitude < 1e15 ? Int64((number * 10).rounded()) : 0
    let sign = tenths < 0 ? "-" : ""
    raw("\(sign)\(tenths.magnitude / 10).\(tenths.magnitude % 10)".utf8.span)
  }
}
