/// Every metric that the service exposes, with its words: the one list that output, documentation and tests follow.
package enum MetricCatalogue {
  package static let consumerLag = Metric(
    prefix + "consumer_lag_records", .gauge, .records, labels: ["topic", "partition"],
    "Records of an assigned partition that lie behind the committed offset.")
  package static let assignedPartitions = Metric(
    prefix + "assigned_partitions", .gauge, .partitions, "Partitions that are assigned to this replica.")
  package static let pausedPartitions = Metric(
    prefix + "paused_partitions", .gauge, .partitions,
    "Assigned partitions that wait: their next record is parked until later or comes back to an app at its cap, their "
      + "commit is at its largest, or too many records lie beyond it. Other caps on what is in flight show in "
      + "martlet_intake_held.")
  package static let maxInFlight = Metric(
    prefix + "max_in_flight_notifications", .gauge, .notifications, labels: ["app"],
    "How many notifications of the app may be in flight; those whose results are on their way do not count.")
  package static let appAvailable = Metric(
    prefix + "app_available", .gauge, .state, labels: ["app"],
    "1 while a configured app can be served; 0 while its credentials cannot be used or are refused, or APNs cannot be "
      + "reached for it.")
  package static let providerTokens = Metric(
    prefix + "provider_tokens_total", .counter, .tokens, labels: ["app"],
    "Provider tokens that were signed with the app's key. Apps that share a key share its tokens.")
  package static let providerTokenIssued = Metric(
    prefix + "provider_token_issued_timestamp_seconds", .gauge, .seconds, labels: ["app"],
    "When the provider token in use was signed, in seconds since 1970; its age is time() less this.")
  package static let certificateExpiry = Metric(
    prefix + "certificate_expiry_timestamp_seconds", .gauge, .seconds, labels: ["app"],
    "When the certificate of an app that has one expires, in seconds since 1970.")
  package static let configuredApps = Metric(prefix + "configured_apps", .gauge, .apps, "Apps in the configuration.")
  package static let draining = Metric(
    prefix + "draining", .gauge, .state, "1 while the service drains, else 0.")
  package static let stuckLoops = Metric(
    prefix + "stuck_loops", .gauge, .loops,
    "Loops, of lanes or delivery, that have not turned for 15 seconds: a restart is due, and /healthz says so too.")
  package static let buildInfo = Metric(
    prefix + "build_info", .info, .state, labels: ["version", "librdkafka", "nghttp2", "openssl"],
    "Always 1; the labels are the versions in use.")

  // The names that every Prometheus client uses for its process, so that common dashboards find them.
  package static let processCPU = Metric(
    "process_cpu_seconds_total", .counter, .seconds, "User and system CPU time spent by the process.")
  package static let processMemory = Metric(
    "process_resident_memory_bytes", .gauge, .bytes, "Resident memory of the process.")
  package static let processDescriptors = Metric("process_open_fds", .gauge, .descriptors, "Open file descriptors.")
  package static let processMostDescriptors = Metric(
    "process_max_fds", .gauge, .descriptors, "How many file descriptors may be open.")
  package static let processThreads = Metric("process_threads", .gauge, .threads, "Threads of the process.")
  package static let processStart = Metric(
    "process_start_time_seconds", .gauge, .seconds, "When the process started, in seconds since 1970.")

  /// What is known of each app beside the numbers that are counted; each is one series at most.
  package static let appFacts = [maxInFlight, appAvailable, providerTokens, providerTokenIssued, certificateExpiry]

  /// Single numbers of the service that are not counted but looked up.
  package static let serviceFacts = [
    assignedPartitions, pausedPartitions, configuredApps, draining, stuckLoops, buildInfo,
  ]

  package static let process = [
    processCPU, processMemory, processDescriptors, processMostDescriptors, processThreads, processStart,
  ]

  /// Every metric, in the order of the output.
  package static let all: [Metric] =
    apps.map(\.metric) + appFacts + service.map(\.metric) + [consumerLag] + serviceFacts + process

  /// The label of requests that name no known app.
  package static let unknownApp = "unknown"

  static let prefix = "martlet_"
}
