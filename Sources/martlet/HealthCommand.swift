import Service
import Transport

/// `martlet health`: asks a running service how it is, for container images that have neither a shell nor curl.
enum HealthCommand {
  static let command = Command(
    "health", "Ask a running service on this machine how it is; the exit status tells.",
    options: [
      Option("config", value: "FILE", "The configuration of the service; only http.listen is read."),
      Option("address", value: "ADDRESS", "host:port or unix:/path to ask, in place of a configuration's."),
      Option(flag: "ready", "Ask whether it takes part (/readyz), not only whether it is alive (/healthz)."),
      Option("timeout", value: "DURATION", "How long an answer may take (default 5s)."),
      Option(flag: "quiet", "Print nothing; the exit status tells all the same."),
    ],
    examples: [
      ("martlet health --config /etc/martlet/martlet.json5", "The HEALTHCHECK of the container image."),
      ("martlet health --address 127.0.0.1:9464 --ready", "Has it joined its group, and can it serve an app?"),
    ],
    run: run)

  @Sendable
  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let endpoint = try self.endpoint(arguments)
    let timeout = try arguments.duration("timeout", default: .seconds(5))
    let path = arguments.has("ready") ? "/readyz" : "/healthz"
    do throws(TransportError) {
      let answer = try HTTP1Probe.get(path, from: endpoint, timeout: timeout)
      if !arguments.has("quiet") { say(answer, path, endpoint) }
      return answer.status == 200 ? .ok : .unavailable
    } catch {
      if !arguments.has("quiet") { Console.error("martlet health: \(error)") }
      return .unavailable
    }
  }

  /// - Throws: `ConfigurationError` or `UsageError`.
  private static func endpoint(_ arguments: Arguments) throws -> Endpoint {
    switch (arguments.value("config"), arguments.value("address")) {
    case (let file?, nil): return try SettingsLoader.listenAddress(file: file).reachable
    case (nil, let text?):
      guard let endpoint = Endpoint(parsing: text) else {
        throw UsageError(message: "'--address' must be host:port or unix:/path, not '\(text)'")
      }
      return endpoint.host.isEmpty && endpoint.path == nil ? Endpoint(host: "127.0.0.1", port: endpoint.port) : endpoint
    default: throw UsageError(message: "give either '--config' or '--address'")
    }
  }

  private static func say(_ answer: HTTP1Probe.Answer, _ path: String, _ endpoint: Endpoint) {
    let body = String(decoding: answer.body, as: UTF8.self)
    let text = body.hasSuffix("\n") ? String(body.dropLast()) : body
    switch answer.status {
    case 200: Console.out(text)
    case 503: Console.error(text)
    default: Console.error("martlet health: \(endpoint) answered \(path) with status \(answer.status)")
    }
  }
}

extension ListenAddress {
  /// Where a process of the same machine finds who listens here: "all interfaces" is no address to connect to.
  var reachable: Endpoint {
    switch host {
    case "0.0.0.0": Endpoint(host: "127.0.0.1", port: port)
    case "::": Endpoint(host: "::1", port: port)
    // Also the path of a Unix socket.
    default: Endpoint(parsing: text) ?? Endpoint(host: host, port: port)
    }
  }
}
