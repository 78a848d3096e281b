internal import Wire

/// Prometheus' text format, version 0.0.4 ("Exposition formats").
package struct PrometheusText {
  package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  private var out: [UInt8] = []

  /// All metrics of a snapshot.
  package static func render(_ snapshot: MetricSnapshot, process: ProcessSample?) -> [UInt8] {
    var text = PrometheusText()
    text.out.reserveCapacity(16_384 + snapshot.apps.count * 1_536)
    text.renderApps(snapshot)
    text.renderService(snapshot)
    for latency in Latency.allCases { text.histogram(latency, snapshot) }
    text.renderPartitions(snapshot)
    text.renderCertificates(snapshot)
    text.gauge(MetricCatalogue.configuredApps, UInt64(clamping: snapshot.configuredApps))
    let versions = snapshot.versions
    text.gauge(
      MetricCatalogue.buildInfo, 1, values: [versions.martlet, versions.librdkafka, versions.nghttp2, versions.openssl])
    if let process { text.renderProcess(process) }
    return text.out
  }

  private mutating func renderApps(_ snapshot: MetricSnapshot) {
    // Each app's label is escaped once, not once for each line.
    let labels = ([MetricCatalogue.unknownApp] + snapshot.apps).map { Self.label("app", $0) }
    for family in MetricCatalogue.apps {
      header(family.metric)
      let starts = lineStarts(family, labelled: true)
      for (row, label) in labels.enumerated() {
        let base = row * AppSeries.rowLength + family.first
        for index in 0..<family.count {
          let number = snapshot.appNumbers[base + index]
          guard number != 0 || family.showsZeros else { continue }
          out.append(contentsOf: starts[index].before)
          out.append(contentsOf: label)
          out.append(contentsOf: starts[index].after)
          append(number, isGauge: family.metric.kind == .gauge)
        }
      }
    }
  }

  private mutating func renderService(_ snapshot: MetricSnapshot) {
    for family in MetricCatalogue.service {
      header(family.metric)
      let starts = lineStarts(family, labelled: false)
      for index in 0..<family.count {
        let number = snapshot.serviceNumbers[family.first + index]
        guard number != 0 || family.showsZeros else { continue }
        out.append(contentsOf: starts[index].before)
        out.append(contentsOf: starts[index].after)
        append(number, isGauge: family.metric.kind == .gauge)
      }
    }
  }

  /// The constant parts of a family's lines, around the label of the app where there is one.
  private func lineStarts(_ family: MetricFamily, labelled: Bool) -> [(before: [UInt8], after: [UInt8])] {
    let name = Array(family.metric.name.utf8)
    guard !family.values.isEmpty, let key = family.metric.labels.last else {
      return [(labelled ? name + [UInt8(ascii: "{")] : name, labelled ? Array("} ".utf8) : [UInt8(ascii: " ")])]
    }
    return family.values.map { value in
      let label = Self.label(key, value)
      return (
        name + [UInt8(ascii: "{")], (labelled ? [UInt8(ascii: ",")] : []) + label + Array("} ".utf8)
      )
    }
  }

  private mutating func histogram(_ latency: Latency, _ snapshot: MetricSnapshot) {
    let metric = MetricCatalogue.latency(latency)
    header(metric)
    let first = ServiceSeries.histogram(latency)
    var sum: UInt64 = 0
    for (index, bound) in HistogramBuckets.labels.enumerated() {
      sum &+= snapshot.serviceNumbers[first + index]
      append(metric.name)
      append("_bucket{le=\"")
      append(bound)
      append("\"} ")
      append(sum, isGauge: false)
    }
    append(metric.name)
    append("_sum ")
    append(seconds: snapshot.serviceNumbers[first + HistogramBuckets.count])
    append(metric.name)
    append("_count ")
    append(sum, isGauge: false)
  }

  private mutating func renderPartitions(_ snapshot: MetricSnapshot) {
    header(MetricCatalogue.consumerLag)
    for partition in snapshot.partitions {
      guard let lag = partition.lag else { continue }
      append(MetricCatalogue.consumerLag.name)
      append("{")
      out.append(contentsOf: Self.label("topic", partition.topic))
      append(",")
      out.append(contentsOf: Self.label("partition", String(partition.partition)))
      append("} ")
      append(UInt64(max(0, lag)), isGauge: false)
    }
    gauge(MetricCatalogue.assignedPartitions, UInt64(snapshot.partitions.count))
    gauge(MetricCatalogue.pausedPartitions, UInt64(snapshot.partitions.count { $0.isPaused }))
  }

  private mutating func renderCertificates(_ snapshot: MetricSnapshot) {
    header(MetricCatalogue.certificateExpiry)
    for certificate in snapshot.certificates {
      append(MetricCatalogue.certificateExpiry.name)
      append("{")
      out.append(contentsOf: Self.label("app", certificate.app))
      append("} ")
      append(UInt64(max(0, certificate.validUntil.seconds)), isGauge: false)
    }
  }

  private mutating func renderProcess(_ process: ProcessSample) {
    header(MetricCatalogue.processCPU)
    append(MetricCatalogue.processCPU.name)
    append(" ")
    append(seconds: UInt64(max(0, process.cpuNanoseconds)))
    gauge(MetricCatalogue.processMemory, UInt64(max(0, process.residentBytes)))
    gauge(MetricCatalogue.processDescriptors, UInt64(max(0, process.openDescriptors)))
    header(MetricCatalogue.processStart)
    append(MetricCatalogue.processStart.name)
    append(" ")
    append(seconds: UInt64(max(0, process.startTime.milliseconds)) * 1_000_000)
  }

  private mutating func gauge(_ metric: Metric, _ number: UInt64, values: [String] = []) {
    header(metric)
    append(metric.name)
    for (index, pair) in zip(metric.labels, values).enumerated() {
      append(index == 0 ? "{" : ",")
      out.append(contentsOf: Self.label(pair.0, pair.1))
    }
    append(values.isEmpty ? " " : "} ")
    append(number, isGauge: false)
  }

  private mutating func header(_ metric: Metric) {
    append("# HELP ")
    append(metric.name)
    append(" ")
    for byte in metric.help.utf8 { Self.escape(byte, quotes: false, into: &out) }
    append("\n# TYPE ")
    append(metric.name)
    append(" ")
    append(metric.kind.rawValue)
    append("\n")
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
  private mutating func append(_ number: UInt64, isGauge: Bool) {
    let number = isGauge ? UInt64(max(0, Int64(bitPattern: number))) : number
    out.append(decimal: number)
    out.append(UInt8(ascii: "\n"))
  }

  /// Nanoseconds as seconds, and the end of the line.
  private mutating func append(seconds nanoseconds: UInt64) {
    out.append(decimal: nanoseconds / 1_000_000_000)
    let rest = nanoseconds % 1_000_000_000
    if rest != 0 {
      out.append(UInt8(ascii: "."))
      DecimalText.append(rest, digits: 9, to: &out)
    }
    out.append(UInt8(ascii: "\n"))
  }
}
