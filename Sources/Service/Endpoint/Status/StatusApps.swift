internal import APNs
internal import Delivery
internal import Wire

/// The apps of a status document.
struct StatusApps {
  /// Reasons that are named of each app.
  private static let mostReasons = 5

  private let document: StatusDocument

  init(_ document: StatusDocument) { self.document = document }

  func write(_ writer: inout JSONWriter) {
    let snapshot = document.snapshot
    let known = Dictionary(document.health.apps.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
    let credentials = Dictionary(snapshot.credentials.map { ($0.app, $0) }, uniquingKeysWith: { $1 })
    let shown = shown(known)
    writer.key("apps")
    writer.beginArray()
    for index in shown {
      let name = snapshot.apps[index]
      write(index, known[name], credentials[name], &writer)
    }
    writer.endArray()
    writer.field("apps_left_out", Int64(snapshot.apps.count - shown.count))
  }

  /// Those in trouble come first when there are too many. Removed apps are shown while something of them is in flight.
  private func shown(_ known: [String: HealthState.App]) -> [Int] {
    let snapshot = document.snapshot
    let wanted = snapshot.apps.indices.filter { index in
      known[snapshot.apps[index]] != nil || snapshot.value(.inFlight, app: AppIndex(Int32(index))) > 0
    }
    guard wanted.count > StatusDocument.mostApps else { return wanted }
    let sick = wanted.filter { known[snapshot.apps[$0]]?.fault != nil }
    let well = wanted.filter { known[snapshot.apps[$0]]?.fault == nil }
    return Array((sick + well).prefix(StatusDocument.mostApps))
  }

  private func write(
    _ index: Int, _ health: HealthState.App?, _ credential: CredentialSample?, _ writer: inout JSONWriter
  ) {
    let (snapshot, app) = (document.snapshot, AppIndex(Int32(index)))
    let totals = OutcomeTotals(snapshot, app: app)
    let trend = document.history.app(index, snapshot, at: document.health.now)
    writer.beginObject()
    writer.field("app", snapshot.apps[index])
    writer.field("why", health?.fault)
    writer.field("note", health?.note)
    let numbers: [(String, Int)] = [
      ("delivered", totals.delivered), ("rejected", totals.rejected), ("expired", totals.expired),
      ("failed", totals.failed), ("invalid", totals.invalid), ("retries", totals.retries),
      ("parked", snapshot.value(.deferred, app: app)), ("unparked", snapshot.value(.undeferred, app: app)),
      ("in_flight", snapshot.value(.inFlight, app: app)), ("streams", snapshot.value(.openStreams, app: app)),
      ("connecting", snapshot.value(.connections(.connecting), app: app)),
      ("open", snapshot.value(.connections(.open), app: app)),
      ("draining", snapshot.value(.connections(.draining), app: app)),
    ]
    for (name, number) in numbers { writer.field(name, Int64(max(0, number))) }
    writer.field("cap", index < snapshot.caps.count ? snapshot.caps[index] : nil)
    writer.decimal("per_second", trend.perSecond)
    writer.list("good", trend.good.map { Int($0) })
    writer.list("bad", trend.bad.map { Int($0) })
    writer.field("p50_us", trend.median)
    writer.field("p99_us", trend.p99)
    writer.field("token_issued", credential?.token?.issuedAt.map { Int($0.milliseconds) })
    writer.field("certificate_until", credential?.validUntil.map { Int($0.milliseconds) })
    write(reasons: reasons(app), &writer)
    writer.endObject()
  }

  /// Why most of the app's notifications were not delivered.
  private func reasons(_ app: AppIndex) -> [(String, Int)] {
    let snapshot = document.snapshot
    let rejections = Reason.allCases.map {
      ($0 == .unknown ? "other reasons" : $0.text, snapshot.value(.rejections($0), app: app))
    }
    let failures = RetryPolicy.Cause.allCases.map {
      ("failed: " + $0.rawValue, snapshot.value(.failures($0), app: app))
    }
    return Array((rejections + failures).filter { $0.1 > 0 }.sorted { $0.1 > $1.1 }.prefix(Self.mostReasons))
  }

  private func write(reasons: [(String, Int)], _ writer: inout JSONWriter) {
    writer.key("reasons")
    writer.beginArray()
    for (reason, count) in reasons {
      writer.beginArray()
      writer.string(reason)
      writer.integer(count)
      writer.endArray()
    }
    writer.endArray()
  }
}
