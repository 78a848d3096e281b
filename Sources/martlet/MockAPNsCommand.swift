import MockAPNs
import Service
import Transport
import Wire

/// `martlet mock-apns`: the look-alike of APNs as a server for staging and tests.
enum MockAPNsCommand {
  static let command = Command(
    "mock-apns", "Run a server that behaves as APNs does, for staging and tests.",
    options: [
      Option("listen", value: "ADDR", "host:port (default 127.0.0.1:2197; port 0: chosen by the system)."),
      Option(
        "host", value: "NAME", "A name or address for the certificate (default: localhost, 127.0.0.1, ::1).",
        isRepeated: true),
      Option("directory", value: "DIR", "Where ca.pem and made keys are written (default: a temporary directory)."),
      Option(
        "make-key", value: "KEYID:TEAMID", "Make a key, register it, and write AuthKey_KEYID.p8.",
        isRepeated: true),
      Option("key", value: "FILE:KEYID:TEAMID", "Register a key (.p8).", isRepeated: true),
      Option(
        "topic", value: "TEAMID:BUNDLEID", "A bundle id of a team; a team without any may use all.",
        isRepeated: true),
      Option(flag: "any-token", "Take every well-formed provider token; the default where no key is given."),
      Option("client-ca", value: "FILE", "Take client certificates of this authority (PEM) too."),
      Option("script", value: "FILE", "Rules for other answers, in JSON: \(Script.help)"),
      Option(flag: "faults", "Spoil about one request in fifty: resets, GOAWAYs, silence, 429, 5xx, dead tokens."),
      Option("fault-strength", value: "N", "How much, for --faults: a factor (default 1)."),
      Option("seed", value: "N", "For all that is random (default 1)."),
      Option(flag: "sandbox", "Answer as the development environment, with apns-unique-id."),
      Option("loops", value: "N", "Threads (default 1)."),
      Option("journal", value: "FILE", "At the end, write counts and the first requests as JSON."),
      Option("remember", value: "N", "How many requests the journal holds (default 1000)."),
      Option(flag: "json", "Print the summary as JSON."),
    ],
    examples: [
      ("martlet mock-apns --directory apns --make-key ABC123DEFG:DEF123GHIJ", "Checks the tokens of one key."),
      ("martlet mock-apns --listen 0.0.0.0:2197 --host apns.staging --faults", "For a staging cluster."),
      (
        "martlet send --config martlet.json5 --app shop --token dead041000000000",
        "Tokens with a fixed answer: "
          + Script.wellKnownTokens.map { "\($0.prefix)… \($0.meaning)" }.joined(separator: "; ")
      ),
    ],
    run: run)

  @Sendable
  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    guard let signals = Signals.install() else {
      Console.error("martlet mock-apns: signal handlers could not be installed")
      return .unavailable
    }
    var configuration: MockServer.Configuration
    do {
      configuration = try Self.configuration(arguments)
    } catch let error as ScriptError {
      Console.error("martlet mock-apns: \(arguments.value("script") ?? ""): \(error)")
      return .badData
    }
    let isTemporary = !arguments.has("directory")
    let directory = try arguments.value("directory") ?? LocalFile.makeTemporaryDirectory()
    try LocalFile.makeDirectory(directory)
    for text in arguments.all("make-key") {
      let names = try split(text, 2, "make-key", "KEYID:TEAMID")
      let key = try ProviderKey.make(keyID: names[0], teamID: names[1])
      let pem = try key.key.privatePEM()
      try LocalFile.write(Array(pem.utf8), to: "\(directory)/AuthKey_\(names[0]).p8", isSecret: true)
      configuration.keys.append(key)
    }
    configuration.acceptsAnyKey = arguments.has("any-token") || configuration.keys.isEmpty
    let server = try MockServer.start(configuration)
    let authorityFile = "\(directory)/ca.pem"
    try LocalFile.write(Array(server.authorityPEM.utf8), to: authorityFile)
    announce(server, authorityFile)
    let reporter = try EventLoop.start(name: "reporter")
    reporter.execute { report(server.journal, after: 0, on: reporter) }
    for await request in signals where request != .reload { break }
    reporter.stop()
    server.stop()
    if isTemporary && arguments.all("make-key").isEmpty {
      LocalFile.remove(file: authorityFile, directory: directory)
    }
    if let path = arguments.value("journal") {
      try LocalFile.write(server.journal.json(includingRequests: true), to: path)
    }
    if arguments.has("json") { Console.announce(server.journal.json()) } else { Console.error(line(server.journal)) }
    return .ok
  }

  // MARK: Options

  private static func configuration(_ arguments: Arguments) throws -> MockServer.Configuration {
    var configuration = MockServer.Configuration()
    let address = arguments.value("listen") ?? "127.0.0.1:2197"
    guard let endpoint = Endpoint(parsing: address) else {
      throw UsageError(message: "'--listen' must be host:port, not '\(address)'")
    }
    configuration.listen = endpoint
    if arguments.has("host") { configuration.hostNames = arguments.all("host") }
    for text in arguments.all("key") {
      let names = try split(text, 3, "key", "FILE:KEYID:TEAMID")
      configuration.keys.append(
        ProviderKey(keyID: names[1], teamID: names[2], key: try SigningKey.load(file: names[0])))
    }
    for text in arguments.all("topic") {
      let names = try split(text, 2, "topic", "TEAMID:BUNDLEID")
      configuration.rules.topics[names[0], default: []].insert(names[1])
    }
    if let path = arguments.value("client-ca") {
      configuration.clientAuthority = String(decoding: try LocalFile.read(path), as: UTF8.self)
    }
    if let path = arguments.value("script") {
      configuration.script = try Script(json: try LocalFile.read(path))
    }
    configuration.script = configuration.script + .wellKnown
    if arguments.has("faults") || arguments.has("fault-strength") {
      let text = arguments.value("fault-strength") ?? "1"
      guard let strength = Double(text), (0...50).contains(strength) else {
        throw UsageError(message: "'--fault-strength' must be from 0 to 50, not '\(text)'")
      }
      configuration.script = configuration.script + .faults(strength: strength)
    }
    configuration.seed = UInt64(try arguments.integer("seed", in: 0...Int.max, default: 1))
    configuration.isSandbox = arguments.has("sandbox")
    configuration.loops = try arguments.integer("loops", in: 1...64, default: 1)
    if arguments.has("journal") {
      configuration.journal.requests = try arguments.integer("remember", in: 0...1_000_000, default: 1000)
    }
    return configuration
  }

  /// The parts of `a:b` or `a:b:c`; a file's name may hold colons itself.
  private static func split(_ text: String, _ count: Int, _ option: String, _ form: String) throws(UsageError)
    -> [String]
  {
    var parts = text.split(separator: ":", omittingEmptySubsequences: false).map { String($0) }
    while parts.count > count { parts[0] += ":" + parts.remove(at: 1) }
    guard parts.count == count, !parts.contains("") else {
      throw UsageError(message: "'--\(option)' must be \(form), not '\(text)'")
    }
    return parts
  }

  // MARK: Reports

  private static func announce(_ server: MockServer, _ authorityFile: String) {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("listen")
    writer.string(server.endpoint.description)
    writer.key("port")
    writer.integer(Int64(server.port))
    writer.key("ca_file")
    writer.string(authorityFile)
    writer.endObject()
    Console.announce(writer.take())
  }

  /// A line every ten seconds in which something came.
  private static func report(_ journal: Journal, after last: Int, on loop: EventLoop) {
    _ = loop.schedule(at: loop.now + .seconds(10)) {
      let requests = journal.requests
      if requests != last { Console.error(line(journal)) }
      report(journal, after: requests, on: loop)
    }
  }

  private static func line(_ journal: Journal) -> String {
    let counts = journal.counts
    let refusals = counts.byReason.sorted { $0.value > $1.value }.map { "\($0.key) \($0.value)" }
    let parts =
      [
        "requests \(counts.requests)", "accepted \(counts.accepted)", "connections \(counts.openConnections)",
        "provider tokens \(counts.providerTokens)", "repeated ids \(counts.repeatedIdentifiers)",
        "goaways \(counts.goAwaysSent)", "resets \(counts.resets)", "silences \(counts.silences)",
      ] + refusals
    return "mock-apns: " + parts.joined(separator: ", ")
  }
}
