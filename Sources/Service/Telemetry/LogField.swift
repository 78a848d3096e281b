package import APNs
package import Delivery
package import Wire

/// One field of a log line.
///
/// There is a case for each thing that lines speak of and none for any text at all, so that a key, a provider token or a
/// payload has no place to stand. Texts of other libraries come in as `cause`, which is cleaned and cut.
package enum LogField: Sendable {
  case app(String)
  case topic(String)
  case partition(Int32)
  case offset(Int64)
  /// Its place in a batch.
  case item(Int32)
  case ending(Ending.Status)
  case attempts(Int)
  /// The id of a trace (W3C Trace Context).
  case trace(UUID)
  case lane(Int32)
  case host(String)
  case port(UInt16)
  case file(String)
  case setting(String)
  case status(UInt16)
  case reason(Reason)
  case version(String)
  /// A device token: only its ends are written.
  case token(ShortToken)
  case requestID(UUID)
  case count(Int)
  case duration(Duration)
  case validUntil(UnixTime)
  /// What another library said.
  case cause(CauseText)

  /// The field's name in the line.
  package var name: String {
    switch self {
    case .app: "app"
    case .topic: "topic"
    case .partition: "partition"
    case .offset: "offset"
    case .item: "index"
    case .ending: "status"
    case .attempts: "attempts"
    case .trace: "trace_id"
    case .lane: "lane"
    case .host: "host"
    case .port: "port"
    case .file: "file"
    case .setting: "setting"
    case .status: "http_status"
    case .reason: "reason"
    case .version: "version"
    case .token: "token"
    case .requestID: "apns_id"
    case .count: "count"
    case .duration: "duration_seconds"
    case .validUntil: "valid_until"
    case .cause: "cause"
    }
  }
}

/// A device token, shortened to its first 4 and last 4 digits.
package struct ShortToken: Sendable, Equatable, CustomStringConvertible {
  package let description: String

  package init(_ token: Span<UInt8>) {
    guard token.count > 12 else {
      // So short a token would be told by its ends.
      description = "…"
      return
    }
    var ends: [UInt8] = []
    for index in 0..<4 { ends.append(token[index]) }
    ends.append(contentsOf: Array("…".utf8))
    for index in token.count - 4..<token.count { ends.append(token[index]) }
    description = String(decoding: ends, as: UTF8.self)
  }

  package init(_ token: String) { self.init(token.utf8.span) }
}

/// A text of another library: one line, bounded, and without what looks like a secret.
package struct CauseText: Sendable, Equatable, CustomStringConvertible {
  package static let longest = 400

  package let description: String

  package init(_ text: String) {
    var words: [String] = []
    var length = 0
    var hidesNext = false
    for word in text.split(whereSeparator: { $0 == " " || $0.isNewline || $0 == "\t" }) {
      guard length < Self.longest else {
        words.append("…")
        break
      }
      let word = hidesNext ? "[hidden]" : Self.cleaned(word)
      hidesNext = Self.announcesSecret(word)
      words.append(String(word.prefix(Self.longest)))
      length += word.utf8.count + 1
    }
    description = words.joined(separator: " ")
  }

  /// The word before a secret: `Authorization: bearer …`, `password: …`.
  private static func announcesSecret(_ word: String) -> Bool {
    let word = word.lowercased()
    return word == "bearer" || word.hasSuffix("password:") || word.hasSuffix("passphrase:") || word.hasSuffix("secret:")
  }

  private static func cleaned(_ word: Substring) -> String {
    // A JSON web token (RFC 7519) begins with the base 64 of `{"`; a PEM file with dashes.
    if word.contains("eyJ") || word.contains("-----") { return "[hidden]" }
    if let equals = word.firstIndex(of: "="),
      ["password", "secret", "passphrase", "key.pem"].contains(where: {
        word[..<equals].lowercased().hasSuffix($0)
      })
    {
      return "\(word[...equals])[hidden]"
    }
    return shortened(word)
  }

  /// Runs of more than 24 letters and digits, which keys, tokens and payloads are made of, keep only their ends. File
  /// names and host names are told apart by the dots, slashes and hyphens in them.
  private static func shortened(_ word: Substring) -> String {
    var result = ""
    var run: [UInt8] = []
    func isPlain(_ byte: UInt8) -> Bool {
      (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte) || byte == 0x2B || byte == 0x3D
    }
    func close() {
      let text = String(decoding: run, as: UTF8.self)
      let isSecretLike = run.count > 24 && run.contains { (0x30...0x39).contains($0) }
      result += isSecretLike ? ShortToken(text).description : text
      run = []
    }
    var other: [UInt8] = []
    for byte in word.utf8 {
      if isPlain(byte) {
        result += String(decoding: other, as: UTF8.self)
        other = []
        run.append(byte)
      } else {
        if !run.isEmpty { close() }
        other.append(byte)
      }
    }
    if !run.isEmpty { close() }
    return result + String(decoding: other, as: UTF8.self)
  }
}
