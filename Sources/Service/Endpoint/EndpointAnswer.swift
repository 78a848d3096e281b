/// What the endpoint answers to one request.
package struct EndpointAnswer: Sendable, Equatable {
  package var status: Int
  package var contentType: String
  package var body: [UInt8]
  /// Further header fields.
  package var headers: [Header] = []

  /// A header field.
  package struct Header: Sendable, Equatable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  package init(status: Int, contentType: String, body: [UInt8]) {
    self.status = status
    self.contentType = contentType
    self.body = body
  }

  /// A JSON document; nobody is to keep it.
  package static func json(_ status: Int, _ body: [UInt8]) -> EndpointAnswer {
    var answer = EndpointAnswer(status: status, contentType: "application/json", body: body)
    answer.headers = [Header("Cache-Control", "no-store")]
    return answer
  }

  /// A short answer for people.
  package static func text(_ status: Int, _ text: String) -> EndpointAnswer {
    EndpointAnswer(status: status, contentType: "text/plain; charset=utf-8", body: Array(text.utf8))
  }
}

/// What a request asks for, as far as answers depend on it.
package struct EndpointRequest: Sendable {
  package var method: String
  /// With the query, which is ignored.
  package var target: String
  package var accept: String?

  package init(_ target: String, method: String = "GET", accept: String? = nil) {
    self.method = method
    self.target = target
    self.accept = accept
  }
}

/// What the endpoint shows beside metrics, and whether the service lives and is ready.
package struct EndpointSwitches: Sendable {
  /// The status page and its data.
  package var statusPage: Bool
  /// What is not ready, and why.
  package var healthDetails: Bool

  package init(statusPage: Bool = true, healthDetails: Bool = true) {
    self.statusPage = statusPage
    self.healthDetails = healthDetails
  }
}

/// Which answer belongs to which path.
package struct EndpointRoutes {
  package var switches: EndpointSwitches
  /// Each is called for its path alone.
  package var metrics: (MetricsFormat) -> EndpointAnswer
  package var health: () -> HealthState
  package var status: () -> EndpointAnswer

  package init(
    _ switches: EndpointSwitches, metrics: @escaping (MetricsFormat) -> EndpointAnswer,
    health: @escaping () -> HealthState, status: @escaping () -> EndpointAnswer
  ) {
    self.switches = switches
    self.metrics = metrics
    self.health = health
    self.status = status
  }

  /// The paths that there are.
  package var paths: [String] {
    (switches.statusPage ? ["/", "/status.json"] : []) + ["/metrics", "/healthz", "/readyz"]
  }

  /// The answer to a request, whatever it asks for.
  package func answer(_ request: EndpointRequest) -> EndpointAnswer {
    let path = String(request.target.prefix { $0 != "?" && $0 != "#" })
    guard paths.contains(path) else {
      return .text(404, "Not found. There are:\n" + paths.map { "\($0)\n" }.joined())
    }
    guard request.method == "GET" || request.method == "HEAD" else {
      var answer = EndpointAnswer.text(405, "Only GET and HEAD.\n")
      answer.headers = [EndpointAnswer.Header("Allow", "GET, HEAD")]
      return answer
    }
    switch path {
    case "/": return StatusPage.answer
    case "/status.json": return status()
    case "/metrics": return metrics(MetricsFormat(accept: request.accept))
    case "/healthz": return HealthAnswer.live(health(), isDetailed: switches.healthDetails)
    default: return HealthAnswer.ready(health(), isDetailed: switches.healthDetails)
    }
  }
}

/// The answer of `/metrics`.
package enum MetricsAnswer {
  /// - Parameters:
  ///   - snapshot: the metrics as they are now.
  ///   - health: what is said of the configured apps.
  ///   - process: what the kernel says of this process; `nil` where it says nothing.
  ///   - format: what the scraper has asked for.
  package static func answer(
    _ snapshot: MetricSnapshot, health: HealthState, process: ProcessSample?, as format: MetricsFormat
  ) -> EndpointAnswer {
    EndpointAnswer(
      status: 200, contentType: format.contentType,
      body: PrometheusText.render(snapshot, health: health, process: process, as: format))
  }
}

extension MetricsFormat {
  /// The format that a request's `Accept` wants (RFC 9110, section 12.5.1): OpenMetrics for whoever names it and wants it
  /// no less than plain text; Prometheus' own format for everybody else, whatever they accept.
  package init(accept: String?) {
    var open = -1
    var plain = -1
    for range in (accept ?? "").split(separator: ",") {
      let parts = range.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
      guard let type = parts.first else { continue }
      let version = parts.first { $0.hasPrefix("version=") }?.dropFirst("version=".count) ?? ""
      let quality = Self.thousandths(parts.first { $0.hasPrefix("q=") }?.dropFirst(2) ?? "1")
      switch type {
      case "application/openmetrics-text" where version.isEmpty || version == "1.0.0": open = max(open, quality)
      case "text/plain" where version.isEmpty || version == "0.0.4": plain = max(plain, quality)
      default: break
      }
    }
    self = open > 0 && open >= plain ? .openMetrics : .prometheus
  }

  /// A quality value; one that is none counts as 0.
  private static func thousandths(_ text: Substring) -> Int {
    let digits = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard let whole = Int(digits[0]), (0...1).contains(whole) else { return 0 }
    let decimals = digits.count > 1 ? String(digits[1].prefix(3)) : ""
    let padded = decimals + String(repeating: "0", count: 3 - decimals.count)
    return min(1000, whole * 1000 + (Int(padded) ?? 0))
  }
}
