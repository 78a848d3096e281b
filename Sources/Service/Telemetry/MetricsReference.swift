/// The reference of all metrics, made from the catalogue that the output follows.
package enum MetricsReference {
  /// A metric, with how many series it comes to.
  struct Row {
    var metric: Metric
    var values: [String] = []
    var series: String
  }

  /// Tables in Markdown: one for the apps' metrics, one for the service's, one for the process's.
  package static func markdown() -> String {
    var text = """
      # Metrics

      `GET /metrics` gives these in Prometheus' text format. Counters begin at 0 with the process.

      The number of series follows from three numbers: *apps*, the apps of the configuration and those removed from it
      since the start, and one more, `\(MetricCatalogue.unknownApp)`, for requests that name no known app;
      *partitions*, those assigned to the replica; and the values of a label, which are a closed set. No label holds
      a device token, an id or anything else that comes with a request. Where it says "up to", a series appears with
      its first increase.

      At most: \(appSeries) × apps + partitions + \(fixedSeries).


      """
    text += "## Of each app\n\n" + table(apps) + "\n## Of the service\n\n" + table(service + latencies + partitions)
    text += "\n## Of the process\n\n" + table(process)
    text += "\n## Values of the labels\n\n| metric | label | values |\n|---|---|---|\n"
    for row in rows where !row.values.isEmpty {
      let values = row.values.map { "`\($0)`" }.joined(separator: ", ")
      text += "| `\(row.metric.name)` | `\(row.metric.labels.last ?? "")` | \(values) |\n"
    }
    return text
  }

  /// How many series an app has at most, the date of its certificate among them.
  static let appSeries = MetricCatalogue.apps.reduce(1) { $0 + $1.count }

  /// How many there are at most beside those of apps and partitions.
  static let fixedSeries =
    MetricCatalogue.service.reduce(0) { $0 + $1.count } + Latency.allCases.count * histogramSeries
    + single.count + process.count

  /// The buckets, the open one among them, the sum and the count.
  private static let histogramSeries = HistogramBuckets.count + 2

  /// All rows, in the order of the tables.
  static var rows: [Row] { apps + service + others }

  private static var apps: [Row] {
    MetricCatalogue.apps.map { family in
      let count = family.count == 1 ? "apps" : "\(family.count) × apps"
      return Row(
        metric: family.metric, values: family.values, series: family.showsZeros ? count : "up to \(count)")
    } + [Row(metric: MetricCatalogue.certificateExpiry, series: "up to apps")]
  }

  private static var service: [Row] {
    MetricCatalogue.service.map { family in
      Row(
        metric: family.metric, values: family.values,
        series: family.showsZeros ? "\(family.count)" : "up to \(family.count)")
    }
  }

  private static var latencies: [Row] {
    Latency.allCases.map { Row(metric: MetricCatalogue.latency($0), series: "\(histogramSeries)") }
  }

  private static var partitions: [Row] {
    [Row(metric: MetricCatalogue.consumerLag, series: "up to partitions")] + single.map { Row(metric: $0, series: "1") }
  }

  private static let single = [
    MetricCatalogue.assignedPartitions, MetricCatalogue.pausedPartitions, MetricCatalogue.configuredApps,
    MetricCatalogue.buildInfo,
  ]

  private static let process = [
    MetricCatalogue.processCPU, MetricCatalogue.processMemory, MetricCatalogue.processDescriptors,
    MetricCatalogue.processStart,
  ].map { Row(metric: $0, series: "1") }

  private static var others: [Row] { latencies + partitions + process }

  private static func table(_ rows: [Row]) -> String {
    var text = "| metric | type | labels | series | meaning |\n|---|---|---|---|---|\n"
    for row in rows {
      let labels = row.metric.labels.map { "`\($0)`" }.joined(separator: ", ")
      let kind = row.metric.kind.rawValue
      text += "| `\(row.metric.name)` | \(kind) | \(labels) | \(row.series) | \(row.metric.help) |\n"
    }
    return text
  }
}
