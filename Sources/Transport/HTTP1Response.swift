package import Wire

/// An answer of `HTTP1Responder`.
package struct HTTP1Response: Sendable {
  package var status: UInt16
  package var contentType: String
  /// Further header fields. Content-Length, Content-Type, Connection and Date are written by the responder.
  package var headers: [(name: String, value: String)]
  /// Left out on the wire when the request was HEAD, but counted in Content-Length.
  package var body: Bytes

  package init(
    status: UInt16 = 200, contentType: String = "text/plain; charset=utf-8",
    headers: [(name: String, value: String)] = [], body: Bytes
  ) {
    self.status = status
    self.contentType = contentType
    self.headers = headers
    self.body = body
  }

  package init(status: UInt16, text: String) {
    self.init(status: status, body: Bytes(text))
  }

  /// The plain answer for a status: its phrase and a line end.
  init(refusing status: UInt16) {
    self.init(status: status, text: Self.phrase(status) + "\n")
    if status == 405 { headers.append(("Allow", "GET, HEAD")) }
    if status == 503 { headers.append(("Retry-After", "1")) }
  }

  /// The reason phrase of RFC 9110 section 15; empty for a status that has none here.
  static func phrase(_ status: UInt16) -> String {
    switch status {
    case 200: "OK"
    case 204: "No Content"
    case 301: "Moved Permanently"
    case 302: "Found"
    case 304: "Not Modified"
    case 307: "Temporary Redirect"
    case 308: "Permanent Redirect"
    case 400: "Bad Request"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 406: "Not Acceptable"
    case 408: "Request Timeout"
    case 413: "Content Too Large"
    case 414: "URI Too Long"
    case 431: "Request Header Fields Too Large"
    case 500: "Internal Server Error"
    case 503: "Service Unavailable"
    case 505: "HTTP Version Not Supported"
    default: ""
    }
  }

  /// The head as it goes out. A line end in a field's value becomes a blank: it must not begin a new field.
  func head(closes: Bool, now: UnixTime) -> String {
    var text = "HTTP/1.1 \(status) \(Self.phrase(status))\r\n"
    text += "Date: \(HTTPDate.text(now))\r\nContent-Type: \(Self.line(contentType))\r\n"
    text += "X-Content-Type-Options: nosniff\r\n"
    if status != 204 { text += "Content-Length: \(body.count)\r\n" }
    for (name, value) in headers { text += "\(Self.line(name)): \(Self.line(value))\r\n" }
    if closes { text += "Connection: close\r\n" }
    return text + "\r\n"
  }

  private static func line(_ text: String) -> String {
    let bytes = text.utf8.map { $0 < 0x20 || $0 == 0x7f ? UInt8(ascii: " ") : $0 }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// Dates as HTTP writes them (IMF-fixdate, RFC 9110 section 5.6.7).
enum HTTPDate {
  static func text(_ time: UnixTime) -> String {
    let seconds = time.seconds
    let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
    let (year, month, day) = civil(days)
    let rest = seconds - days * 86_400
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][Int((days % 7 + 7) % 7)]
    let name = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][Int(month) - 1]
    let clock = "\(two(rest / 3600)):\(two(rest / 60 % 60)):\(two(rest % 60))"
    return "\(weekday), \(two(day)) \(name) \(four(year)) \(clock) GMT"
  }

  private static func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

  private static func four(_ year: Int64) -> String {
    let text = String(year)
    return String(repeating: "0", count: max(0, 4 - text.count)) + text
  }

  /// The date of a day counted from 1970-01-01 in the Gregorian calendar: 400 years have 146,097 days, and years are
  /// counted from March so that the leap day comes last.
  private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
  }
}
