import Glibc
import Kafka
import Service
import Wire

/// `martlet produce`: publishes requests, from options or from JSON lines.
enum ProduceCommand {
  static let command = Command(
    "produce",
    "Publish requests to Kafka: one from options, or many from JSON lines. Each is judged by the rules of "
      + "the service first; what it would refuse is not published.",
    options: [
      Option("config", value: "FILE", "The configuration (JSON5).", isRequired: true),
      Option("app", value: "NAME", "The app, for a request from options (default: the only one that there is)."),
    ] + NotificationOptions.options + [
      Option("file", value: "FILE", "JSON lines, each a request; '-' is standard input, the default without options."),
      Option("to", value: "TOPIC", "Which of the request topics (default: the first)."),
      Option(flag: "dry-run", "Judge only; publish nothing."),
      Option("timeout", value: "DURATION", "How long the brokers may take for a record (default 30s)."),
      Option(flag: "no-progress", "No progress bar on a terminal."),
      Option(flag: "json", "The outcome as one JSON object, for programs."),
    ],
    examples: [
      ("martlet produce --config martlet.json5 --app shop-ios --token ab12cd34 --alert Hello", "One request."),
      ("martlet produce --config martlet.json5 < requests.jsonl", "One request for each line."),
      ("martlet produce --config martlet.json5 --file requests.jsonl --dry-run", "What would be refused, and why?"),
    ],
    run: run)

  @Sendable
  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let given = NotificationOptions.options.map(\.name).filter(arguments.has)
    if let first = given.first, arguments.has("file") {
      throw UsageError(message: "'--file' brings whole requests; '--\(first)' cannot be added to them")
    }
    let settings = try SettingsLoader.load(file: try arguments.required("config")).settings
    let topic = try topic(arguments, settings.kafka.topics.requests)
    let timeout = try arguments.duration("timeout", default: .seconds(30))
    var run = ProduceRun(
      judge: RequestJudge(apps: settings.apps),
      publisher: arguments.has("dry-run") ? nil : try RequestPublisher(settings.kafka, topic: topic, timeout: timeout))
    if given.isEmpty {
      try lines(arguments, &run)
    } else {
      let push = try NotificationOptions(arguments, now: ServiceClock.now().time)
      run.take(push.requests(app: try app(arguments, settings.apps)))
    }
    run.finish()
    Console.out(arguments.has("json") ? run.json(topic: topic) : run.summary(topic: topic))
    return run.exitCode
  }

  private static func lines(_ arguments: Arguments, _ run: inout ProduceRun) throws {
    guard !arguments.has("app") else {
      throw UsageError(message: "'--app' is for a request from options; in JSON lines each one names its app")
    }
    let path = arguments.value("file") ?? "-"
    let name = path == "-" ? "standard input" : path
    let descriptor = path == "-" ? STDIN_FILENO : unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw InputError(message: "\(LocalFileError(path: path, number: errno))") }
    defer { if path != "-" { close(descriptor) } }
    if path == "-", isatty(STDIN_FILENO) == 1 {
      Console.error("reading requests from the terminal, one a line; Ctrl-D ends (options such as --token make one)")
    }
    StopSignal.install()
    let hasBar = !arguments.has("no-progress") && isatty(STDERR_FILENO) == 1 && isatty(descriptor) == 0
    try run.take(
      LineReader(descriptor: descriptor, name: name, longest: 4 * 1_048_576), named: name,
      progress: hasBar ? ProgressBar(total: size(of: descriptor)) : nil)
  }

  /// `nil` for what is no file.
  private static func size(of descriptor: Int32) -> Int? {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return Int(status.st_size)
  }

  private static func topic(_ arguments: Arguments, _ topics: [String]) throws(UsageError) -> String {
    guard let wanted = arguments.value("to") else { return topics.first ?? "" }
    guard topics.contains(wanted) else {
      let nearest = NearestName.find(wanted, in: topics).map { "; did you mean '\($0)'?" } ?? ""
      throw UsageError(
        message:
          "'--to' must be one of the request topics, \(topics.joined(separator: ", ")), not '\(wanted)'\(nearest)")
    }
    return wanted
  }

  private static func app(_ arguments: Arguments, _ apps: [AppSettings]) throws(UsageError) -> String {
    let names = apps.map(\.name)
    guard let wanted = arguments.value("app") else {
      if names.count == 1 { return names[0] }
      throw UsageError(message: "'--app NAME' is missing: one of \(names.prefix(10).joined(separator: ", "))")
    }
    guard names.contains(wanted) else {
      let nearest = NearestName.find(wanted, in: names).map { "; did you mean '\($0)'?" } ?? ""
      throw UsageError(message: "the configuration has no app '\(wanted)'\(nearest)")
    }
    return wanted
  }
}
