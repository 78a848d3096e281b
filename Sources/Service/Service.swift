import APNs
import Delivery
package import Kafka
import Synchronization
import Transport
import Wire

/// The running whole. Start here: `start` builds it in the order of the data, `drain` takes it down in the same order.
///
///     Kafka → Pipeline (delivery loop) → lanes → APNs
///                  ↑                       ↓
///     Kafka ← Publisher ←─────────── outcomes
///
/// The endpoint has a loop of its own, so that neither scrapes nor delivery wait for the other.
package final class Service: Sendable {
  /// Why the service could not start, or ended by itself.
  package struct Failure: Error, CustomStringConvertible {
    /// Whether a change of the configuration is what helps.
    package var isConfiguration: Bool
    package var description: String
  }

  /// How the service ended.
  package enum End: Sendable {
    /// So many notifications had no answer in time, and are left to the next owner of their partitions.
    case drained(unfinished: Int)
    /// Kafka's client cannot go on; a new process can.
    case failed(String)
  }

  package let registry: Registry
  package let health: HealthBoard
  private let log: Log
  private let settings: Settings
  private let loop: EventLoop
  private let endpointLoop: EventLoop
  private let lanes: [Lane]
  private let pipeline: Pipeline
  private let responder: HTTP1Responder
  private let end: EndPromise
  private let reloader: Reloader

  /// The pipeline's end, for whoever waits for it.
  private final class EndPromise: Sendable {
    private let state = Mutex<(end: End?, waiting: [CheckedContinuation<End, Never>])>((nil, []))

    func happened(_ end: End) {
      let waiting = state.withLock { state in
        state.end = end
        let waiting = state.waiting
        state.waiting = []
        return waiting
      }
      for continuation in waiting { continuation.resume(returning: end) }
    }

    var value: End {
      get async {
        await withCheckedContinuation { continuation in
          let end = state.withLock { state in
            if state.end == nil { state.waiting.append(continuation) }
            return state.end
          }
          if let end { continuation.resume(returning: end) }
        }
      }
    }
  }

  /// Loads the credentials, starts the loops, joins the group.
  ///
  /// An app whose credentials cannot be used does not keep the others from being served: it is reported, and its
  /// requests wait. Only if no app can be used nothing is started.
  package static func start(_ settings: Settings, log: Log, registry: Registry) throws(Failure) -> Service {
    do {
      return try Service(settings, log: log, registry: registry)
    } catch let failure as Failure {
      throw failure
    } catch let error as KafkaError {
      throw Failure(isConfiguration: error.origin == .configuration, description: "Kafka: \(error)")
    } catch {
      throw Failure(isConfiguration: false, description: "\(error)")
    }
  }

  private init(_ settings: Settings, log: Log, registry: Registry) throws {
    self.settings = settings
    self.log = log
    self.registry = registry
    let laneCount = settings.delivery.laneCount
    let image = ConfigurationImage(reading: settings)
    var loader = AppLoader(delivery: settings.delivery, laneCount: laneCount)
    let loaded = settings.apps.map { loader.load($0, image.contents) }
    let runtimes = loaded.map { try? $0.get() }
    let faults = loaded.compactMap(\.fault)
    for fault in faults {
      log.error("app_unusable", "an app cannot be served", [.app(fault.app), .cause(CauseText(fault.text))])
    }
    guard runtimes.contains(where: { $0 != nil }) else {
      throw Failure(
        isConfiguration: true,
        description: "no app can be used: " + faults.map { "\($0.app): \($0.text)" }.joined(separator: "; "))
    }
    let apps = AppTable(zip(settings.apps, runtimes).map { AppRules($0, $1) })
    health = HealthBoard()
    health.setApps(
      zip(settings.apps, loaded).map { app, result in HealthState.App(name: app.name, fault: result.fault?.text) })

    let inbox = OutcomeInbox()
    let lanes = try (0..<laneCount).map { index in
      try Lane(
        index: LaneIndex(Int32(index)), requestTimeout: settings.delivery.requestTimeout,
        metrics: registry.makeShard(), log: log, deliver: { inbox.put(&$0) })
    }
    self.lanes = lanes
    for (index, runtime) in runtimes.enumerated() {
      guard let runtime else { continue }
      for lane in lanes { lane.install(runtime, at: AppIndex(Int32(index))) }
    }

    let end = EndPromise()
    self.end = end
    loop = try EventLoop.start(name: "delivery")
    endpointLoop = try EventLoop.start(name: "endpoint")
    // Before the group is joined: one that cannot listen ends, and the group would wait for it.
    responder = try EndpointShell(registry: registry, health: health, problems: log.problems)
      .listen(settings.http, on: endpointLoop)
    pipeline = try Service.makePipeline(
      settings, loop: loop, lanes: lanes, inbox: inbox, apps: apps, log: log, registry: registry, health: health,
      onEnd: { end.happened($0) })
    for loop in lanes.map(\.loop) + [loop] { health.watch(loop.name, lastTurn: { loop.lastTurn }) }
    let expiry = ExpiryReporter(log: log)
    reloader = Reloader(
      running: image, apps: apps, loader: loader,
      runtimes: Dictionary(
        zip(settings.apps, runtimes).compactMap { app, runtime in runtime.map { (app.name, $0) } },
        uniquingKeysWith: { _, last in last }),
      parts: Reloader.Parts(lanes: lanes, pipeline: pipeline, registry: registry, expiry: expiry, log: log))
    Service.checkExpiry(expiry, on: endpointLoop)
    log.info(
      "started", "the service has started",
      [.count(settings.apps.count)] + endpointFields)
  }

  private static func makePipeline(
    _ settings: Settings, loop: EventLoop, lanes: [Lane], inbox: OutcomeInbox, apps: AppTable, log: Log,
    registry: Registry, health: HealthBoard, onEnd: @escaping @Sendable (End) -> Void
  ) throws -> Pipeline {
    let kafka = settings.kafka
    let topics = kafka.topics.requests + [kafka.topics.deferred]
    let sink: LogSink = { log.kafka(severity: $0.level, facility: $0.facility, message: $0.text) }
    let consumer = try Consumer(
      properties: try kafka.consumer(), group: kafka.group, topics: topics, log: sink)
    let producerProperties = try kafka.producer()
    let publisher = try Publisher(topics: kafka.topics) { (isOneByOne) throws(KafkaError) in
      try Producer(properties: producerProperties, isOneByOne: isOneByOne, log: sink)
    }
    var limits = DeliveryMachine.Limits()
    limits.lanes = lanes.count
    limits.lanesPerApp = min(lanes.count, settings.delivery.maxConnectionsPerApp)
    limits.maxInFlight = settings.delivery.maxInFlight
    limits.maxInFlightBytes = settings.delivery.maxInFlightBytes
    limits.maxInFlightPerApp = settings.delivery.maxInFlightPerApp
    limits.isOrderedByKey = settings.delivery.ordering == .key
    let machine = DeliveryMachine(
      limits: limits, retryPolicy: RetryPolicy(settings.delivery), apps: apps, topics: topics,
      deferredTopic: kafka.topics.deferred, output: settings.output, seed: Randomness.seed())
    let observer = PipelineObserver(
      metrics: registry.makeShard(), registry: registry, log: log, health: health, topics: topics, apps: apps,
      maxInFlightPerApp: settings.delivery.maxInFlightPerApp)
    return try Pipeline(
      loop: loop, lanes: lanes, consumer: consumer, publisher: publisher, machine: machine,
      commitInterval: settings.delivery.commitInterval, outcomeInbox: inbox, observer: observer, onEnd: onEnd)
  }

  /// Where `/metrics` is, with the port that the kernel chose if 0 was asked for.
  package var endpointPort: UInt16 { responder.endpoint?.port ?? settings.http.listen.port }

  /// Whether all loops turn, as `/healthz` has it.
  package var isAlive: Bool { HealthAnswer.live(health.snapshot(at: ServiceClock.now().instant)).status == 200 }

  /// How long `drain` may take: the drain timeout, then the last results, the last commit and the group's farewell.
  package var longestDrain: Duration { settings.delivery.drainTimeout + .seconds(10) }

  private var endpointFields: [LogField] {
    if let path = settings.http.listen.path { return [.file(path)] }
    return [.host(settings.http.listen.host), .port(endpointPort)]
  }

  /// Takes another configuration while traffic flows: apps that are new, changed or gone, and the level of the log.
  ///
  /// All or nothing: if one of the new or changed apps cannot be used, all goes on as it was. Reloads that are asked for
  /// at the same time are done one after the other.
  @discardableResult
  package func reload(_ loaded: LoadedSettings) async -> ReloadOutcome { await reloader.reload(loaded) }

  /// Notes that there was to be a reload, but the configuration cannot be read.
  package func reloadFailed(_ error: ConfigurationError) async { await reloader.refuse(error) }

  /// Looks after the certificates' dates for as long as the loop runs.
  private static func checkExpiry(_ expiry: ExpiryReporter, on loop: EventLoop) {
    loop.execute {
      _ = loop.schedule(at: loop.now + ExpiryReporter.period) {
        expiry.check(at: loop.moment.time)
        checkExpiry(expiry, on: loop)
      }
    }
  }

  /// Something to wake up by, until whoever waits is cancelled or the service has ended. A tick that finds the one before
  /// it unheard is dropped.
  package func ticks(every period: Duration) -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    Self.tick(on: endpointLoop, every: period, continuation)
    return stream
  }

  private static func tick(on loop: EventLoop, every period: Duration, _ stream: AsyncStream<Void>.Continuation) {
    loop.execute {
      _ = loop.schedule(at: loop.now + period) {
        if case .terminated = stream.yield() { return }
        tick(on: loop, every: period, stream)
      }
    }
  }

  /// Stops the intake, finishes what is in flight within the drain timeout, commits and leaves the group.
  package func drain() {
    health.setDraining()
    log.info("draining", "the service drains", [.duration(settings.delivery.drainTimeout)])
    pipeline.drain(within: settings.delivery.drainTimeout)
  }

  /// Waits until the service has ended, after `drain` or by itself, and takes down what is left.
  package func ended() async -> End {
    let end = await self.end.value
    for lane in lanes { lane.stop() }
    loop.stop()
    responder.close()
    endpointLoop.stop()
    switch end {
    case .drained(let unfinished): log.info("stopped", "the service has stopped", [.count(unfinished)])
    case .failed(let text): log.error("failed", "the service cannot go on", [.cause(CauseText(text))])
    }
    log.flush()
    return end
  }
}

/// Something that keeps a part of the service from being made, in words.
struct ServiceError: Error, CustomStringConvertible {
  var description: String
}

// MARK: - From settings to parts

extension DeliverySettings {
  /// One lane for each core that this process may use, but not more than eight: a lane serves tens of thousands of
  /// notifications a second.
  var laneCount: Int { lanes > 0 ? lanes : min(Processors.usable, 8) }
}

extension RetryPolicy {
  init(_ settings: DeliverySettings) {
    self.init()
    attempts = settings.attempts
    initialBackoff = settings.retryBackoff.initial
    maximumBackoff = settings.retryBackoff.max
    lastingBackoff = settings.retryBackoff.lasting
    giveUpAfter = settings.giveUpAfter
  }
}

extension AppRules {
  /// - Parameter runtime: what was loaded of the app; `nil`: it cannot be used.
  init(_ settings: AppSettings, _ runtime: AppRuntime? = nil) {
    var certificate: CertificateRules?
    if case .certificate(_, let rules)? = runtime?.credentials { certificate = rules }
    self.init(
      name: settings.name, bundleID: settings.bundleID, environment: settings.environment,
      defaultExpiration: settings.defaultExpiration, maxInFlight: settings.maxInFlight,
      maxLanes: settings.maxConnections,
      pushTypes: Dictionary(settings.pushTypes.map { ($0.name, $0.topicSuffix) }, uniquingKeysWith: { $1 }),
      certificate: certificate)
  }
}

extension KafkaSettings {
  /// The consumer's properties.
  package func consumer() throws -> KafkaProperties {
    try properties(with: consumerProperties, instance: groupInstanceID)
  }

  /// The producer's properties.
  package func producer() throws -> KafkaProperties { try properties(with: producerProperties, instance: nil) }

  private func properties(with own: [KafkaProperty], instance: String?) throws -> KafkaProperties {
    var result = try KafkaProperties(brokers: brokers.joined(separator: ","))
    for property in properties + own {
      switch property.value {
      case .text(let text), .path(let text): try result.set(property.name, to: text)
      case .file(let file):
        try result.set(property.name, to: try FileProbe.line(file))
      }
    }
    if let instance { try result.set("group.instance.id", to: instance) }
    if let file = oauthTokenFile { result.tokenSource = { try FileProbe.line(file) } }
    return result
  }
}
