import Glibc
import MockAPNs
import Service
import Wire

/// Shows how the demo goes: a table that is drawn anew on a terminal, a line a second elsewhere.
final class DemoView: Sendable {
  private static let mostRows = 15

  let period: Duration
  private let isQuiet: Bool
  private let isTerminal: Bool
  private let apps: [String]

  init(isQuiet: Bool, apps: [String]) {
    self.isQuiet = isQuiet
    self.apps = apps
    isTerminal = !isQuiet && isatty(STDOUT_FILENO) == 1
    period = isTerminal ? .milliseconds(250) : .seconds(1)
  }

  func begin(_ options: DemoOptions, endpointPort: UInt16) {
    guard !isQuiet else { return }
    Console.out(
      "\(options.apps) apps, \(Self.grouped(options.rate)) requests a second for "
        + "\(options.duration.components.seconds) s\(options.hasFaults ? ", with faults" : "")")
    Console.out("embedded Kafka -> martlet -> APNs look-alike over TLS and HTTP/2 -> embedded Kafka")
    Console.out("metrics: http://\(options.listen.host):\(endpointPort)/metrics")
    Console.out("")
    fflush(nil)
    if isTerminal { Console.out(String(repeating: "\n", count: rowCount - 1)) }
  }

  func show(_ books: DemoBooks, _ snapshot: MetricSnapshot) {
    guard !isQuiet else { return }
    if isTerminal { drawTable(books, snapshot) } else { Console.out(line(books, snapshot)) }
    fflush(nil)
  }

  private func line(_ books: DemoBooks, _ snapshot: MetricSnapshot) -> String {
    let statuses = zip(DemoBooks.statuses, books.byStatus).map { "\($0) \(Self.grouped($1))" }
    return "\(Self.padded(Self.decimal(books.seconds), 6)) s  produced \(Self.grouped(books.produced))  "
      + statuses.joined(separator: "  ") + "  in flight \(Self.grouped(inFlight(snapshot)))"
  }

  /// Rows of the table, the two lines above and the one of totals included.
  private var rowCount: Int { min(apps.count, Self.mostRows) + 4 }

  private func drawTable(_ books: DemoBooks, _ snapshot: MetricSnapshot) {
    var lines = [
      line(books, snapshot), "",
      "app          delivered  rejected   expired    failed   retries in flight  connections",
    ]
    for (index, name) in apps.prefix(Self.mostRows).enumerated() {
      let figures = snapshot.figures(ofApp: index)
      let numbers = [
        figures.delivered, figures.rejected, figures.expired, figures.failed, figures.retries, figures.inFlight,
        figures.openConnections,
      ]
      lines.append(
        name + String(repeating: " ", count: max(1, 12 - name.count))
          + numbers.map { Self.padded(Self.grouped($0), 10) }.joined())
    }
    if apps.count > Self.mostRows { lines.append("and \(apps.count - Self.mostRows) more") } else { lines.append("") }
    // Up to the table's first line, and each line cleared before it is written.
    Console.out("\u{1b}[\(rowCount)A" + lines.map { "\u{1b}[2K" + $0 }.joined(separator: "\n"))
  }

  private func inFlight(_ snapshot: MetricSnapshot) -> Int {
    apps.indices.reduce(0) { $0 + snapshot.figures(ofApp: $1).inFlight }
  }

  static func grouped(_ number: Int) -> String {
    var digits = Array(String(number.magnitude))
    var place = digits.count - 3
    while place > 0 {
      digits.insert(",", at: place)
      place -= 3
    }
    return (number < 0 ? "-" : "") + String(digits)
  }

  static func padded(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }

  static func decimal(_ number: Double) -> String {
    let tenths = Int(number * 10)
    return "\(tenths / 10).\(tenths % 10)"
  }
}

/// The books at the end: that every request has its result, and what APNs saw of them.
struct DemoSummary {
  let books: DemoBooks
  let apns: Journal.Counts

  /// Every request has exactly one result.
  var isBalanced: Bool { books.unaccounted == 0 && books.repeatedResults == 0 && books.strayResults == 0 }

  private var rows: [(name: String, value: Int, meaning: String)] {
    let meanings = [
      "APNs answered 200", "APNs refused them for good", "their time had passed", "attempts or time ran out",
      "broke the contract, never sent",
    ]
    return [("produced", books.produced, "requests that Kafka holds")]
      + DemoBooks.statuses.indices.map { (DemoBooks.statuses[$0], books.byStatus[$0], meanings[$0]) }
      + [
        ("invalid_tokens", books.invalidTokens, "events about dead tokens"),
        ("requests_at_apns", apns.requests, "what APNs received"),
        ("resent", apns.repeatedIdentifiers, "of them under an apns-id that it had seen"),
        ("accepted_twice", apns.identifiersAcceptedRepeatedly, "apns-ids with more than one 200"),
        ("connections", apns.connections, "that APNs accepted"),
        ("provider_tokens", apns.providerTokens, "distinct ones that APNs saw"),
        ("repeated_results", books.repeatedResults, "second results of one request"),
        ("stray_results", books.strayResults, "results of no request"),
        ("unaccounted", books.unaccounted, "requests without a result"),
      ]
  }

  var text: String {
    let lines = rows.map { row in
      row.name + String(repeating: " ", count: 18 - row.name.count)
        + DemoView.padded(DemoView.grouped(row.value), 12) + "  \(row.meaning)"
    }
    let rate = books.seconds > 0 ? Int(Double(books.answered) / books.seconds) : 0
    return "\n" + lines.joined(separator: "\n")
      + "\n\n\(isBalanced ? "The books balance" : "THE BOOKS DO NOT BALANCE"): "
      + "unaccounted \(books.unaccounted), \(DemoView.grouped(rate)) results a second over "
      + "\(DemoView.decimal(books.seconds)) s"
  }

  var json: String {
    var writer = JSONWriter()
    writer.beginObject()
    for row in rows {
      writer.key(row.name)
      writer.integer(row.value)
    }
    writer.key("milliseconds")
    writer.integer(Int(books.seconds * 1000))
    writer.key("balanced")
    writer.bool(isBalanced)
    writer.endObject()
    return String(decoding: writer.take(), as: UTF8.self)
  }
}
