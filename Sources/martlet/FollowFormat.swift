import Service
import Wire

/// How records are written.
enum FollowFormat: Sendable {
  case readable
  /// The records as they stand, one a line.
  case json
  /// RFC 4180, with a line of names first.
  case csv
}

/// Writes records of one kind, a line each.
struct FollowWriter {
  let kind: FollowedKind
  let format: FollowFormat
  private let columns: Columns

  /// The places of what a readable line shows.
  private struct Columns {
    var id, token, channel, app, reason, time, detail: Int
    var status, httpStatus, attempts, suspect, unregisteredAt, requestedAt: Int?
  }

  init(_ kind: FollowedKind, _ format: FollowFormat) {
    self.kind = kind
    self.format = format
    let place = { (name: String) in kind.columns.firstIndex(of: name) }
    columns = Columns(
      id: kind.column("id"), token: kind.column("token"), channel: place("channel") ?? kind.column("token"),
      app: kind.app, reason: kind.reason, time: place("completed_at") ?? kind.column("detected_at"),
      detail: place("message") ?? kind.reason, status: kind.status, httpStatus: place("http_status"),
      attempts: place("attempts"), suspect: place("suspect"), unregisteredAt: place("unregistered_at"),
      requestedAt: place("requested_at"))
  }

  /// What stands before the first record.
  var header: [UInt8] {
    guard format == .csv else { return [] }
    return Array((kind.columns.map { $0.replacing(".", with: "_") }.joined(separator: ",") + "\r\n").utf8)
  }

  func write(_ record: FollowedRecord, to output: inout [UInt8]) {
    switch format {
    case .json:
      // A record may be written over several lines; a line end outside of a text is only white space.
      for index in record.bytes.range.indices where record.bytes.storage[index] != 0x0A {
        output.append(record.bytes.storage[index])
      }
      output.append(0x0A)
    case .csv:
      for column in kind.columns.indices {
        if column > 0 { output.append(UInt8(ascii: ",")) }
        Self.append(csv: record.text(column) ?? "", to: &output)
      }
      output += [0x0D, 0x0A]
    case .readable:
      output += Array(readable(record).utf8)
      output.append(0x0A)
    }
  }

  private static func append(csv text: String, to output: inout [UInt8]) {
    let needsQuotes = text.utf8.contains { $0 == 0x22 || $0 == 0x2C || $0 == 0x0A || $0 == 0x0D }
    guard needsQuotes else {
      output += Array(text.utf8)
      return
    }
    output.append(0x22)
    for byte in text.utf8 { output += byte == 0x22 ? [0x22, 0x22] : [byte] }
    output.append(0x22)
  }

  /// `2026-01-31T12:00:00.123Z rejected 410 Unregistered  shop-ios  ab12cd34  order-42  2 attempts, 333 ms`
  func readable(_ record: FollowedRecord) -> String {
    let at = record.time(columns.time)
    var parts = [at.map(RFC3339.text) ?? "(no time)"]
    let reason = record.text(columns.reason)
    if let status = columns.status {
      let words = [record.text(status), columns.httpStatus.flatMap(record.text), reason].compactMap(\.self)
      parts.append(Self.padded(words.joined(separator: " "), to: 10))
    } else {
      parts.append(Self.padded(reason ?? "(no reason)", to: 12))
    }
    parts.append(record.text(columns.app) ?? "(no app)")
    parts.append(record.text(columns.token) ?? record.text(columns.channel) ?? "(no token)")
    if let id = record.text(columns.id) { parts.append("id \(id)") }
    if let attempts = columns.attempts.flatMap(record.text), attempts != "1", attempts != "0" {
      parts.append("\(attempts) attempts")
    }
    if columns.status != nil, let at, let requestedAt = columns.requestedAt.flatMap(record.time) {
      parts.append("after \(at.milliseconds - requestedAt.milliseconds) ms")
    }
    if let since = columns.unregisteredAt.flatMap(record.time) { parts.append("since \(RFC3339.text(since))") }
    if columns.suspect.flatMap(record.text) == "true" { parts.append("suspect: check the app's environment") }
    if columns.detail != columns.reason, let detail = record.text(columns.detail) { parts.append(detail) }
    return Self.printable(parts.joined(separator: "  "))
  }

  private static func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  /// Records are written by others: a control character could move the cursor of a terminal.
  private static func printable(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }) else {
      return text
    }
    return String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) ? "\u{FFFD}" : $0 }))
  }
}
