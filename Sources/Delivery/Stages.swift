package import APNs
package import Wire

// Start here: the value that crosses each boundary on a notification's way.
//
//   Record -> Decoded (RequestDecoder) -> Push (DeliveryMachine) -> Submission (to a lane) -> LaneOutcome (from it)
//          -> Publication (to Kafka) -> Receipt (from it) -> the record is settled, and its offset may be committed

/// An app's place in the `AppTable`; it never changes while the process runs, also over a reload.
package struct AppIndex: Hashable, Sendable {
  package var value: Int32
  package init(_ value: Int32) { self.value = value }
}

/// A lane: one of the event loops that own connections.
package struct LaneIndex: Hashable, Sendable {
  package var value: Int32
  package init(_ value: Int32) { self.value = value }
}

/// What a record turned out to be.
package enum Decoded: Sendable {
  case request(Request)
  case invalid(InvalidRequest)
  /// A null value: counted and skipped.
  case tombstone
}

/// A well-formed request: one notification, or several that differ only by their token.
package struct Request: Sendable {
  package var app: AppIndex
  /// What is sent; for a batch, the first item.
  package var notification: Notification
  /// The tokens of a batch (`tokens`), by item; empty for a single request. A malformed item has an empty range here
  /// and stands in `invalidItems`.
  package var tokens: [ByteRange]
  /// The caller's id, if there is one.
  package var id: ByteRange?
  package var key: ByteRange?
  /// The record's value as it stands: what is written when the request is parked.
  package var value: ByteRange
  package var headers: [RecordBody.Header]
  /// Fields of the request that the contract does not know.
  package var unknownFields: Int
  /// Set for a request that was parked on the deferred topic before.
  package var deferral: Deferral?
  /// The malformed items of a batch, in order: they end as `invalid`, and the others are sent. Never all of them.
  package var invalidItems: [InvalidItem] = []
}

/// An item of a batch whose token broke the contract.
package struct InvalidItem: Sendable {
  /// Its place in the batch, as in `Source`.
  package var item: Int32
  package var violation: Violation
  /// What stands in its place, if it is a text that can be repeated.
  package var token: ByteRange?
}

/// A record that broke the contract.
package struct InvalidRequest: Sendable {
  package var rule: InvalidRule
  /// Names the field, the rule and what was found, for people.
  package var message: String
  package var body: RecordBody
  /// What could still be read; each may be missing.
  package var id: ByteRange?
  package var app: ByteRange?
  package var token: ByteRange?
  package var channel: ByteRange?
  /// Set for a request that was parked on the deferred topic before.
  package var deferral: Deferral?
  /// That of a request that was parked before, and may have been sent; zero for any other.
  package var apnsID = UUID(high: 0, low: 0)
}

/// A push's place in the machine; the generation tells a late answer for an earlier tenant of the same place.
package struct PushSlot: Hashable, Sendable {
  package var index: UInt32
  package var generation: UInt32

  package init(index: UInt32, generation: UInt32) {
    self.index = index
    self.generation = generation
  }
}

/// Where a notification came from.
package struct Source: Hashable, Sendable {
  package var partition: PartitionID
  package var offset: Int64
  /// Its place in a batch; 0 for a single request.
  package var item: Int32

  package init(partition: PartitionID, offset: Int64, item: Int32 = 0) {
    self.partition = partition
    self.offset = offset
    self.item = item
  }
}

/// A push on its way to a lane.
package struct Submission: Sendable {
  package var slot: PushSlot
  package var app: AppIndex
  package var notification: Notification
}

/// What became of one attempt.
package struct LaneOutcome: Sendable {
  package var slot: PushSlot
  package var result: SendResult
  /// When the request was handed to the connection; `nil` if it never was.
  package var sentAt: Instant?
  package var completedAt: Instant

  package init(slot: PushSlot, result: SendResult, sentAt: Instant?, completedAt: Instant) {
    self.slot = slot
    self.result = result
    self.sentAt = sentAt
    self.completedAt = completedAt
  }
}

/// How one attempt ended.
package enum SendResult: Sendable {
  case answered(Response)
  /// It surely did not reach APNs; sending it again cannot make a duplicate.
  case notSent(SendFailure)
  /// The connection failed after it was sent; APNs may have taken it.
  case lost(SendFailure)
  /// No answer within the request timeout.
  case timedOut
}

/// Why there was no answer.
package enum SendFailure: UInt8, CaseIterable, Sendable {
  /// No connection could be made: name resolution, refused, unreachable, timeout.
  case unreachable
  /// The TLS handshake failed: certificate, host name, protocol.
  case tls
  /// APNs closed or reset the connection.
  case connectionClosed
  /// APNs refused or reset the stream, or named it as unprocessed in GOAWAY.
  case streamRefused
  /// The app's key or certificate cannot be used.
  case credentials
  /// There was a connection, and none of its streams became free in time.
  case noStream
  /// The lane is closing.
  case draining
  /// The app was removed from the configuration.
  case appRemoved

  /// - Parameter failure: how the last attempt to connect, or the connection, ended.
  package init(_ failure: ConnectionFailure?) {
    switch failure {
    case .tls: self = .tls
    case .credentials: self = .credentials
    case .unreachable, .closed, .silent, nil: self = .unreachable
    }
  }

  /// Why what waited in a lane for longer than a request may take goes back: where APNs is reached, it waited for a
  /// stream, which says nothing against the app.
  package init(waitedFor pool: borrowing PoolState) {
    self = pool.lastFailure == nil ? .noStream : SendFailure(pool.lastFailure)
  }
}

/// One of the topics that the service writes.
package enum OutputTopic: UInt8, CaseIterable, Sendable {
  case results, invalidTokens, deadLetters, deferred
}

/// A record to produce. Key and value are stretches of the arena of the `Outbox` that it lies in, or of the request.
package struct Publication: Sendable {
  package var topic: OutputTopic
  /// The push that waits for the receipt.
  package var slot: PushSlot
  package var key: ByteRange?
  package var value: ByteRange?
  /// Whether key and value are the request's own, and not copied: a batch that is parked has its value in each of its
  /// items' records.
  package var isVerbatim: Bool
  /// The request's buffer: its headers, which are copied, lie there, and what is verbatim.
  package var requestStorage: [UInt8]
  package var headers: [RecordBody.Header]
  /// Headers of our own, few and short (dead letters, deferred requests).
  package var extraHeaders: [ExtraHeader]

  /// A record header of our own.
  package struct ExtraHeader: Hashable, Sendable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  package init(
    topic: OutputTopic, slot: PushSlot, key: ByteRange?, value: ByteRange?, isVerbatim: Bool = false,
    requestStorage: [UInt8] = [], headers: [RecordBody.Header] = [], extraHeaders: [ExtraHeader] = []
  ) {
    self.topic = topic
    self.slot = slot
    self.key = key
    self.value = value
    self.isVerbatim = isVerbatim
    self.requestStorage = requestStorage
    self.headers = headers
    self.extraHeaders = extraHeaders
  }

  /// All that a delivery report must bring back, in one word: generation, topic, place.
  package var ticket: UInt64 {
    UInt64(slot.generation) << 32 | UInt64(topic.rawValue) << 30 | UInt64(slot.index)
  }
}

/// What is to be produced, in order, with one buffer for all of it.
package struct Outbox: Sendable {
  package var arena: [UInt8] = []
  package var items: [Publication] = []

  package init() {}

  package var isEmpty: Bool { items.isEmpty }

  /// The key of one of its items.
  package func key(of item: Publication) -> Bytes? {
    item.key.map { Bytes(item.isVerbatim ? item.requestStorage : arena, $0) }
  }

  /// The value of one of its items.
  package func value(of item: Publication) -> Bytes? {
    item.value.map { Bytes(item.isVerbatim ? item.requestStorage : arena, $0) }
  }

  /// Empties it and keeps its memory.
  package mutating func removeAll() {
    arena.removeAll(keepingCapacity: true)
    items.removeAll(keepingCapacity: true)
  }
}

/// Kafka's word on one publication.
package struct Receipt: Sendable {
  package var slot: PushSlot
  package var topic: OutputTopic
  package var outcome: Outcome

  /// Whether the record is stored.
  package enum Outcome: Sendable {
    /// Acknowledged by all in-sync replicas.
    case acknowledged
    /// Refused for good, for what is in the record: too large, say. What is wrong with its topic can be mended.
    case refused(String)
    /// Not known to be stored; it must be produced again.
    case undelivered(String)
  }

  /// - Parameters:
  ///   - ticket: a `Publication.ticket`.
  ///   - outcome: what became of it.
  package init(ticket: UInt64, outcome: Outcome) {
    let low = UInt32(truncatingIfNeeded: ticket)
    self.slot = PushSlot(index: low & 0x3fff_ffff, generation: UInt32(ticket >> 32))
    self.topic = OutputTopic(rawValue: UInt8(low >> 30)) ?? .results
    self.outcome = outcome
  }
}
