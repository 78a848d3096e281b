internal import APNs
internal import Delivery

extension MetricCatalogue {
  /// Kept for each app; the first label is always `app`.
  package static let apps: [MetricFamily] = [
    family(
      "notifications_total", .counter, .notifications, by: ["push_type", "status"],
      at: AppSeries.notifications(.delivered, .alert),
      values: PushType.allCases.flatMap { type in Ending.Status.allCases.map { [type.name, $0.rawValue] } },
      zeros: .shownInGroups(of: Ending.Status.allCases.count),
      "Notifications that have ended, by push type and result status."),
    family(
      "rejections_total", .counter, .notifications, by: ["reason"], at: AppSeries.rejections(Reason.badCollapseID),
      values: reasons, zeros: .hidden, "Notifications that APNs rejected, by reason."),
    family(
      "failures_total", .counter, .notifications, by: ["cause"], at: AppSeries.failures(.refreshedToken),
      values: RetryPolicy.Cause.allCases.map { [$0.rawValue] }, zeros: .hidden,
      "Notifications that were given up, by what the last attempt came to."),
    family(
      "attempts_total", .counter, .requests, at: .attempts, zeros: .shown,
      "Requests that reached APNs, or may have."),
    family(
      "retries_total", .counter, .requests, by: ["cause"], at: AppSeries.retries(.refreshedToken),
      values: RetryPolicy.Cause.allCases.map { [$0.rawValue] }, zeros: .hidden,
      "Further attempts, by the cause of the one before."),
    family(
      "resent_total", .counter, .notifications, at: .resent, zeros: .hidden,
      "Notifications sent again though the fate of an earlier attempt is not known; each may be a duplicate."),
    family(
      "deferred_total", .counter, .notifications, at: .deferred, zeros: .hidden,
      "Requests parked on the deferred topic: app or device could not take them, or their next attempt is far off."),
    family(
      "undeferred_total", .counter, .notifications, at: .undeferred, zeros: .hidden,
      "Parked requests that were taken up again; what is parked grows while fewer are than were parked."),
    family(
      "in_flight_notifications", .gauge, .notifications, at: .inFlight, zeros: .shown,
      "Notifications taken from Kafka and not yet settled."),
    histogram(
      "send_to_answer_seconds", at: AppSeries.histogram(.sendToAnswer),
      "From the request being handed to a connection to APNs' answer."),
    family(
      "connections", .gauge, .connections, by: ["state"], at: AppSeries.connections(.connecting),
      values: ConnectionPhase.allCases.map { [$0.label] }, zeros: .hidden, "Connections to APNs, by state."),
    family(
      "open_streams", .gauge, .streams, at: .openStreams, zeros: .shown,
      "Requests on connections to APNs that have no answer yet."),
    family(
      "connections_opened_total", .counter, .connections, at: .connectionsOpened, zeros: .hidden,
      "Connections to APNs that were opened."),
    family(
      "connections_closed_total", .counter, .connections, by: ["cause"], at: AppSeries.connectionsClosed(.unreachable),
      values: CloseCause.allCases.map { [$0.label] }, zeros: .hidden,
      "Connections to APNs that ended or could not be made, by cause."),
    family(
      "goaways_total", .counter, .connections, at: .goAways, zeros: .hidden,
      "Connections that APNs ended with GOAWAY."),
    family(
      "invalid_token_events_total", .counter, .tokens, by: ["reason"], at: AppSeries.invalidTokens(.unregistered),
      values: TokenEventReason.allCases.map { [$0.label] }, zeros: .hidden,
      "Device tokens that APNs rejected for good, by reason."),
    family(
      "app_suspect", .gauge, .state, at: .suspect, zeros: .shown,
      "1 while APNs calls most of the app's device tokens bad, as it does when the environment is wrong; else 0."),
  ]

  /// Apple's reasons, in the order of the table; what it does not know is `other`.
  private static let reasons = Reason.allCases.map { [$0 == .unknown ? "other" : $0.text] }

  private static func family(
    _ name: String, _ kind: Metric.Kind, _ unit: Metric.Unit, by labels: [String] = [], at first: AppSeries,
    values: [[String]] = [], zeros: MetricFamily.Zeros, _ help: String
  ) -> MetricFamily {
    MetricFamily(
      metric: Metric(prefix + name, kind, unit, labels: ["app"] + labels, help), first: first.index, values: values,
      zeros: zeros)
  }

  private static func histogram(_ name: String, at first: AppSeries, _ help: String) -> MetricFamily {
    family(name, .histogram, .seconds, at: first, zeros: .hidden, help)
  }
}
