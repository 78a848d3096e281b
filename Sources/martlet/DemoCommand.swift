import MockAPNs
import Service
import Wire

/// `martlet demo`: the whole service at work, with an embedded Kafka and an APNs look-alike.
enum DemoCommand {
  static let command = Command(
    "demo", "Show the service at work, with an embedded Kafka and an APNs look-alike, in this one process.",
    options: [
      Option("apps", value: "N", "How many apps (default 5)."),
      Option("rate", value: "N", "Requests a second, over all apps (default 1000)."),
      Option("duration", value: "TIME", "How long requests are produced: seconds, or such as 2m (default 20s)."),
      Option(flag: "faults", "APNs misbehaves: GOAWAYs, resets, 429s, 5xx, dead tokens, silent connections."),
      Option("fault-strength", value: "N", "How much, for --faults: 1 spoils about one request in fifty (default 1)."),
      Option("listen", value: "ADDR", "Where /metrics is meanwhile (default: a free port of 127.0.0.1)."),
      Option("seed", value: "N", "For all that is random (default 1)."),
      Option(flag: "json", "Print the summary as one JSON object, and nothing else."),
    ],
    examples: [
      ("martlet demo", "Twenty seconds of traffic, then the books."),
      ("martlet demo --apps 20 --rate 5000 --duration 1m --faults", "More of it, and trouble at APNs."),
      ("martlet demo --listen 127.0.0.1:9464", "Look at http://127.0.0.1:9464/metrics meanwhile."),
      ("martlet demo --json | jq .unaccounted", "For scripts: 0 means that every request has its result."),
    ],
    run: run)

  @Sendable
  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let options = try DemoOptions(arguments)
    guard let signals = Signals.install() else {
      Console.error("martlet demo: signal handlers could not be installed")
      return .unavailable
    }
    let world = try DemoWorld(options)
    defer { world.remove() }
    let log = Log(level: .error, format: .text)
    let registry = Registry(versions: .current)
    let service = try Service.start(world.settings, log: log, registry: registry)
    let view = DemoView(isQuiet: options.isJSON, apps: world.apps.map(\.name))
    view.begin(options, endpointPort: service.endpointPort)
    let driver = try DemoDriver(options, world: world, registry: registry, view: view)
    let listener = Task {
      for await request in signals where request == .drain { driver.stopProducing() }
    }
    defer { listener.cancel() }
    let books = await driver.finished()
    service.drain()
    _ = await service.ended()
    let summary = DemoSummary(books: books, apns: world.apns.journal.counts)
    world.apns.stop()
    Console.out(options.isJSON ? summary.json : summary.text)
    return summary.isBalanced ? .ok : .unavailable
  }
}

/// What was asked for.
struct DemoOptions: Sendable {
  var apps: Int
  var rate: Int
  var duration: Duration
  var hasFaults: Bool
  var faultStrength: Int
  var listen: ListenAddress
  var seed: UInt64
  var isJSON: Bool

  init(_ arguments: Arguments) throws(UsageError) {
    apps = try arguments.integer("apps", in: 1...1000, default: 5)
    rate = try arguments.integer("rate", in: 1...1_000_000, default: 1000)
    duration = try arguments.duration("duration", default: .seconds(20))
    hasFaults = arguments.has("faults")
    faultStrength = try arguments.integer("fault-strength", in: 1...20, default: 1)
    listen = try arguments.address("listen", default: ListenAddress(host: "127.0.0.1", port: 0))
    seed = UInt64(try arguments.integer("seed", in: 0...Int.max, default: 1))
    isJSON = arguments.has("json")
  }
}
