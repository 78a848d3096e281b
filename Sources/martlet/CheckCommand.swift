import Service
import Wire

/// `martlet check`: says all that is wrong with a configuration, or what it comes to.
enum CheckCommand {
  /// With `--connect`, nothing is waited for any longer.
  static let longest = Duration.seconds(30)

  static let command = Command(
    "check", "Checks a configuration file and all that it names.",
    options: [
      Option("config", value: "FILE", "the configuration to check", isRequired: true),
      Option(flag: "connect", "also try Kafka, its topics, and APNs for each app; nothing is sent"),
      Option(flag: "json", "the findings as one JSON object, for programs"),
    ],
    examples: [
      ("martlet check --config martlet.json5", "is the configuration fit to start with?"),
      ("martlet check --config martlet.json5 --connect", "and can all that it needs be reached from here?"),
      ("martlet check --config martlet.json5 --json | jq '.problems[].path'", "the same in a pipeline"),
    ]
  ) { arguments in
    var report = CheckReport(file: try arguments.required("config"))
    if arguments.has("connect") { await report.connect(within: longest) }
    Console.out(arguments.has("json") ? report.json : report.text)
    return report.exitCode
  }
}

/// What was found in a configuration.
struct CheckReport {
  var file: String
  /// `nil`: it cannot be used.
  var settings: Settings?
  var problems: [ConfigurationProblem]
  /// `nil`: nothing was tried.
  var connections: [ConnectionCheck.Finding]?
  /// When the certificate of each app that has one expires.
  private var expiries: [String: UnixTime] = [:]

  /// Whether the configuration can be used.
  var isGood: Bool { settings != nil && errors == 0 }

  init(
    file: String, environment: @escaping (String) -> String? = SettingsLoader.processEnvironment,
    now: UnixTime = ServiceClock.now().time
  ) {
    self.file = file
    do {
      let loaded = try SettingsLoader.load(file: file, environment: environment)
      settings = loaded.settings
      problems = loaded.warnings
      let findings = CredentialCheck.findings(in: loaded.settings, file: file, now: now)
      problems += findings.problems + KafkaFitCheck.problems(of: loaded.settings.kafka, file: file)
      expiries = findings.expiries
    } catch {
      problems = error.problems
    }
  }

  /// Tries what the configuration names; nothing is tried where it cannot be used.
  mutating func connect(within limit: Duration) async {
    guard let settings, isGood else { return }
    connections = await ConnectionCheck.findings(of: settings, within: limit)
  }

  private var isReachable: Bool { connections?.allSatisfy(\.isGood) ?? true }

  var exitCode: ExitCode { !isGood ? .configuration : isReachable ? .ok : .unavailable }

  private var errors: Int { problems.count { $0.severity == .error } }

  /// A list with a mark before each finding: ✗ an error, ! a warning, ? what cannot be told, ✓ in order.
  var text: String {
    var lines: [String] = []
    for problem in problems { lines += Self.lines(of: problem) }
    if let settings, isGood {
      lines.append("✓ \(file): can be used")
      lines.append("✓ kafka: \(settings.kafka.brokers.joined(separator: ",")), group \(settings.kafka.group)")
      for app in settings.apps.prefix(50) { lines.append("✓ app \(app.name): \(summary(of: app))") }
      if settings.apps.count > 50 { lines.append("✓ and \(settings.apps.count - 50) more apps") }
      for finding in connections ?? [] { lines.append(Self.line(of: finding)) }
    } else {
      lines.append("✗ \(file): \(errors) \(errors == 1 ? "error" : "errors"); it cannot be used")
    }
    return lines.joined(separator: "\n")
  }

  private static func lines(of problem: ConfigurationProblem) -> [String] {
    var place = problem.file
    if let line = problem.line { place += ":\(line)" }
    if let column = problem.column { place += ":\(column)" }
    let mark = problem.severity == .error ? "✗" : "!"
    var lines = [
      "\(mark) \(problem.path.isEmpty ? "" : "\(problem.path): ")\(problem.message)", "    at       \(place)",
    ]
    if let found = problem.found { lines.append("    found    \(found)") }
    if let allowed = problem.allowed { lines.append("    allowed  \(allowed)") }
    if let nearest = problem.nearest { lines.append("    nearest  \(nearest)") }
    return lines
  }

  private static func line(of finding: ConnectionCheck.Finding) -> String {
    var name =
      switch finding.kind {
      case .brokers: "reaching kafka \(finding.name)"
      case .topic: "topic \(finding.name)"
      case .permission: "permission: \(finding.name)"
      case .clock: "clock against \(finding.name)"
      case .apns: "reaching APNs\(finding.name.isEmpty ? "" : " at \(finding.name)")"
      }
    if !finding.apps.isEmpty {
      name += " for \(finding.apps.prefix(5).joined(separator: ", "))"
      if finding.apps.count > 5 { name += " and \(finding.apps.count - 5) more apps" }
    }
    let mark =
      switch finding.state {
      case .good: "✓"
      case .warning: "!"
      case .unknown: "?"
      case .bad: "✗"
      }
    return "\(mark) \(name): \(finding.message)"
  }

  private func summary(of app: AppSettings) -> String {
    let credentials =
      app.token.map { "token, key \($0.keyID), team \($0.teamID)" }
      ?? app.certificate.map { "certificate \($0.file)" } ?? "no credentials"
    let server = app.server.map { ", to \($0.host):\($0.port)" } ?? ""
    let expiry = expiries[app.name].map { " until \(RFC3339.text($0).prefix(10))" } ?? ""
    return "\(app.bundleID), \(app.environmentName), \(credentials)\(expiry)\(server)"
  }

  /// The same for programs: `ok`, `file`, `apps`, `problems` and, if they were tried, `connections`.
  var json: String {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("ok")
    writer.bool(isGood && isReachable)
    writer.key("file")
    writer.string(file)
    writer.key("apps")
    writer.integer(settings?.apps.count ?? 0)
    writer.key("problems")
    writer.beginArray()
    for problem in problems { Self.write(problem, to: &writer) }
    writer.endArray()
    if let connections {
      writer.key("connections")
      writer.beginArray()
      for finding in connections { Self.write(finding, to: &writer) }
      writer.endArray()
    }
    writer.endObject()
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  private static func write(_ finding: ConnectionCheck.Finding, to writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("kind")
    writer.string(finding.kind.rawValue)
    writer.key("name")
    writer.string(finding.name)
    writer.list("apps", finding.apps)
    writer.key("ok")
    writer.bool(finding.isGood)
    writer.key("state")
    writer.string(finding.state.rawValue)
    writer.key("message")
    writer.string(finding.message)
    writer.endObject()
  }

  private static func write(_ problem: ConfigurationProblem, to writer: inout JSONWriter) {
    writer.beginObject()
    writer.field("severity", ifAny: problem.severity.rawValue)
    writer.field("file", ifAny: problem.file)
    if let line = problem.line, let column = problem.column {
      writer.key("line")
      writer.integer(line)
      writer.key("column")
      writer.integer(column)
    }
    writer.field("path", ifAny: problem.path)
    writer.field("message", ifAny: problem.message)
    writer.field("found", ifAny: problem.found)
    writer.field("allowed", ifAny: problem.allowed)
    writer.field("nearest", ifAny: problem.nearest)
    writer.endObject()
  }
}
