internal import Wire

/// The two text formats of metrics: Prometheus' own, version 0.0.4 ("Exposition formats"), and OpenMetrics 1.0.
///
/// They differ in the names that introduce counters, in units, in the type of information and in the last line. No
/// `_created` samples are written: they would double the series, and every counter begins with the process, whose start
/// is a metric.
package enum MetricsFormat: Sendable, CaseIterable {
  case prometheus, openMetrics

  package var contentType: String {
    switch self {
    case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
    case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
    }
  }
}

/// Writes a snapshot in one of the formats.
package struct PrometheusText {
  private let format: MetricsFormat
  private var out: [UInt8] = []

  private init(_ format: MetricsFormat) { self.format = format }

  /// All metrics of a snapshot.
  ///
  /// - Parameters:
  ///   - snapshot: the metrics as they are now.
  ///   - health: what is said of the configured apps.
  ///   - process: what the kernel says of this process; `nil` where it says nothing.
  ///   - format: Prometheus' text, or OpenMetrics.
  package static func render(
    _ snapshot: MetricSnapshot, health: HealthState?, process: ProcessSample?, as format: MetricsFormat
  ) -> [UInt8] {
    var text = PrometheusText(format)
    text.out.reserveCapacity(32_768 + snapshot.apps.count * 4_096)
    // Each app's label is escaped once, not once for each line.
    let labels = ([MetricCatalogue.unknownApp] + snapshot.apps).map { label("app", $0) }
    for family in MetricCatalogue.apps {
      text.render(family, snapshot.appNumbers, rowLength: AppSeries.rowLength, rows: labels)
    }
    text.renderAppFacts(snapshot, labels, health)
    for family in MetricCatalogue.service {
      text.render(family, snapshot.serviceNumbers, rowLength: ServiceSeries.rowLength, rows: [[]])
    }
    text.renderPartitions(snapshot)
    text.gauge(MetricCatalogue.configuredApps, UInt64(clamping: snapshot.configuredApps))
    text.gauge(MetricCatalogue.draining, health?.isDraining == true ? 1 : 0)
    text.gauge(MetricCatalogue.stuckLoops, UInt64(health?.stuckLoops ?? 0))
    let versions = snapshot.versions
    text.gauge(
      MetricCatalogue.buildInfo, 1, values: [versions.martlet, versions.librdkafka, versions.nghttp2, versions.openssl])
    if let process { text.renderProcess(process) }
    if format == .openMetrics { text.append("# EOF\n") }
    return text.out
  }

  // MARK: Families

  /// The lines of one family, row after row.
  ///
  /// - Parameter rows: each row's own label; empty where there is one row, without a label.
  private mutating func render(_ family: MetricFamily, _ numbers: [UInt64], rowLength: Int, rows: [[UInt8]]) {
    header(family.metric)
    if family.metric.kind == .histogram {
      renderHistogram(family, numbers, rowLength: rowLength, rows: rows)
      return
    }
    let lines = LineParts.of(family, labelled: rows.first?.isEmpty == false)
    let isGauge = family.metric.kind == .gauge
    for (row, label) in rows.enumerated() {
      let base = row * rowLength + family.first
      for index in 0..<family.count where family.shows(index, of: numbers, base) {
        out.append(contentsOf: lines[index].before)
        out.append(contentsOf: label)
        out.append(contentsOf: lines[index].after)
        append(numbers[base + index], isGauge: isGauge)
      }
    }
  }

  private mutating func renderHistogram(
    _ family: MetricFamily, _ numbers: [UInt64], rowLength: Int, rows: [[UInt8]]
  ) {
    let parts = HistogramParts(family.metric.name)
    for (row, label) in rows.enumerated() {
      let base = row * rowLength + family.first
      let isEmpty = numbers[base..<base + HistogramBuckets.count].allSatisfy { $0 == 0 }
      if isEmpty, family.zeros == .hidden { continue }
      var sum: UInt64 = 0
      for (index, bound) in parts.bounds.enumerated() {
        sum &+= numbers[base + index]
        out.append(contentsOf: parts.bucket)
        out.append(contentsOf: label)
        if !label.isEmpty { out.append(UInt8(ascii: ",")) }
        out.append(contentsOf: bound)
        append(sum)
      }
      append(parts.sum, label)
      append(microseconds: numbers[base + HistogramBuckets.count])
      append(parts.count, label)
      append(sum)
    }
  }

  /// A name, its one label if there is one, and the blank before the number.
  private mutating func append(_ name: [UInt8], _ label: [UInt8]) {
    out.append(contentsOf: name)
    if !label.isEmpty {
      out.append(UInt8(ascii: "{"))
      out.append(contentsOf: label)
      out.append(UInt8(ascii: "}"))
    }
    out.append(UInt8(ascii: " "))
  }

  // MARK: Single numbers

  private mutating func renderAppFacts(_ snapshot: MetricSnapshot, _ labels: [[UInt8]], _ health: HealthState?) {
    header(MetricCatalogue.maxInFlight)
    let maxInFlight = Array(MetricCatalogue.maxInFlight.name.utf8)
    for (index, cap) in snapshot.caps.enumerated() where index + 1 < labels.count {
      guard let cap else { continue }
      append(maxInFlight, labels[index + 1])
      append(UInt64(clamping: cap))
    }
    header(MetricCatalogue.appAvailable)
    let available = Array(MetricCatalogue.appAvailable.name.utf8)
    for app in health?.apps ?? [] {
      append(available, Self.label("app", app.name))
      append(app.fault == nil ? 1 : 0)
    }
    fact(MetricCatalogue.providerTokens, of: snapshot.credentials) { $0.token.map { UInt64($0.count) } }
    fact(MetricCatalogue.providerTokenIssued, of: snapshot.credentials) { credential in
      credential.token?.issuedAt.map { UInt64(clamping: $0.seconds) }
    }
    fact(MetricCatalogue.certificateExpiry, of: snapshot.credentials) { credential in
      credential.validUntil.map { UInt64(clamping: $0.seconds) }
    }
  }

  private mutating func fact(
    _ metric: Metric, of credentials: [CredentialSample], _ number: (CredentialSample) -> UInt64?
  ) {
    header(metric)
    let name = Array(metric.name.utf8)
    for credential in credentials {
      guard let number = number(credential) else { continue }
      append(name, Self.label("app", credential.app))
      append(number)
    }
  }

  private mutating func renderPartitions(_ snapshot: MetricSnapshot) {
    header(MetricCatalogue.consumerLag)
    let name = Array(MetricCatalogue.consumerLag.name.utf8)
    for partition in snapshot.partitions {
      guard let lag = partition.lag else { continue }
      let labels = Self.label("topic", partition.topic) + [UInt8(ascii: ",")]
      append(name, labels + Self.label("partition", String(partition.partition)))
      append(UInt64(max(0, lag)))
    }
    gauge(MetricCatalogue.assignedPartitions, UInt64(snapshot.partitions.count))
    gauge(MetricCatalogue.pausedPartitions, UInt64(snapshot.partitions.count { $0.isPaused }))
  }

  private mutating func renderProcess(_ process: ProcessSample) {
    header(MetricCatalogue.processCPU)
    append(MetricCatalogue.processCPU.name + " ")
    append(microseconds: UInt64(max(0, process.cpuNanoseconds)) / 1000)
    gauge(MetricCatalogue.processMemory, UInt64(max(0, process.residentBytes)))
    gauge(MetricCatalogue.processDescriptors, UInt64(max(0, process.openDescriptors)))
    gauge(MetricCatalogue.processMostDescriptors, UInt64(max(0, process.mostDescriptors)))
    gauge(MetricCatalogue.processThreads, UInt64(max(0, process.threads)))
    header(MetricCatalogue.processStart)
    append(MetricCatalogue.processStart.name + " ")
    append(microseconds: UInt64(max(0, process.startTime.milliseconds)) * 1000)
  }

  private mutating func gauge(_ metric: Metric, _ number: UInt64, values: [String] = []) {
    header(metric)
    append(metric.name)
    for (index, pair) in zip(metric.labels, values).enumerated() {
      append(index == 0 ? "{" : ",")
      out.append(contentsOf: Self.label(pair.0, pair.1))
    }
    append(values.isEmpty ? " " : "} ")
    append(number)
  }

  // MARK: Parts of lines

  private mutating func header(_ metric: Metric) {
    let name = format == .openMetrics ? metric.family : metric.name
    let kind = format == .prometheus && metric.kind == .info ? Metric.Kind.gauge : metric.kind
    append("# HELP \(name) ")
    // OpenMetrics escapes quotes here too; the older format would show the backslash.
    for byte in metric.help.utf8 { Self.escape(byte, quotes: format == .openMetrics, into: &out) }
    append("\n# TYPE \(name) \(kind.rawValue)\n")
    if format == .openMetrics, let unit = metric.namedUnit { append("# UNIT \(name) \(unit)\n") }
  }

  /// `name="value"`, with the value escaped.
  static func label(_ name: String, _ value: String) -> [UInt8] {
    var bytes = Array(name.utf8)
    bytes.append(contentsOf: Array("=\"".utf8))
    for byte in value.utf8 { escape(byte, quotes: true, into: &bytes) }
    bytes.append(UInt8(ascii: "\""))
    return bytes
  }

  private static func escape(_ byte: UInt8, quotes: Bool, into bytes: inout [UInt8]) {
    switch byte {
    case UInt8(ascii: "\\"): bytes.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "\\")])
    case UInt8(ascii: "\n"): bytes.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "n")])
    case UInt8(ascii: "\"") where quotes: bytes.append(contentsOf: [UInt8(ascii: "\\"), byte])
    default: bytes.append(byte)
    }
  }

  private mutating func append(_ text: String) { out.append(contentsOf: text.utf8) }

  /// A number and the end of its line. A gauge is a sum of steps up and down and may be below 0 for a moment: while
  /// one thread's step down is seen and another's step up is not.
  private mutating func append(_ number: UInt64, isGauge: Bool = false) {
    let number = isGauge ? UInt64(max(0, Int64(bitPattern: number))) : number
    out.append(decimal: number)
    out.append(UInt8(ascii: "\n"))
  }

  /// Microseconds as seconds, and the end of the line.
  private mutating func append(microseconds: UInt64) {
    out.append(decimal: microseconds / 1_000_000)
    let rest = microseconds % 1_000_000
    if rest != 0 {
      out.append(UInt8(ascii: "."))
      DecimalText.append(rest, digits: 6, to: &out)
    }
    out.append(UInt8(ascii: "\n"))
  }
}

extension MetricFamily {
  /// Whether the number at `index` of the row that begins at `base` is written.
  fileprivate func shows(_ index: Int, of numbers: [UInt64], _ base: Int) -> Bool {
    switch zeros {
    case .shown: true
    case .hidden: numbers[base + index] != 0
    case .shownInGroups(let size):
      index < size || numbers[base + index / size * size..<base + (index / size + 1) * size].contains { $0 != 0 }
    }
  }
}

/// The constant parts of a line, around the label of its row where there is one.
private struct LineParts {
  var before: [UInt8]
  var after: [UInt8]

  static func of(_ family: MetricFamily, labelled: Bool) -> [LineParts] {
    let name = Array(family.metric.name.utf8)
    let keys = labelled ? family.metric.labels.dropFirst() : family.metric.labels[...]
    guard !family.values.isEmpty else {
      return [
        LineParts(
          before: labelled ? name + [UInt8(ascii: "{")] : name, after: Array((labelled ? "} " : " ").utf8))
      ]
    }
    return family.values.map { values in
      let labels = zip(keys, values).map { PrometheusText.label($0, $1) }.joined(separator: [UInt8(ascii: ",")])
      let separator = labelled ? [UInt8(ascii: ",")] : []
      return LineParts(before: name + [UInt8(ascii: "{")], after: separator + labels + Array("} ".utf8))
    }
  }
}

/// The constant parts of a histogram's lines.
private struct HistogramParts {
  let bucket: [UInt8]
  let bounds: [[UInt8]]
  let sum: [UInt8]
  let count: [UInt8]

  init(_ name: String) {
    bucket = Array("\(name)_bucket{".utf8)
    bounds = HistogramBuckets.labels.map { Array("le=\"\($0)\"} ".utf8) }
    sum = Array("\(name)_sum".utf8)
    count = Array("\(name)_count".utf8)
  }
}
