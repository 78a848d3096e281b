/// What Prometheus must be told of one metric.
package struct Metric: Sendable, Equatable {
  /// Prometheus' types, as far as they are used. `info` is OpenMetrics' own; the older format calls it a gauge.
  package enum Kind: String, Sendable { case counter, gauge, histogram, info }

  /// What its numbers count or measure.
  package enum Unit: String, Sendable {
    case notifications, records, requests, partitions, connections, streams, tokens, apps
    case seconds, bytes, threads, descriptors, events, loops
    /// A state: 1 or 0.
    case state
  }

  package var name: String
  package var kind: Kind
  package var unit: Unit
  package var help: String
  /// The names of its labels, in the order they are written.
  package var labels: [String]

  package init(_ name: String, _ kind: Kind, _ unit: Unit, labels: [String] = [], _ help: String) {
    self.name = name
    self.kind = kind
    self.unit = unit
    self.help = help
    self.labels = labels
  }

  /// The name that OpenMetrics gives the family: that of counters and information lacks the ending of its samples.
  var family: String {
    switch kind {
    case .counter where name.hasSuffix("_total"): String(name.dropLast("_total".count))
    case .info where name.hasSuffix("_info"): String(name.dropLast("_info".count))
    case .counter, .gauge, .histogram, .info: name
    }
  }

  /// The unit, where the name ends with it: only then OpenMetrics lets a family have one.
  var namedUnit: String? { family.hasSuffix("_" + unit.rawValue) ? unit.rawValue : nil }
}

/// One metric of the registry: a row of numbers, one for each combination of the values of its labels but `app`.
package struct MetricFamily: Sendable {
  /// Which numbers are written that are still 0. One that is written from the start lets its first increase be seen as
  /// one.
  package enum Zeros: Equatable, Sendable {
    case shown, hidden
    /// Numbers come in groups of this many; those of a group are shown when one of them is not 0, and those of the first
    /// group always.
    case shownInGroups(of: Int)
  }

  package var metric: Metric
  /// Where its numbers begin in a row.
  package var first: Int
  /// For each number, the values of the labels other than `app`; empty: the metric has no such label.
  package var values: [[String]]
  package var zeros: Zeros

  /// How many numbers it has in a row.
  package var count: Int { metric.kind == .histogram ? HistogramBuckets.numbers : max(1, values.count) }
  /// How many series these come to.
  package var series: Int { metric.kind == .histogram ? HistogramBuckets.series : count }
}
