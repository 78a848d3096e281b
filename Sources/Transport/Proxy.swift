import Wire

/// An HTTP proxy that connections go through (RFC 9110, section 9.3.6: `CONNECT`), and who we are to it.
package struct Proxy: Sendable, CustomStringConvertible {
  package var endpoint: Endpoint
  /// The value of `Proxy-Authorization`; a secret. `nil`: the proxy asks for none.
  let authorization: String?

  /// - Parameters:
  ///   - endpoint: where the proxy listens.
  ///   - username: for basic authentication (RFC 7617), without a colon; `nil`: none is sent.
  ///   - password: may be empty.
  package init(_ endpoint: Endpoint, username: String? = nil, password: String = "") {
    self.endpoint = endpoint
    authorization = username.map { username in
      let pair = Array("\(username):\(password)".utf8)
      return "Basic \(Base64.encode(pair.span))"
    }
  }

  /// The address alone.
  package var description: String { "proxy \(endpoint.description)" }

  /// The request for a tunnel. The proxy looks the target's name up.
  func request(for target: Endpoint) -> [UInt8] {
    var text = "CONNECT \(target.description) HTTP/1.1\r\nHost: \(target.description)\r\n"
    if let authorization { text += "Proxy-Authorization: \(authorization)\r\n" }
    return Array((text + "\r\n").utf8)
  }
}

/// Reads the head of a proxy's answer as it comes in; what follows the head is the target's.
struct ProxyAnswer {
  /// The most bytes of a head, interim ones included.
  static let longestHead = 8 * 1024

  enum Progress: Equatable {
    case incomplete
    /// The head has ended after so many of the new bytes.
    case ended(status: Int, reason: String, taken: Int)
    case tooLong
    case malformed
  }

  private var head: [UInt8] = []
  private var total = 0

  /// - Parameter bytes: what came since the last call.
  mutating func take(_ bytes: Span<UInt8>) -> Progress {
    for index in bytes.indices {
      total += 1
      if total > Self.longestHead { return .tooLong }
      head.append(bytes[index])
      if !Self.startsWell(head) { return .malformed }
      guard Self.isComplete(head) else { continue }
      guard let (status, reason) = Self.statusLine(head) else { return .malformed }
      // An interim answer; the real one follows.
      if (100..<200).contains(status) {
        head = []
        continue
      }
      return .ended(status: status, reason: reason, taken: index + 1)
    }
    return .incomplete
  }

  /// Whether it may still become an answer, so that one who speaks another protocol is found out at once.
  private static func startsWell(_ head: [UInt8]) -> Bool {
    guard head.count <= 7 else { return true }
    return head.elementsEqual("HTTP/1.".utf8.prefix(head.count))
  }

  /// An empty line ends the head; bare line feeds are tolerated (RFC 9112, section 2.2).
  private static func isComplete(_ head: [UInt8]) -> Bool {
    guard head.last == 0x0a else { return false }
    let line = head.dropLast().last == 0x0d ? head.dropLast(2) : head.dropLast()
    return line.last == 0x0a
  }

  /// `HTTP/1.1 407 Proxy Authentication Required`.
  private static func statusLine(_ head: [UInt8]) -> (status: Int, reason: String)? {
    let line = head.prefix { $0 != 0x0a && $0 != 0x0d }
    let parts = line.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count >= 2, parts[1].count == 3, let status = Int(String(decoding: parts[1], as: UTF8.self)),
      (100..<1000).contains(status)
    else { return nil }
    let reason = parts.count < 3 ? [] : parts[2].prefix(64).map { (0x20..<0x7f).contains($0) ? $0 : 0x3f }
    return (status, String(decoding: reason, as: UTF8.self))
  }
}
