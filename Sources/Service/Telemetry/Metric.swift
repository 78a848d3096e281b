/// What Prometheus must be told of one metric.
package struct Metric: Sendable, Equatable {
  /// Prometheus' types, as far as they are used.
  package enum Kind: String, Sendable { case counter, gauge, histogram }

  package var name: String
  package var kind: Kind
  package var help: String
  /// The names of its labels, in the order they are written.
  package var labels: [String]

  package init(_ name: String, _ kind: Kind, labels: [String] = [], _ help: String) {
    self.name = name
    self.kind = kind
    self.help = help
    self.labels = labels
  }
}

/// One metric of the registry: a row of numbers, one for each value of its last label.
package struct MetricFamily: Sendable {
  package var metric: Metric
  /// Where its numbers begin in a row.
  package var first: Int
  /// The values of the last label, one number each; empty: the metric is one number.
  package var values: [String]
  /// Whether numbers that are still 0 are written too, so that a first increase can be seen as one.
  package var showsZeros: Bool
  /// How many numbers it has in a row.
  package var count: Int { max(1, values.count) }
}
