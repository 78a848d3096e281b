import Service
import Wire

/// What the command lines of `martlet results` and `martlet invalid-tokens` say.
struct FollowOptions: Sendable {
  /// Where reading begins.
  enum Start: Sendable, Equatable {
    case now
    case beginning
    case time(UnixTime)
  }

  var start = Start.now
  var filter = FollowFilter()
  var format = FollowFormat.readable
  /// Ends after so many records that pass the filter; `nil`: never.
  var limit: Int?
  /// Ends when all is read that was there at the start.
  var untilEnd = false
  /// Ends after this; `nil`: never.
  var timeout: Duration?

  static let common = [
    Option("config", value: "FILE", "The configuration (JSON5).", isRequired: true),
    Option(
      "since", value: "TIME",
      "From when: a duration such as 1h ago, a time such as 2026-01-31T12:00:00Z, or 'beginning' (default: now)."),
    Option("app", value: "NAME", "Only of this app.", isRepeated: true),
    Option("reason", value: "REASON", "Only with this reason of APNs, such as Unregistered.", isRepeated: true),
  ]

  static let ends = [
    Option(flag: "json", "The records as they stand, one a line."),
    Option("export", value: "csv", "A table with a line of names first."),
    Option("limit", value: "N", "End after N records."),
    Option(flag: "until-end", "End when all is read that was there at the start."),
    Option("timeout", value: "DURATION", "End after this; with --limit, a failure if there were fewer."),
  ]

  static let statuses = ["delivered", "rejected", "expired", "failed", "invalid"]

  /// - Parameter now: what a duration counts back from.
  init(_ arguments: Arguments, now: UnixTime) throws(UsageError) {
    if let text = arguments.value("since") { start = try Self.start(text, now: now) }
    filter.apps = arguments.all("app")
    filter.reasons = arguments.all("reason")
    filter.statuses = arguments.all("status")
    for status in filter.statuses where !Self.statuses.contains(status) {
      let nearest = NearestName.find(status, in: Self.statuses).map { "; did you mean '\($0)'?" } ?? ""
      throw UsageError(
        message: "'--status' must be one of \(Self.statuses.joined(separator: ", ")), not '\(status)'\(nearest)")
    }
    if let export = arguments.value("export") {
      guard export == "csv" else { throw UsageError(message: "'--export' must be csv, not '\(export)'") }
      guard !arguments.has("json") else { throw UsageError(message: "give either '--json' or '--export'") }
      format = .csv
    } else if arguments.has("json") {
      format = .json
    }
    if arguments.has("limit") { limit = try arguments.integer("limit", in: 1...Int.max, default: 1) }
    untilEnd = arguments.has("until-end")
    if arguments.has("timeout") { timeout = try arguments.duration("timeout", default: .zero) }
  }

  private static func start(_ text: String, now: UnixTime) throws(UsageError) -> Start {
    if text == "beginning" { return .beginning }
    if text == "now" { return .now }
    if let time = TimeReading.time(text) { return .time(time) }
    if let duration = Quantity.duration(text) {
      return .time(UnixTime(milliseconds: now.milliseconds - duration.nanoseconds / 1_000_000))
    }
    let nearest = NearestName.find(text, in: ["beginning", "now"]).map { "; did you mean '\($0)'?" } ?? ""
    throw UsageError(
      message: "'--since' must be a duration such as 30m or 1h, a time such as 2026-01-31T12:00:00Z, UNIX seconds, "
        + "'beginning' or 'now', not '\(text)'\(nearest)")
  }
}
