internal import Delivery

extension MetricCatalogue {
  /// Kept for the service as a whole.
  package static let service: [MetricFamily] = records + publishing + configuration + Latency.allCases.map(latency)

  private static let records: [MetricFamily] = [
    family(
      "records_consumed_total", .counter, .records, at: .recordsConsumed, zeros: .shown, "Records polled from Kafka."),
    family(
      "requests_decoded_total", .counter, .requests, at: .requestsDecoded, zeros: .shown,
      "Well-formed requests that were taken up; a batch is one."),
    family(
      "requests_invalid_total", .counter, .requests, by: "rule", at: ServiceSeries.invalid(.malformedJSON),
      values: InvalidRule.allCases.map(\.rawValue), zeros: .hidden,
      "Records and items of batches that broke the contract, by the rule they broke."),
    family(
      "tombstones_total", .counter, .records, at: .tombstones, zeros: .shown,
      "Records without a value, which are skipped."),
    family(
      "records_skipped_total", .counter, .records, at: .recordsSkipped, zeros: .shown,
      "Records skipped: settled by an earlier commit, read twice, or copies of a parked request that is in good hands."),
    family(
      "unknown_fields_total", .counter, .requests, at: .unknownFields, zeros: .shown,
      "Fields of requests that the contract does not know."),
    family(
      "abandoned_total", .counter, .notifications, at: .abandoned, zeros: .shown,
      "Notifications let go without an end, since their partition was taken away or the service drains; who owns the "
        + "partition next takes them up."),
    family(
      "in_flight_bytes", .gauge, .bytes, at: .bytesInFlight, zeros: .shown,
      "Bytes of requests taken from Kafka and not yet settled, those that are held until they are due included."),
    family(
      "waiting_notifications", .gauge, .notifications, at: .waiting, zeros: .shown,
      "What waits in memory for its time: notifications for their next attempt, results to be written again."),
    family(
      "intake_held", .gauge, .state, at: .intakeHeld, zeros: .shown,
      "1 while no records are taken up because of a cap on what is in flight: in all, in bytes, or of the app that the "
        + "next record is for."),
  ]

  private static let publishing: [MetricFamily] = [
    family(
      "publications_total", .counter, .records, by: "topic", at: ServiceSeries.publications(.results),
      values: OutputTopic.allCases.map(\.label), zeros: .shown, "Records that Kafka acknowledged, by topic."),
    family(
      "publication_failures_total", .counter, .records, by: "topic", at: ServiceSeries.publicationFailures(.results),
      values: OutputTopic.allCases.map(\.label), zeros: .shown,
      "Records that Kafka did not take, by topic. They are produced again."),
    family(
      "output_blocked", .gauge, .state, by: "topic", at: ServiceSeries.outputBlocked(.results),
      values: OutputTopic.allCases.map(\.label), zeros: .shown,
      "1 while a topic refuses records or has acknowledged none for 15 seconds though some wait, by topic; else 0."),
    family(
      "producer_failures_total", .counter, .events, at: .producerFailures, zeros: .shown,
      "Kafka producers that failed for good; each was replaced, and what it had not stored produced again."),
    family(
      "producer_queue_records", .gauge, .records, at: .producerQueue, zeros: .shown,
      "Records on their way to Kafka that it has not acknowledged."),
    family(
      "dead_letters_total", .counter, .records, at: .deadLetters, zeros: .shown,
      "Records that could not be understood and were set aside."),
    family(
      "commits_total", .counter, .requests, at: .commits, zeros: .shown, "Offset commits, failed ones included."),
    family(
      "commit_failures_total", .counter, .requests, at: .commitFailures, zeros: .shown, "Offset commits that failed."),
    family(
      "rebalances_total", .counter, .events, at: .rebalances, zeros: .shown, "Changes of the assignment."),
    family(
      "kafka_errors_total", .counter, .events, at: .kafkaErrors, zeros: .shown,
      "Errors that the Kafka client reported."),
  ]

  private static let configuration: [MetricFamily] = [
    family(
      "reloads_total", .counter, .events, at: .reloads, zeros: .shown,
      "Reloads of the configuration that took effect."),
    family(
      "reload_failures_total", .counter, .events, at: .reloadFailures, zeros: .shown,
      "Reloads of the configuration that were refused and changed nothing."),
    family(
      "last_reload_successful", .gauge, .state, at: .lastReloadGood, zeros: .shown,
      "0 after a reload that was refused, until one is not; else 1."),
    family(
      "configured_timestamp_seconds", .gauge, .seconds, at: .configuredAt, zeros: .shown,
      "When the configuration in effect was loaded, in seconds since 1970."),
  ]

  /// The spans of time, each with its histogram.
  private static func latency(_ latency: Latency) -> MetricFamily {
    let (name, help) =
      switch latency {
      case .recordToSend:
        ("record_to_send_seconds", "From the record's timestamp to the request being handed to a connection.")
      case .answerToSettled:
        (
          "answer_to_settled_seconds",
          "From a notification's end (the last answer, as a rule) to its result being acknowledged by Kafka."
        )
      case .endToEnd:
        ("end_to_end_seconds", "From the record's timestamp to its result being acknowledged by Kafka.")
      case .pingRoundTrip: ("ping_round_trip_seconds", "From a PING to APNs to its acknowledgement.")
      }
    return family(name, .histogram, .seconds, at: ServiceSeries.histogram(latency), zeros: .shown, help)
  }

  private static func family(
    _ name: String, _ kind: Metric.Kind, _ unit: Metric.Unit, by label: String? = nil, at first: ServiceSeries,
    values: [String] = [], zeros: MetricFamily.Zeros, _ help: String
  ) -> MetricFamily {
    MetricFamily(
      metric: Metric(prefix + name, kind, unit, labels: label.map { [$0] } ?? [], help), first: first.index,
      values: values.map { [$0] }, zeros: zeros)
  }
}
