import Wire

/// Answers and faults beside Apple's own rules: for each request that is in order, the first rule that applies decides;
/// without one it is accepted.
package struct Script: Hashable, Sendable {
  package var rules: [Rule]

  package init(_ rules: [Rule] = []) { self.rules = rules }

  /// The rules of both, those of `first` before those of `second`.
  package static func + (first: Script, second: Script) -> Script { Script(first.rules + second.rules) }

  /// When something happens, and what.
  package struct Rule: Hashable, Sendable {
    package var condition: Condition
    package var action: Action

    package init(_ condition: Condition, _ action: Action) {
      self.condition = condition
      self.action = action
    }

    /// Applies to every request.
    package init(_ action: Action) { self.init(Condition(), action) }
  }

  /// All that is given must hold. Counts are those of one loop of the server.
  package struct Condition: Hashable, Sendable {
    /// The device token; lower case.
    package var token: String?
    /// How the device token begins; lower case.
    package var tokenPrefix: String?
    /// This share of all device tokens, from 0 to 1, always the same ones with the same seed.
    package var tokenShare: Double?
    /// The whole topic.
    package var topic: String?
    /// Only requests on this connection; the server's connections are numbered from 1.
    package var connection: Int?
    /// From this time after the server's start.
    package var from: Duration?
    /// Until this time after the server's start.
    package var until: Duration?
    /// Only when so many requests were accepted for answering before.
    package var afterRequests: Int?
    /// Only while fewer requests than these were accepted for answering before.
    package var beforeRequests: Int?
    /// One in so many of the requests that meet all of the above: the n-th, the 2n-th and so on.
    package var every: Int?
    /// This share of them at random, from 0 to 1.
    package var share: Double?
    /// At most so often in all.
    package var times: Int?

    package init(
      token: String? = nil, tokenPrefix: String? = nil, tokenShare: Double? = nil, topic: String? = nil,
      connection: Int? = nil, from: Duration? = nil, until: Duration? = nil, afterRequests: Int? = nil,
      beforeRequests: Int? = nil, every: Int? = nil, share: Double? = nil, times: Int? = nil
    ) {
      self.token = token
      self.tokenPrefix = tokenPrefix
      self.tokenShare = tokenShare
      self.topic = topic
      self.connection = connection
      self.from = from
      self.until = until
      self.afterRequests = afterRequests
      self.beforeRequests = beforeRequests
      self.every = every
      self.share = share
      self.times = times
    }
  }

  /// Which stream a GOAWAY names as the last that is processed.
  package enum LastStream: Hashable, Sendable {
    /// The newest of the connection: all that were opened get their answers.
    case newest
    /// The one before this request: this request and all after it are dropped unprocessed.
    case previous
    /// That number.
    case number(Int32)
  }

  /// What is done with a request.
  package enum Action: Hashable, Sendable {
    case answer(Answer)
    /// The answer, which later rules decide, comes after a time between these two.
    case delay(Duration, upTo: Duration)
    case reset(code: UInt32)
    /// GOAWAY. The request is then treated as usual unless its stream is above the last one. The socket stays open, or
    /// closes when what was due has been sent.
    case goAway(code: UInt32, last: LastStream, debugData: String, closes: Bool)
    /// This request is never answered.
    case silence
    /// Nothing is read or sent on the connection any more, while the socket stays open.
    case silentConnection
    /// The connection closes.
    case close
    /// The connection ends with a TCP reset.
    case abort
    /// SETTINGS with that limit on streams, right after the answer, which later rules decide. It holds until another
    /// request is accepted.
    case maxConcurrentStreams(Int)
  }
}

/// Applies a script: its counts and its chances. The same seed and the same requests give the same actions.
package struct ScriptRunner: Sendable {
  private struct Step: Sendable {
    let condition: Script.Condition
    let action: Script.Action
    let token: [UInt8]?
    let prefix: [UInt8]?
    let topic: [UInt8]?
    var met = 0
    var applied = 0
  }

  private var steps: [Step]
  private var random: SeededRandom
  private let seed: UInt64
  private var requests = 0

  package init(_ script: Script, seed: UInt64) {
    steps = script.rules.map { rule in
      Step(
        condition: rule.condition, action: rule.action,
        token: rule.condition.token.map { Array($0.lowercased().utf8) },
        prefix: rule.condition.tokenPrefix.map { Array($0.lowercased().utf8) },
        topic: rule.condition.topic.map { Array($0.utf8) })
    }
    random = SeededRandom(seed: seed)
    self.seed = seed
  }

  /// The actions for one request, in order: any number that leave the request alone, then at most one that decides.
  ///
  /// - Parameters:
  ///   - token: the device token in hex, of any case.
  ///   - topic: the `apns-topic`; empty where there is none.
  ///   - connection: the server's connections are numbered from 1.
  ///   - time: since the server's start.
  ///   - actions: emptied first.
  package mutating func findActions(
    token: Span<UInt8>, topic: Span<UInt8>, connection: Int, time: Duration, into actions: inout [Script.Action]
  ) {
    actions.removeAll(keepingCapacity: true)
    for index in steps.indices where applies(index, token, topic, connection, time) {
      steps[index].applied += 1
      actions.append(steps[index].action)
      if steps[index].action.decides { break }
    }
    requests += 1
  }

  private mutating func applies(
    _ index: Int, _ token: Span<UInt8>, _ topic: Span<UInt8>, _ connection: Int, _ time: Duration
  ) -> Bool {
    if let prefix = steps[index].prefix, !begins(token, with: prefix) { return false }
    if let wanted = steps[index].token, wanted.count != token.count || !begins(token, with: wanted) { return false }
    if let wanted = steps[index].topic, !equal(topic, wanted.span) { return false }
    if let wanted = steps[index].condition.connection, wanted != connection { return false }
    if let from = steps[index].condition.from, time < from { return false }
    if let until = steps[index].condition.until, time >= until { return false }
    if let after = steps[index].condition.afterRequests, requests < after { return false }
    if let before = steps[index].condition.beforeRequests, requests >= before { return false }
    if let times = steps[index].condition.times, steps[index].applied >= times { return false }
    if let share = steps[index].condition.tokenShare, !belongs(token, to: share) { return false }
    steps[index].met += 1
    if let every = steps[index].condition.every, !steps[index].met.isMultiple(of: every) { return false }
    if let share = steps[index].condition.share, !random.chance(share) { return false }
    return true
  }

  /// Whether the token, in any case, begins with these bytes.
  private func begins(_ token: Span<UInt8>, with prefix: [UInt8]) -> Bool {
    guard token.count >= prefix.count else { return false }
    for index in prefix.indices where token[index] | 0x20 != prefix[index] | 0x20 { return false }
    return true
  }

  /// Spreads the tokens evenly by their text and the seed.
  private func belongs(_ token: Span<UInt8>, to share: Double) -> Bool {
    var hash = FNV1a(seed: seed)
    hash.add(token, setting: 0x20)
    var generator = SeededRandom(seed: hash.value)
    return generator.chance(share)
  }
}

extension Script.Action {
  /// Whether it settles what becomes of the request, so that later rules are not asked.
  var decides: Bool {
    switch self {
    case .answer, .reset, .silence, .silentConnection, .close, .abort: true
    case .goAway, .delay, .maxConcurrentStreams: false
    }
  }
}
