internal import Transport
internal import Wire

/// Tries whether what a configuration names can be reached: the brokers, the topics, and APNs for each app.
///
/// Nothing is read, created or pushed: Kafka is asked for metadata, and a connection to APNs ends when the server has
/// sent its SETTINGS and answered one GET of nothing, whose `date` shows how far this machine's clock is off.
package enum ConnectionCheck {
  /// One thing that was tried, and what came of it.
  package struct Finding: Sendable, Equatable {
    /// What was tried.
    package enum Kind: String, Sendable { case brokers, topic, permission, apns, clock }

    /// What came of it.
    package enum State: String, Sendable {
      case good
      /// It works, but perhaps not as it is meant.
      case warning
      /// It could not be told.
      case unknown
      case bad
    }

    package var kind: Kind
    /// The brokers, the topic, what needs permission, or the server's `host:port`.
    package var name: String
    /// The apps that go to this server with the same certificate, or without one.
    package var apps: [String]
    package var state: State
    /// What was found, or what is wrong.
    package var message: String

    /// Whether nothing stands in the way of the service.
    package var isGood: Bool { state != .bad }

    package init(kind: Kind, name: String, apps: [String] = [], state: State, message: String) {
      self.kind = kind
      self.name = name
      self.apps = apps
      self.state = state
      self.message = message
    }

    package init(kind: Kind, name: String, apps: [String] = [], isGood: Bool, message: String) {
      self.init(kind: kind, name: name, apps: apps, state: isGood ? .good : .bad, message: message)
    }
  }

  /// Handshakes that are under way at one time.
  private static let mostAtOnce = 32

  /// - Parameters:
  ///   - settings: as they were loaded; Kafka and every app are tried.
  ///   - limit: for all of it; one connection may take no longer than `delivery.connectTimeout` either.
  /// - Returns: Kafka's findings, then those of APNs in the order of the apps.
  package static func findings(of settings: Settings, within limit: Duration) async -> [Finding] {
    let end = ServiceClock.now().instant + limit
    do {
      // Kafka's calls block, so they have a thread of their own.
      let (kafkaLoop, apnsLoop) = (try EventLoop.start(name: "check-kafka"), try EventLoop.start(name: "check-apns"))
      defer {
        kafkaLoop.stop()
        apnsLoop.stop()
      }
      async let kafka = withCheckedContinuation { continuation in
        let isTaken = kafkaLoop.execute { continuation.resume(returning: Self.kafka(settings, until: end)) }
        if !isTaken { continuation.resume(returning: []) }
      }
      let apns = await Self.apns(settings, on: apnsLoop, until: end)
      return await kafka + apns
    } catch {
      return [Finding(kind: .apns, name: "", isGood: false, message: "\(error)")]
    }
  }

  // MARK: APNs

  /// A server, and how it is spoken to.
  private struct Target {
    var endpoint: Endpoint
    var tls: TLSContext
    var apps: [String]
  }

  private static func apns(_ settings: Settings, on loop: EventLoop, until end: Instant) async -> [Finding] {
    let contents = ConfigurationImage(reading: settings).contents
    var loader = AppLoader(delivery: settings.delivery, laneCount: 1)
    let loaded = settings.apps.map { loader.load($0, contents) }
    let targets = targets(loaded.compactMap { try? $0.get() })
    let faults = loaded.compactMap(\.fault).map {
      Finding(kind: .apns, name: "", apps: [$0.app], isGood: false, message: $0.text)
    }
    let limit = settings.delivery.connectTimeout
    var found = targets.map { target in
      Finding(kind: .apns, name: target.endpoint.description, apps: target.apps, isGood: false, message: "")
    }
    var clocks: [Finding] = []
    await withTaskGroup(of: (Int, Result<Handshake.Outcome, TransportError>).self) { group in
      var next = 0
      func startOne() {
        guard next < targets.count else { return }
        let (index, target) = (next, targets[next])
        group.addTask { (index, await Handshake.run(on: loop, target.endpoint, target.tls, limit, until: end)) }
        next += 1
      }
      for _ in 0..<mostAtOnce { startOne() }
      for await (index, result) in group {
        switch result {
        case .success(let outcome):
          let streams = outcome.streams
          found[index].state = .good
          let limit = streams == .max ? "any number of streams" : streams == 1 ? "1 stream" : "\(streams) streams"
          found[index].message = "TLS and HTTP/2, \(limit) at once"
          if let date = outcome.date, !clocks.contains(where: { $0.name == found[index].name }) {
            clocks.append(clock(at: found[index].name, server: date, own: outcome.receivedAt))
          }
        case .failure(let error): found[index].message = error.cause
        }
        startOne()
      }
    }
    if clocks.isEmpty, found.contains(where: { $0.state == .good }) {
      clocks = [
        Finding(
          kind: .clock, name: "APNs", state: .unknown,
          message: "the servers tell no date; APNs refuses provider tokens once this clock is an hour off")
      ]
    }
    return faults + found + clocks
  }

  /// How far apart two clocks are, and what comes of it: APNs refuses a provider token that was made more than an hour
  /// before or after its own time (403 ExpiredProviderToken), and an expiration means another moment.
  static func clock(at server: String, server date: UnixTime, own: UnixTime) -> Finding {
    let seconds = (own.milliseconds - date.milliseconds) / 1000
    let words = seconds == 0 ? "the same" : "\(seconds.magnitude) s \(seconds > 0 ? "ahead" : "behind")"
    switch seconds.magnitude {
    // A date has whole seconds, and was on its way for some time.
    case ..<5: return Finding(kind: .clock, name: server, state: .good, message: "within 5 s")
    case ..<1800:
      return Finding(
        kind: .clock, name: server, state: .warning, message: "\(words): expirations are off by as much")
    default:
      return Finding(
        kind: .clock, name: server, state: .bad,
        message: "\(words): APNs refuses provider tokens that are an hour off; set this machine's clock")
    }
  }

  private static func targets(_ apps: [AppRuntime]) -> [Target] {
    struct Key: Hashable {
      var endpoint: Endpoint
      var tls: ObjectIdentifier
    }
    var targets: [Target] = []
    var places: [Key: Int] = [:]
    for app in apps {
      let key = Key(endpoint: app.endpoint, tls: ObjectIdentifier(app.tls))
      if let place = places[key] {
        targets[place].apps.append(app.name)
      } else {
        places[key] = targets.count
        targets.append(Target(endpoint: app.endpoint, tls: app.tls, apps: [app.name]))
      }
    }
    return targets
  }
}
