internal import Wire

/// The problems of a status document: first what is wrong now, then what was.
struct StatusProblems {
  private struct Present {
    var level = LogLevel.warning
    var code: String
    var app: String?
    var message: String
    var cause: String?
  }

  private let document: StatusDocument

  init(_ document: StatusDocument) { self.document = document }

  func write(_ writer: inout JSONWriter) {
    let present = present
    let told = Set(present.map { Key(code: $0.code, app: $0.app) })
    writer.key("problems")
    writer.beginArray()
    for problem in present.prefix(StatusDocument.mostProblems) {
      writer.beginObject()
      write(problem.level, problem.code, problem.app, problem.message, problem.cause, isNow: true, &writer)
      writer.endObject()
    }
    let past = document.problems.filter { !told.contains(Key(code: $0.code, app: $0.app)) }
    for problem in past.prefix(StatusDocument.mostProblems) {
      writer.beginObject()
      write(problem.level, problem.code, problem.app, problem.message, problem.cause, isNow: false, &writer)
      writer.field("count", Int64(problem.count))
      writer.field("first", problem.first.milliseconds)
      writer.field("last", problem.last.milliseconds)
      writer.endObject()
    }
    writer.endArray()
  }

  private struct Key: Hashable {
    var code: String
    var app: String?
  }

  private func write(
    _ level: LogLevel, _ code: String, _ app: String?, _ message: String, _ cause: String?, isNow: Bool,
    _ writer: inout JSONWriter
  ) {
    writer.key("now")
    writer.bool(isNow)
    writer.field("level", level.rawValue)
    writer.field("code", code)
    writer.field("app", app)
    writer.field("message", message)
    writer.field("cause", cause)
    let entry = ProblemGuide.entry(for: code)
    writer.field("meaning", entry?.meaning)
    writer.field("mend", entry?.mend)
  }

  /// What is wrong at this moment.
  private var present: [Present] {
    let (health, snapshot) = (document.health, document.snapshot)
    var found = HealthAnswer.liveChecks(health).filter { $0.fault != nil }.map {
      Present(level: .error, code: "loop_stuck", message: "\($0.name) \($0.fault ?? "")")
    }
    if snapshot.value(.lastReloadGood) == 0 {
      found.append(
        Present(
          level: .error, code: "reload_refused",
          message: "the new configuration cannot be used; the one in effect stays"))
    }
    found += health.kafkaFaults.map { fault in
      Present(level: .error, code: "kafka_refused", message: "Kafka refuses what this service needs", cause: fault)
    }
    for app in health.apps {
      if let fault = app.fault {
        found.append(
          Present(
            level: .error, code: "app_unavailable", app: app.name, message: "an app cannot be served", cause: fault))
      }
      if let note = app.note {
        found.append(Present(code: "app_suspect", app: app.name, message: note))
      }
    }
    found += certificates(snapshot)
    if snapshot.value(.intakeHeld) != 0 {
      found.append(Present(code: "intake_held", message: "no more requests are taken up: a cap is reached"))
    }
    return found
  }

  private func certificates(_ snapshot: MetricSnapshot) -> [Present] {
    snapshot.credentials.compactMap { CertificateSample($0) }.compactMap { certificate in
      switch ExpiryStage(of: certificate.validUntil, at: document.time) {
      case .distant: nil
      case .month, .week, .day:
        Present(
          code: "certificate_expires", app: certificate.app,
          message: "a certificate expires at \(RFC3339.text(certificate.validUntil))")
      case .expired:
        Present(level: .error, code: "certificate_expired", app: certificate.app, message: "a certificate has expired")
      }
    }
  }
}
