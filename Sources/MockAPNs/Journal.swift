import Synchronization
package import Wire

/// What the server saw, readable at any time from any thread.
package final class Journal: Sendable {
  /// What is kept.
  package struct Limits: Sendable {
    /// The most `apns-id`s that are counted one by one; 24 to 48 bytes each.
    package var identifiers = 1 << 20
    /// How many requests are remembered one by one: the first that come. 0: none.
    package var requests = 0
    /// The most topics that are counted by name.
    package var topics = 1000

    package init(identifiers: Int = 1 << 20, requests: Int = 0, topics: Int = 1000) {
      self.identifiers = identifiers
      self.requests = requests
      self.topics = topics
    }
  }

  /// One request as it arrived, and what was said to it.
  package struct Seen: Hashable, Sendable {
    /// The server's connections are numbered from 1.
    package var connection: Int
    /// The HTTP/2 stream's identifier.
    package var stream: Int32
    /// When it had arrived, by the server's clock.
    package var time: UnixTime
    /// The device token of the path; with a broadcast, the channel.
    package var token: String
    package var topic: String
    package var apnsID: UUID?
    /// All fields in order.
    package var fields: [Field]
    package var body: [UInt8]
    /// 0: no answer (yet): silence, a reset, a GOAWAY, a delay.
    package var status: UInt16 = 0
    package var reason = ""

    /// A header field, as it was decoded.
    package struct Field: Hashable, Sendable {
      package var name: String
      package var value: String
    }
  }

  /// Counts since the start.
  package struct Counts: Hashable, Sendable {
    package var connections = 0
    /// Of the connections, those that are open now.
    package var openConnections = 0
    package var requests = 0
    /// Answers that were handed to the connection, by status.
    package var byStatus: [UInt16: Int] = [:]
    /// The same by reason; 200 has none.
    package var byReason: [String: Int] = [:]
    /// Requests by their whole `apns-topic`.
    package var byTopic: [String: Int] = [:]
    /// Different provider tokens.
    package var providerTokens = 0
    /// Streams that were reset by rule.
    package var resets = 0
    /// Requests that are never answered, by rule.
    package var silences = 0
    /// GOAWAY frames, by rule.
    package var goAwaysSent = 0
    /// The most streams that were open on one connection.
    package var mostOpenStreams = 0
    /// The most streams that a connection was ever allowed.
    package var streamLimitAnnounced = 0
    /// Different `apns-id`s that requests carried.
    package var identifiers = 0
    /// Of the identifiers, those that came more than once.
    package var repeatedIdentifiers = 0
    /// Of the identifiers, those that were accepted (200) more than once.
    package var identifiersAcceptedRepeatedly = 0
    /// Requests and acceptances that were too many to be counted by id.
    package var uncountedIdentifiers = 0

    package init() {}

    package var accepted: Int { byStatus[200] ?? 0 }
    package var answered: Int { byStatus.values.reduce(0, +) }
  }

  private struct State {
    var counts = Counts()
    var accepted = 0
    var topics: [Int] = []
    var topicNumbers: [String: Int] = [:]
    var identifiers: IdentifierTable
    var seen: [Seen] = []
  }

  let limits: Limits
  private let state: Mutex<State>

  package init(limits: Limits = Limits()) {
    self.limits = limits
    state = Mutex(State(identifiers: IdentifierTable(limit: limits.identifiers)))
  }

  // MARK: Questions

  /// A copy of all counts; costs more the more topics there are.
  package var counts: Counts {
    state.withLock { state in
      var counts = state.counts
      if state.accepted > 0 { counts.byStatus[200] = state.accepted }
      for (topic, number) in state.topicNumbers { counts.byTopic[topic] = state.topics[number] }
      counts.identifiers = state.identifiers.count
      counts.repeatedIdentifiers = state.identifiers.repeated
      counts.identifiersAcceptedRepeatedly = state.identifiers.acceptedRepeatedly
      counts.uncountedIdentifiers = state.identifiers.missed
      return counts
    }
  }

  /// How often a request with that `apns-id` came, and how often it was accepted with 200.
  package func tally(of id: UUID) -> (requests: Int, accepted: Int) {
    let tally = state.withLock { $0.identifiers[id] }
    return (Int(tally.requests), Int(tally.accepted))
  }

  /// The requests that were remembered, in the order of arrival.
  package var seen: [Seen] { state.withLock { $0.seen } }

  /// Requests so far, without a copy of the rest.
  package var requests: Int { state.withLock { $0.counts.requests } }

  // MARK: Entries

  func opened() {
    state.withLock { state in
      state.counts.connections += 1
      state.counts.openConnections += 1
    }
  }

  func closed() { state.withLock { $0.counts.openConnections -= 1 } }

  func announced(streams: Int) {
    state.withLock { $0.counts.streamLimitAnnounced = max($0.counts.streamLimitAnnounced, streams) }
  }

  /// The number that stands for a topic in `received`; -1 once there are too many.
  func number(ofTopic topic: String) -> Int {
    state.withLock { state in
      if let number = state.topicNumbers[topic] { return number }
      guard state.topics.count < limits.topics else { return -1 }
      state.topics.append(0)
      state.topicNumbers[topic] = state.topics.count - 1
      return state.topics.count - 1
    }
  }

  func received(_ id: UUID?, topic: Int, openStreams: Int, providerTokens: Int) {
    state.withLock { state in
      state.counts.requests += 1
      if topic >= 0 { state.topics[topic] += 1 }
      if openStreams > state.counts.mostOpenStreams { state.counts.mostOpenStreams = openStreams }
      if providerTokens > state.counts.providerTokens { state.counts.providerTokens = providerTokens }
      if let id { state.identifiers.request(id) }
    }
  }

  /// - Returns: where the request is kept; `nil` if there is no room.
  func remember(_ request: Seen) -> Int? {
    state.withLock { state in
      guard state.seen.count < limits.requests else { return nil }
      state.seen.append(request)
      return state.seen.count - 1
    }
  }

  func answered(_ answer: Answer, _ id: UUID?, place: Int?) {
    state.withLock { state in
      if answer.isAccepted {
        state.accepted += 1
        if let id { state.identifiers.accepted(id) }
      } else {
        state.counts.byStatus[answer.status, default: 0] += 1
        if !answer.reason.isEmpty { state.counts.byReason[answer.reason, default: 0] += 1 }
      }
      if let place {
        state.seen[place].status = answer.status
        state.seen[place].reason = answer.reason
      }
    }
  }

  func reset() { state.withLock { $0.counts.resets += 1 } }

  func silent() { state.withLock { $0.counts.silences += 1 } }

  func goAwaySent() { state.withLock { $0.counts.goAwaysSent += 1 } }
}
