/// What the endpoint answers to one request.
package struct EndpointAnswer: Sendable, Equatable {
  package var status: Int
  package var contentType: String
  package var body: [UInt8]
  /// Another header that the status calls for.
  package var extraHeader: (name: String, value: String)? { status == 405 ? ("Allow", "GET, HEAD") : nil }

  package init(status: Int, contentType: String, body: [UInt8]) {
    self.status = status
    self.contentType = contentType
    self.body = body
  }

  /// A short answer for people.
  package static func text(_ status: Int, _ text: String) -> EndpointAnswer {
    EndpointAnswer(status: status, contentType: "text/plain; charset=utf-8", body: Array(text.utf8))
  }
}

/// Which answer belongs to which path.
package enum EndpointRoutes {
  package static let paths = ["/metrics", "/healthz", "/readyz"]

  /// - Parameters:
  ///   - target: the request target, a query after the path included; it is ignored.
  ///   - metrics: called for `/metrics` alone.
  ///   - health: called for `/healthz` and `/readyz` alone.
  package static func answer(
    method: String, target: String, metrics: () -> EndpointAnswer, health: () -> HealthState
  ) -> EndpointAnswer {
    let path = target.prefix { $0 != "?" && $0 != "#" }
    guard paths.contains(String(path)) else {
      return .text(404, "Not found. There are:\n" + paths.map { "\($0)\n" }.joined())
    }
    guard method == "GET" || method == "HEAD" else { return .text(405, "Only GET and HEAD.\n") }
    switch path {
    case "/metrics": return metrics()
    case "/healthz": return HealthAnswer.live(health())
    default: return HealthAnswer.ready(health())
    }
  }
}

/// The answer of `/metrics`.
package enum MetricsAnswer {
  /// - Parameter process: what the kernel says of this process; `nil` where it says nothing.
  package static func answer(_ snapshot: MetricSnapshot, process: ProcessSample?) -> EndpointAnswer {
    EndpointAnswer(
      status: 200, contentType: PrometheusText.contentType, body: PrometheusText.render(snapshot, process: process))
  }
}
