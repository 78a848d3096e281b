package import Wire

/// What liveness and readiness depend on, at one moment. Nothing is asked of Kafka or APNs to make it.
package struct HealthState: Sendable {
  /// A loop of the service and when it last turned; a loop turns at least once a second, work or none.
  package struct Loop: Sendable {
    package var name: String
    package var lastTurn: Instant

    package init(name: String, lastTurn: Instant) {
      self.name = name
      self.lastTurn = lastTurn
    }
  }

  /// Whether an app's notifications can be sent.
  package struct App: Sendable {
    package var name: String
    /// Why they cannot; `nil`: they can.
    package var fault: String?
    /// What people should look at although they can; `nil`: nothing.
    package var note: String?

    package init(name: String, fault: String?, note: String? = nil) {
      self.name = name
      self.fault = fault
      self.note = note
    }
  }

  package var now: Instant
  package var loops: [Loop]
  /// A loop that has not turned for longer is stuck.
  package var longestTurn: Duration
  package var isConfigured: Bool
  package var hasJoinedGroup: Bool
  /// Whether it had joined before, if it has not now.
  package var hadJoinedGroup = false
  package var isDraining: Bool
  package var apps: [App]
  /// What Kafka refuses: credentials, rights, a topic.
  package var kafkaFaults: [String]

  package init(
    now: Instant, loops: [Loop], longestTurn: Duration = .seconds(15), isConfigured: Bool, hasJoinedGroup: Bool,
    isDraining: Bool, apps: [App], kafkaFaults: [String] = []
  ) {
    self.now = now
    self.loops = loops
    self.longestTurn = longestTurn
    self.isConfigured = isConfigured
    self.hasJoinedGroup = hasJoinedGroup
    self.isDraining = isDraining
    self.apps = apps
    self.kafkaFaults = kafkaFaults
  }

  /// How many loops are stuck.
  package var stuckLoops: Int { loops.count { now - $0.lastTurn > longestTurn } }
}

/// The answers of `/healthz` and `/readyz`: 200, or 503 with what is not and why.
package enum HealthAnswer {
  /// Apps named in one answer; further ones are counted.
  static let mostApps = 20

  /// One thing that must be so.
  struct Check: Sendable {
    var name: String
    /// `nil`: passed.
    var fault: String?
  }

  /// Whether the process works: its loops turn. A broker or APNs being away does not count; a restart mends neither.
  ///
  /// - Parameters:
  ///   - state: what is known of the process now.
  ///   - isDetailed: whether to say more than yes or no.
  package static func live(_ state: HealthState, isDetailed: Bool = true) -> EndpointAnswer {
    answer(liveChecks(state), of: state, words: ("live", "not live"), isDetailed: isDetailed)
  }

  /// Whether the replica takes part: configured, not refused by Kafka, in the group, and at least one app can be
  /// served. Brokers that are only away do not count until the session is over, when the partitions are lost.
  ///
  /// - Parameters:
  ///   - state: what is known of the replica now.
  ///   - isDetailed: whether to say more than yes or no.
  package static func ready(_ state: HealthState, isDetailed: Bool = true) -> EndpointAnswer {
    answer(readyChecks(state), of: state, words: ("ready", "not ready"), isDetailed: isDetailed)
  }

  static func liveChecks(_ state: HealthState) -> [Check] {
    state.loops.map { loop in
      let age = state.now - loop.lastTurn
      let isStuck = age > state.longestTurn
      return Check(
        name: "loop \(loop.name)",
        fault: isStuck
          ? "has not turned for \(TimeText.seconds(age)) s, allowed are \(TimeText.seconds(state.longestTurn)) s"
          : nil)
    }
  }

  static func readyChecks(_ state: HealthState) -> [Check] {
    let isUsable = state.apps.contains { $0.fault == nil }
    return [
      Check(name: "configuration", fault: state.isConfigured ? nil : "not loaded"),
      Check(name: "kafka", fault: state.kafkaFaults.isEmpty ? nil : state.kafkaFaults.joined(separator: "; ")),
      Check(name: "consumer group", fault: state.hasJoinedGroup ? nil : "not joined"),
      Check(
        name: "apps",
        fault: isUsable
          ? nil : state.apps.isEmpty ? "none are configured" : "none of \(state.apps.count) can be served"),
      Check(name: "service", fault: state.isDraining ? "draining" : nil),
    ]
  }

  private static func answer(
    _ checks: [Check], of state: HealthState, words: (good: String, bad: String), isDetailed: Bool
  ) -> EndpointAnswer {
    let isGood = checks.allSatisfy { $0.fault == nil }
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("status")
    writer.string(isGood ? words.good : words.bad)
    if isDetailed { writeDetails(checks, state, &writer) }
    writer.endObject()
    return .json(isGood ? 200 : 503, writer.take() + [UInt8(ascii: "\n")])
  }

  private static func writeDetails(_ checks: [Check], _ state: HealthState, _ writer: inout JSONWriter) {
    writer.key("checks")
    writer.beginArray()
    for check in checks {
      writer.beginObject()
      writer.key("check")
      writer.string(check.name)
      writer.key("ok")
      writer.bool(check.fault == nil)
      if let fault = check.fault {
        writer.key("why")
        writer.string(fault)
      }
      writer.endObject()
    }
    writer.endArray()
    writeFaultyApps(state, &writer)
    writeNotes(state, &writer)
  }

  private static func writeFaultyApps(_ state: HealthState, _ writer: inout JSONWriter) {
    let faulty = state.apps.filter { $0.fault != nil }
    guard !faulty.isEmpty else { return }
    writer.key("faulty_apps")
    writer.integer(faulty.count)
    writer.key("apps")
    writer.beginArray()
    for app in faulty.prefix(mostApps) {
      writer.beginObject()
      writer.key("app")
      writer.string(app.name)
      writer.key("why")
      writer.string(app.fault ?? "")
      writer.endObject()
    }
    writer.endArray()
  }

  private static func writeNotes(_ state: HealthState, _ writer: inout JSONWriter) {
    let noted = state.apps.filter { $0.note != nil }
    guard !noted.isEmpty else { return }
    writer.key("notes")
    writer.beginArray()
    for app in noted.prefix(mostApps) {
      writer.beginObject()
      writer.key("app")
      writer.string(app.name)
      writer.key("note")
      writer.string(app.note ?? "")
      writer.endObject()
    }
    writer.endArray()
  }
}
