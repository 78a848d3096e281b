/// The reference of all metrics, made from the catalogue that the output follows.
package enum MetricsReference {
  /// A metric, with how many series it comes to.
  struct Row {
    var metric: Metric
    var values: [[String]] = []
    var series: String
  }

  /// Tables in Markdown: one for the apps' metrics, one for the service's, one for the process's.
  package static func markdown() -> String {
    var text = """
      # Metrics

      `GET /metrics` gives these in Prometheus' text format 0.0.4, or as OpenMetrics 1.0 to whoever asks for that
      (`Accept: application/openmetrics-text`). There are no `_created` samples: every counter begins at 0 with the
      process (`process_start_time_seconds`).

      ## How many series there are

      The number of series follows from three numbers: *apps*, the apps of the configuration and those removed from it
      since the start, and one more, `\(MetricCatalogue.unknownApp)`, for records that broke the contract as a whole, whichever app
      they name; *partitions*, those assigned to the replica; and the values of a label, which are a closed set. No label
      holds a device token, an id or anything else that comes with a request. Where it says "up to", a series appears with
      its first increase (those of a push type together).

      At most: \(appSeries) × apps + partitions + \(fixedSeries).


      """
    text += "## Of each app\n\n" + table(apps) + "\n## Of the service\n\n" + table(service)
    text += "\n## Of the process\n\n" + table(process)
    text += "\n## Values of the labels\n\n| metric | label | values |\n|---|---|---|\n"
    for row in rows where !row.values.isEmpty {
      let labels = row.metric.labels.suffix(row.values[0].count)
      for (place, label) in labels.enumerated() {
        var values: [String] = []
        for value in row.values.map({ $0[place] }) where !values.contains(value) { values.append(value) }
        text += "| `\(row.metric.name)` | `\(label)` | \(values.map { "`\($0)`" }.joined(separator: ", ")) |\n"
      }
    }
    return text
  }

  /// How many series an app has at most.
  static let appSeries = MetricCatalogue.apps.reduce(MetricCatalogue.appFacts.count) { $0 + $1.series }

  /// How many there are at most beside those of apps and partitions.
  static let fixedSeries =
    MetricCatalogue.service.reduce(0) { $0 + $1.series } + MetricCatalogue.serviceFacts.count
    + MetricCatalogue.process.count

  /// All rows, in the order of the tables.
  static var rows: [Row] { apps + service + process }

  private static var apps: [Row] {
    MetricCatalogue.apps.map { family in
      let count = family.series == 1 ? "apps" : "\(family.series) × apps"
      return row(family, family.zeros == .shown ? count : "up to \(count)")
    } + MetricCatalogue.appFacts.map { Row(metric: $0, series: "up to apps") }
  }

  private static var service: [Row] {
    MetricCatalogue.service.map { row($0, $0.zeros == .shown ? "\($0.series)" : "up to \($0.series)") }
      + [Row(metric: MetricCatalogue.consumerLag, series: "up to partitions")]
      + MetricCatalogue.serviceFacts.map { Row(metric: $0, series: "1") }
  }

  private static var process: [Row] { MetricCatalogue.process.map { Row(metric: $0, series: "1") } }

  private static func row(_ family: MetricFamily, _ series: String) -> Row {
    Row(metric: family.metric, values: family.values, series: series)
  }

  private static func table(_ rows: [Row]) -> String {
    var text = "| metric | type | labels | unit | series | meaning |\n|---|---|---|---|---|---|\n"
    for row in rows {
      let labels = row.metric.labels.map { "`\($0)`" }.joined(separator: ", ")
      let (kind, unit) = (row.metric.kind.rawValue, row.metric.unit.rawValue)
      text += "| `\(row.metric.name)` | \(kind) | \(labels) | \(unit) | \(row.series) | \(row.metric.help) |\n"
    }
    return text
  }
}
