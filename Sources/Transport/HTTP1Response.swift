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
