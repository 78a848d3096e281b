import Wire

/// A script file that cannot be used, in words.
package struct ScriptError: Error, Hashable, Sendable, CustomStringConvertible {
  package var message: String
  package var description: String { message }
}

extension Script {
  /// The keys of a rule in a script file; see `init(json:)`.
  package static let help = """
    {"rules": [{condition and action}, ...]}; the first rule that applies decides. \
    Conditions: token, token_prefix, token_share, topic, connection, from, until (seconds since the start), \
    after_requests, before_requests, every, share (0 to 1), times. \
    Actions, one a rule: status with reason, timestamp (ms), retry_after (s), body; delay_ms with delay_max_ms; \
    reset (code); goaway (code) with last_stream ("newest", "previous" or a number), debug, close; \
    silent ("request" or "connection"); disconnect ("close" or "abort"); max_concurrent_streams.
    """

  /// Reads a script file: strict JSON, with the keys of `help`.
  package init(json: [UInt8]) throws(ScriptError) {
    self.init()
    do {
      var scanner = JSONScanner(json.span)
      try scanner.beginObject()
      while let key = try scanner.nextKey() {
        guard scanner.matches(key, "rules") else { throw ScriptError(message: "only \"rules\" is known here") }
        try scanner.beginArray()
        while try scanner.hasNextElement() {
          var draft = RuleDraft(number: rules.count + 1)
          try scanner.beginObject()
          while let key = try scanner.nextKey() {
            try draft.set(String(decoding: json[key.range.indices], as: UTF8.self), try scanner.value(), json)
          }
          rules.append(Rule(draft.condition, try draft.action()))
        }
      }
      try scanner.endDocument()
    } catch let error as ScriptError {
      throw error
    } catch {
      throw ScriptError(message: "the script is no valid JSON: \(error)")
    }
  }
}

/// A rule while its members are read.
private struct RuleDraft {
  let number: Int
  var condition = Script.Condition()
  private var texts: [String: String] = [:]
  private var numbers: [String: Double] = [:]
  private var closes = false

  init(number: Int) { self.number = number }

  private static let textKeys: Set<String> = [
    "reason", "body", "last_stream", "debug", "silent", "disconnect",
  ]
  private static let numberKeys: Set<String> = [
    "status", "timestamp", "retry_after", "delay_ms", "delay_max_ms", "reset", "goaway", "last_stream",
    "max_concurrent_streams",
  ]

  mutating func set(_ key: String, _ value: JSONValue, _ json: [UInt8]) throws(ScriptError) {
    switch value {
    case .string(let string):
      guard let text = try? JSONText.text(of: string, in: json.span) else { throw problem(key, "is no text") }
      try set(key, text: text)
    case .number(let range, _):
      guard let number = Double(String(decoding: json[range.indices], as: UTF8.self)), number >= 0, number < 1e15 else {
        throw problem(key, "is out of range")
      }
      try set(key, number: number)
    case .true where key == "close": closes = true
    case .false where key == "close": closes = false
    default: throw problem(key, "is unknown, or has a value of another kind")
    }
  }

  private mutating func set(_ key: String, text: String) throws(ScriptError) {
    switch key {
    case "token": condition.token = text
    case "token_prefix": condition.tokenPrefix = text
    case "topic": condition.topic = text
    default:
      guard Self.textKeys.contains(key) else { throw problem(key, "is unknown, or has a value of another kind") }
      texts[key] = text
    }
  }

  private mutating func set(_ key: String, number: Double) throws(ScriptError) {
    switch key {
    case "token_share": condition.tokenShare = number
    case "share": condition.share = number
    case "connection": condition.connection = Int(number)
    case "from": condition.from = .seconds(number)
    case "until": condition.until = .seconds(number)
    case "after_requests": condition.afterRequests = Int(number)
    case "before_requests": condition.beforeRequests = Int(number)
    case "every":
      guard number >= 1 else { throw problem(key, "must be 1 or more") }
      condition.every = Int(number)
    case "times": condition.times = Int(number)
    default:
      guard Self.numberKeys.contains(key) else { throw problem(key, "is unknown, or has a value of another kind") }
      numbers[key] = number
    }
  }

  func action() throws(ScriptError) -> Script.Action {
    var actions: [Script.Action] = []
    if numbers["status"] != nil || texts["reason"] != nil { actions.append(.answer(try answer())) }
    if let shortest = numbers["delay_ms"] {
      let longest = max(shortest, numbers["delay_max_ms"] ?? shortest)
      actions.append(.delay(.milliseconds(shortest), upTo: .milliseconds(longest)))
    }
    if let code = numbers["reset"] { actions.append(.reset(code: UInt32(clamping: Int64(code)))) }
    if let code = numbers["goaway"] {
      actions.append(
        .goAway(
          code: UInt32(clamping: Int64(code)), last: try lastStream(), debugData: texts["debug"] ?? "", closes: closes))
    }
    if let limit = numbers["max_concurrent_streams"] { actions.append(.maxConcurrentStreams(Int(limit))) }
    if let word = texts["silent"] {
      actions.append(try choice("silent", word, ["request": .silence, "connection": .silentConnection]))
    }
    if let word = texts["disconnect"] {
      actions.append(try choice("disconnect", word, ["close": .close, "abort": .abort]))
    }
    guard let action = actions.first, actions.count == 1 else {
      throw ScriptError(message: "rule \(number): it needs one action, and has \(actions.count)")
    }
    return action
  }

  private func answer() throws(ScriptError) -> Answer {
    let status = numbers["status"] ?? 400
    guard (200...599).contains(status) else { throw problem("status", "must be from 200 to 599") }
    return Answer(
      status: UInt16(status), reason: texts["reason"] ?? "",
      timestamp: numbers["timestamp"].map { UnixTime(milliseconds: Int64($0)) },
      retryAfter: numbers["retry_after"].map { Int($0) }, body: texts["body"].map { Array($0.utf8) })
  }

  private func lastStream() throws(ScriptError) -> Script.LastStream {
    if let number = numbers["last_stream"] { return .number(Int32(clamping: Int64(number))) }
    return try choice("last_stream", texts["last_stream"] ?? "newest", ["newest": .newest, "previous": .previous])
  }

  private func choice<Value>(_ key: String, _ word: String, _ values: [String: Value]) throws(ScriptError) -> Value {
    guard let value = values[word] else {
      throw problem(key, "must be one of \(values.keys.sorted().joined(separator: ", "))")
    }
    return value
  }

  private func problem(_ key: String, _ text: String) -> ScriptError {
    ScriptError(message: "rule \(number): \"\(key)\" \(text)")
  }
}
