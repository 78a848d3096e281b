/// A request for a resource, as `HTTP1Responder` takes it: GET or HEAD, without a body.
package struct HTTP1Request: Sendable {
  /// The methods that are served.
  package enum Method: String, Sendable {
    case get = "GET"
    case head = "HEAD"
  }

  package var method: Method
  /// The target's path as it was sent, percent-encoded.
  package var path: String
  /// What follows the target's `?`, without it.
  package var query: String?
  /// Whether the connection may be used again after the answer.
  var keepsAlive: Bool
  private var head: [UInt8]
  private var fields: [(name: Range<Int>, value: Range<Int>)]

  init(
    method: Method, path: String, query: String?, keepsAlive: Bool, head: [UInt8],
    fields: [(name: Range<Int>, value: Range<Int>)]
  ) {
    self.method = method
    self.path = path
    self.query = query
    self.keepsAlive = keepsAlive
    self.head = head
    self.fields = fields
  }

  /// The value of a header field, its name without regard to case; the values of repeated fields joined with commas.
  package func header(_ name: String) -> String? {
    var joined: String?
    for field in fields where HTTP1Text.same(head[field.name], name) {
      let value = String(decoding: head[field.value], as: UTF8.self)
      joined = joined.map { $0 + ", " + value } ?? value
    }
    return joined
  }
}

/// Reads HTTP/1.0 and HTTP/1.1 requests (RFC 9112) out of bytes as they come, strictly and within bounds. No I/O.
///
/// After a refusal nothing more can be read: where the next request would begin is not known.
package struct HTTP1RequestParser: Sendable {
  /// What the bytes so far come to.
  package enum Step: Sendable {
    /// No whole head is there yet.
    case needsMore
    case request(HTTP1Request)
    /// To be answered with this status, and then closed.
    case refused(status: UInt16)
  }

  /// The largest request line, in bytes: beyond it 414.
  package static let lineLimit = 4096
  /// The largest head, in bytes: beyond it 431.
  package static let headLimit = 8192

  private var buffer: [UInt8] = []
  private var start = 0
  /// How far the search for the head's end has come.
  private var searched = 0
  private var refusal: UInt16?

  package init() {}

  /// Bytes of a request that is not complete yet.
  package var bufferedCount: Int { buffer.count - start }

  /// Takes bytes as they came.
  package mutating func append(_ bytes: Span<UInt8>) {
    guard refusal == nil else { return }
    if start > 0 {
      buffer.removeFirst(start)
      searched -= start
      start = 0
    }
    unsafe bytes.withUnsafeBufferPointer { unsafe buffer.append(contentsOf: $0) }
  }

  /// The next request, if its head is complete.
  package mutating func next() -> Step {
    if let refusal { return .refused(status: refusal) }
    skipEmptyLines()
    guard let end = endOfHead() else {
      let line = buffer[start...].prefix(Self.lineLimit + 1)
      if line.count > Self.lineLimit && !line.contains(UInt8(ascii: "\n")) { return refuse(414) }
      if bufferedCount > Self.headLimit { return refuse(431) }
      return .needsMore
    }
    let head = Array(buffer[start..<end])
    start = end
    searched = end
    guard head.count <= Self.headLimit else { return refuse(431) }
    do throws(Refusal) {
      return .request(try Self.parse(head))
    } catch {
      return refuse(error.status)
    }
  }

  private mutating func refuse(_ status: UInt16) -> Step {
    refusal = status
    buffer = []
    start = 0
    searched = 0
    return .refused(status: status)
  }

  /// Empty lines before a request line are ignored (RFC 9112 section 2.2).
  private mutating func skipEmptyLines() {
    while start < buffer.count {
      if buffer[start] == UInt8(ascii: "\n") {
        start += 1
      } else if buffer[start] == UInt8(ascii: "\r"), start + 1 < buffer.count, buffer[start + 1] == UInt8(ascii: "\n") {
        start += 2
      } else {
        break
      }
    }
    searched = max(searched, start)
  }

  /// Just after the empty line that ends the head.
  private mutating func endOfHead() -> Int? {
    while searched < buffer.count {
      if buffer[searched] == UInt8(ascii: "\n") {
        var next = searched + 1
        if next < buffer.count, buffer[next] == UInt8(ascii: "\r") { next += 1 }
        guard next < buffer.count else { return nil }
        if buffer[next] == UInt8(ascii: "\n") { return next + 1 }
      }
      searched += 1
    }
    return nil
  }
}

// MARK: - One head

extension HTTP1RequestParser {
  private struct Refusal: Error {
    var status: UInt16
    init(_ status: UInt16) { self.status = status }
  }

  private static func parse(_ head: [UInt8]) throws(Refusal) -> HTTP1Request {
    var lines = HTTP1Text.lines(of: head)
    guard !lines.isEmpty else { throw Refusal(400) }
    let line = lines.removeFirst()
    guard line.count <= lineLimit else { throw Refusal(414) }
    let words = head[line].split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard words.count == 3, !words[0].isEmpty, words[0].allSatisfy(HTTP1Text.isTokenByte) else { throw Refusal(400) }
    let isHTTP10 = try checkVersion(words[2])
    guard let method = HTTP1Request.Method(rawValue: String(decoding: words[0], as: UTF8.self)) else {
      throw Refusal(405)
    }
    let (path, query) = try target(words[1])
    var fields: [(name: Range<Int>, value: Range<Int>)] = []
    for line in lines { fields.append(try field(head, line)) }
    let keepsAlive = try checkFraming(head, fields, isHTTP10: isHTTP10)
    return HTTP1Request(method: method, path: path, query: query, keepsAlive: keepsAlive, head: head, fields: fields)
  }

  /// - Returns: whether it is HTTP/1.0.
  private static func checkVersion(_ text: ArraySlice<UInt8>) throws(Refusal) -> Bool {
    let version = Array(text)
    guard version.count == 8, version.starts(with: "HTTP/".utf8), version[6] == UInt8(ascii: "."),
      HTTP1Text.isDigit(version[5]), HTTP1Text.isDigit(version[7])
    else { throw Refusal(400) }
    guard version[5] == UInt8(ascii: "1") else { throw Refusal(505) }
    return version[7] == UInt8(ascii: "0")
  }

  /// The target in origin form, or in absolute form, whose authority says nothing new.
  private static func target(_ text: ArraySlice<UInt8>) throws(Refusal) -> (path: String, query: String?) {
    guard text.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "#") }) else { throw Refusal(400) }
    var rest = text
    for scheme in ["http://", "https://"] where HTTP1Text.same(text.prefix(scheme.utf8.count), scheme) {
      rest = text.dropFirst(scheme.utf8.count)
      rest = rest.drop { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
      if rest.first != UInt8(ascii: "/") { rest = [UInt8(ascii: "/")] + rest }
    }
    guard rest.first == UInt8(ascii: "/") else { throw Refusal(400) }
    let parts = rest.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
    return (
      String(decoding: parts[0], as: UTF8.self), parts.count > 1 ? String(decoding: parts[1], as: UTF8.self) : nil
    )
  }

  private static func field(
    _ head: [UInt8], _ line: Range<Int>
  ) throws(Refusal) -> (name: Range<Int>, value: Range<Int>) {
    guard let colon = head[line].firstIndex(of: UInt8(ascii: ":")), colon > line.lowerBound,
      head[line.lowerBound..<colon].allSatisfy(HTTP1Text.isTokenByte)
    else { throw Refusal(400) }
    var value = colon + 1..<line.upperBound
    while let first = head[value].first, HTTP1Text.isBlank(first) { value = value.lowerBound + 1..<value.upperBound }
    while let last = head[value].last, HTTP1Text.isBlank(last) { value = value.lowerBound..<value.upperBound - 1 }
    guard head[value].allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }) else { throw Refusal(400) }
    return (line.lowerBound..<colon, value)
  }

  /// Host as it must be (RFC 9112 section 3.2), no body, and whether the connection goes on.
  private static func checkFraming(
    _ head: [UInt8], _ fields: [(name: Range<Int>, value: Range<Int>)], isHTTP10: Bool
  ) throws(Refusal) -> Bool {
    var hosts = 0
    var keepsAlive = !isHTTP10
    for (name, value) in fields {
      if HTTP1Text.same(head[name], "host") { hosts += 1 }
      if HTTP1Text.same(head[name], "transfer-encoding") { throw Refusal(413) }
      if HTTP1Text.same(head[name], "content-length") {
        guard !value.isEmpty, head[value].allSatisfy(HTTP1Text.isDigit) else { throw Refusal(400) }
        guard head[value].allSatisfy({ $0 == UInt8(ascii: "0") }) else { throw Refusal(413) }
      }
      if HTTP1Text.same(head[name], "connection") {
        for option in head[value].split(separator: UInt8(ascii: ","))
        where HTTP1Text.same(option.filter { !HTTP1Text.isBlank($0) }[...], "close") {
          keepsAlive = false
        }
      }
    }
    guard hosts == 1 || (hosts == 0 && isHTTP10) else { throw Refusal(400) }
    return keepsAlive
  }
}

/// What HTTP/1 calls a token, a blank, a line (RFC 9110 section 5.6).
enum HTTP1Text {
  static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

  static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == 0x09 }

  static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }

  /// Equal without regard to the case of ASCII letters.
  static func same(_ bytes: ArraySlice<UInt8>, _ text: String) -> Bool {
    bytes.count == text.utf8.count && zip(bytes, text.utf8).allSatisfy { lower($0) == lower($1) }
  }

  private static func lower(_ byte: UInt8) -> UInt8 {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
  }

  /// The lines of a head, without their ends and without the empty last one. A bare LF ends a line too; a bare CR stays
  /// in its line, where no rule lets it pass.
  static func lines(of head: [UInt8]) -> [Range<Int>] {
    var lines: [Range<Int>] = []
    var start = 0
    for index in head.indices where head[index] == UInt8(ascii: "\n") {
      let end = index > start && head[index - 1] == UInt8(ascii: "\r") ? index - 1 : index
      if end > start { lines.append(start..<end) }
      start = index + 1
    }
    return lines
  }
}
