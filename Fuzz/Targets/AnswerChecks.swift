import APNs
import Wire

/// Whatever a server answers, what is kept of it is bounded text and sane times.
enum AnswerChecks {
  /// - Parameter input: lines with the status, `apns-id`, `apns-unique-id` and `retry-after` (empty: not there), then
  ///   the body.
  static func check(_ input: [UInt8]) throws {
    let (lines, body) = input.lines(4)
    let status = UInt16(String(decoding: lines[0].prefix(5), as: UTF8.self)) ?? 0
    func header(_ index: Int) -> [UInt8]? { index < lines.count && !lines[index].isEmpty ? lines[index] : nil }
    let (id, unique, wait) = (header(1), header(2), header(3))
    let response = Response.parse(
      status: status, body: body.span, apnsID: id?.span, uniqueID: unique?.span, retryAfter: wait?.span)
    try check(response)
    _ = Reason(goAwayData: body.span)
    if let id, let uuid = response.apnsID {
      var text = "\(uuid)"
      text = text.filter { $0 != "-" }
      let sent = String(decoding: id, as: UTF8.self).lowercased().filter(\.isHexDigit)
      try hold(sent == text.lowercased(), "the apns-id \(sent) became \(text)")
    }
    guard let reason = response.reason, reason != .unknown else { return }
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("reason")
    writer.string(reason.text)
    if let time = response.timestamp {
      writer.key("timestamp")
      writer.integer(time.milliseconds)
    }
    writer.endObject()
    let again = Response.parse(status: status, body: writer.bytes.span)
    try hold(again.reason == reason, "\(reason) became \(again.reason.map { "\($0)" } ?? "nothing")")
    // Times before 1974 are read as seconds.
    if let time = response.timestamp, time.milliseconds >= 100_000_000_000 {
      try hold(again.timestamp == time, "another timestamp")
    }
  }

  private static func check(_ response: Response) throws {
    let texts = [
      (response.unknownReason, Response.longestText), (response.uniqueID, Response.longestText),
      (response.bodyText, Response.longestBodyText),
    ]
    for case (let text?, let longest) in texts {
      try hold((1...longest).contains(text.utf8.count), "a text of \(text.utf8.count) bytes")
      try hold(text.utf8.allSatisfy { (0x20...0x7e).contains($0) }, "the text \(text)")
    }
    if let time = response.timestamp {
      try hold((1...253_402_300_800_000).contains(time.milliseconds), "the time \(time.milliseconds)")
    }
    for now in [0, 1_790_000_000, 253_402_300_799] as [Int64] {
      guard let wait = response.askedWait(at: UnixTime(seconds: now)) else { continue }
      try hold((.zero)...Response.longestRetryAfter ~= wait, "a wait of \(wait)")
    }
  }
}
