internal import APNs
internal import Delivery

/// Every metric that the service exposes, with its words: the one list that output, documentation and tests follow.
package enum MetricCatalogue {
  /// Kept for each app; the first label is always `app`.
  package static let apps: [MetricFamily] = [
    ofApp(
      "notifications_total", .counter, by: "status", at: AppSeries.notifications(.delivered).index,
      values: Ending.Status.allCases.map(\.rawValue), showsZeros: true,
      "Notifications that have ended, by result status."),
    ofApp(
      "rejections_total", .counter, by: "reason", at: AppSeries.rejections(Reason.badCollapseID).index, values: reasons,
      "Notifications that APNs rejected, by reason."),
    ofApp(
      "attempts_total", .counter, at: AppSeries.attempts.index, showsZeros: true,
      "Requests handed to a connection to APNs."),
    ofApp(
      "retries_total", .counter, by: "cause", at: AppSeries.retries(.notSent).index,
      values: RetryPolicy.Cause.allCases.map(\.rawValue),
      "Further attempts, by the cause of the one before."),
    ofApp(
      "resent_total", .counter, at: AppSeries.resent.index,
      "Notifications sent again though the fate of an earlier attempt is not known; each may be a duplicate."),
    ofApp(
      "deferred_total", .counter, at: AppSeries.deferred.index,
      "Requests parked on the deferred topic because their app could not take them."),
    ofApp(
      "in_flight_notifications", .gauge, at: AppSeries.inFlight.index, showsZeros: true,
      "Notifications taken from Kafka and not yet settled, by app."),
    ofApp(
      "connections", .gauge, by: "state", at: AppSeries.connections(.connecting).index,
      values: ConnectionPhase.allCases.map(\.label),
      "Connections to APNs, by state."),
    ofApp(
      "connections_opened_total", .counter, at: AppSeries.connectionsOpened.index,
      "Connections to APNs that were opened."),
    ofApp(
      "connections_closed_total", .counter, by: "cause", at: AppSeries.connectionsClosed(.unreachable).index,
      values: CloseCause.allCases.map(\.label),
      "Connections to APNs that ended or could not be made, by cause."),
    ofApp("goaways_total", .counter, at: AppSeries.goAways.index, "Connections that APNs ended with GOAWAY."),
    ofApp("provider_tokens_total", .counter, at: AppSeries.providerTokens.index, "Provider tokens that were signed."),
    ofApp(
      "invalid_token_events_total", .counter, by: "reason", at: AppSeries.invalidTokens(.unregistered).index,
      values: TokenEventReason.allCases.map(\.label),
      "Device tokens that APNs rejected for good, by reason."),
    ofApp(
      "app_suspect", .gauge, at: AppSeries.suspect.index, showsZeros: true,
      "1 while APNs calls most of the app's device tokens bad, as it does when the environment is wrong; else 0."),
  ]

  /// Kept for the service as a whole.
  package static let service: [MetricFamily] = [
    ofService(
      "records_consumed_total", .counter, at: ServiceSeries.recordsConsumed.index, showsZeros: true,
      "Records polled from Kafka."),
    ofService(
      "requests_decoded_total", .counter, at: ServiceSeries.requestsDecoded.index, showsZeros: true,
      "Records that were well-formed requests."),
    ofService(
      "requests_invalid_total", .counter, by: "rule", at: ServiceSeries.invalid(.malformedJSON).index,
      values: InvalidRule.allCases.map(\.rawValue),
      "Records that broke the contract, by the rule they broke."),
    ofService(
      "tombstones_total", .counter, at: ServiceSeries.tombstones.index, "Records without a value, which are skipped."),
    ofService(
      "records_skipped_total", .counter, at: ServiceSeries.recordsSkipped.index,
      "Records skipped because an earlier commit says that they are settled."),
    ofService(
      "unknown_fields_total", .counter, at: ServiceSeries.unknownFields.index,
      "Fields of requests that the contract does not know."),
    ofService(
      "in_flight_bytes", .gauge, at: ServiceSeries.bytesInFlight.index, showsZeros: true,
      "Bytes of notifications taken from Kafka and not yet settled."),
    ofService(
      "publications_total", .counter, by: "topic", at: ServiceSeries.publications(.results).index,
      values: OutputTopic.allCases.map(\.label), showsZeros: true,
      "Records that Kafka acknowledged, by topic."),
    ofService(
      "publication_failures_total", .counter, by: "topic", at: ServiceSeries.publicationFailures(.results).index,
      values: OutputTopic.allCases.map(\.label), showsZeros: true,
      "Records that Kafka did not take, by topic."),
    ofService(
      "dead_letters_total", .counter, at: ServiceSeries.deadLetters.index, showsZeros: true,
      "Records that could not be understood and were set aside."),
    ofService(
      "commits_total", .counter, at: ServiceSeries.commits.index, showsZeros: true, "Offset commits that succeeded."),
    ofService(
      "commit_failures_total", .counter, at: ServiceSeries.commitFailures.index, showsZeros: true,
      "Offset commits that failed."),
    ofService(
      "rebalances_total", .counter, at: ServiceSeries.rebalances.index, showsZeros: true, "Changes of the assignment."),
    ofService(
      "kafka_errors_total", .counter, at: ServiceSeries.kafkaErrors.index, showsZeros: true,
      "Errors that the Kafka client reported."),
    ofService(
      "reloads_total", .counter, at: ServiceSeries.reloads.index, showsZeros: true,
      "Reloads of the configuration that took effect."),
    ofService(
      "reload_failures_total", .counter, at: ServiceSeries.reloadFailures.index, showsZeros: true,
      "Reloads of the configuration that were refused and changed nothing."),
    ofService(
      "draining", .gauge, at: ServiceSeries.draining.index, showsZeros: true, "1 while the service drains, else 0."),
  ]

  /// The spans of time, each with its histogram.
  package static func latency(_ latency: Latency) -> Metric {
    switch latency {
    case .recordToSend:
      Metric(
        prefix + "record_to_send_seconds", .histogram,
        "From the record's timestamp to the request being handed to a connection.")
    case .sendToAnswer:
      Metric(
        prefix + "send_to_answer_seconds", .histogram, "From the request being handed to a connection to APNs' answer.")
    case .endToEnd:
      Metric(
        prefix + "end_to_end_seconds", .histogram,
        "From the record's timestamp to its result being acknowledged by Kafka.")
    }
  }

  package static let consumerLag = Metric(
    prefix + "consumer_lag_records", .gauge, labels: ["topic", "partition"],
    "Records of an assigned partition that lie behind the committed offset.")
  package static let assignedPartitions = Metric(
    prefix + "assigned_partitions", .gauge, "Partitions that are assigned to this replica.")
  package static let pausedPartitions = Metric(
    prefix + "paused_partitions", .gauge, "Assigned partitions that are paused because too much is in flight.")
  package static let certificateExpiry = Metric(
    prefix + "certificate_expiry_timestamp_seconds", .gauge, labels: ["app"],
    "When the certificate of an app that has one expires, in seconds since 1970.")
  package static let configuredApps = Metric(prefix + "configured_apps", .gauge, "Apps in the configuration.")
  package static let buildInfo = Metric(
    prefix + "build_info", .gauge, labels: ["version", "librdkafka", "nghttp2", "openssl"],
    "Always 1; the labels are the versions in use.")

  // The names that every Prometheus client uses for its process, so that common dashboards find them.
  package static let processCPU = Metric(
    "process_cpu_seconds_total", .counter, "User and system CPU time spent by the process.")
  package static let processMemory = Metric(
    "process_resident_memory_bytes", .gauge, "Resident memory of the process.")
  package static let processDescriptors = Metric("process_open_fds", .gauge, "Open file descriptors.")
  package static let processStart = Metric(
    "process_start_time_seconds", .gauge, "When the process started, in seconds since 1970.")

  /// Every metric, in the order of the output.
  package static let all: [Metric] =
    apps.map(\.metric) + service.map(\.metric) + Latency.allCases.map(latency)
    + [
      consumerLag, assignedPartitions, pausedPartitions, certificateExpiry, configuredApps, buildInfo, processCPU,
      processMemory, processDescriptors, processStart,
    ]

  /// The label of requests that name no known app.
  package static let unknownApp = "unknown"

  static let prefix = "martlet_"

  /// Apple's reasons, in the order of the table; what it does not know is `other`.
  private static let reasons = Reason.allCases.map { $0 == .unknown ? "other" : $0.text }

  private static func ofApp(
    _ name: String, _ kind: Metric.Kind, by label: String? = nil, at first: Int, values: [String] = [],
    showsZeros: Bool = false, _ help: String
  ) -> MetricFamily {
    MetricFamily(
      metric: Metric(prefix + name, kind, labels: ["app"] + (label.map { [$0] } ?? []), help), first: first,
      values: values, showsZeros: showsZeros)
  }

  private static func ofService(
    _ name: String, _ kind: Metric.Kind, by label: String? = nil, at first: Int, values: [String] = [],
    showsZeros: Bool = false, _ help: String
  ) -> MetricFamily {
    MetricFamily(
      metric: Metric(prefix + name, kind, labels: label.map { [$0] } ?? [], help), first: first, values: values,
      showsZeros: showsZeros)
  }
}
