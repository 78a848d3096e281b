package import Wire

/// What a request from the deferred topic brings with it from its first life: without it, its results would name
/// another source, and its `apns-id` would be another one.
package struct Deferral: Hashable, Sendable {
  /// It is not to be taken up before this.
  package var notBefore: UnixTime
  /// Where it was read first; the item is the one of its batch that was parked.
  package var source: Source
  /// The name of that topic where it is none of those that are read (any more); `source` has no topic then.
  package var sourceTopic: ByteRange?
  /// How often it was sent so far.
  package var attempts: Int
  /// The first record's timestamp.
  package var requestedAt: UnixTime
  /// When it was first taken up: what `giveUpAfter` counts from.
  package var takenUpAt: UnixTime

  /// Stands in a `PartitionID` for a topic that is not read.
  static let noTopic = UInt32.max

  package init(
    notBefore: UnixTime, source: Source, sourceTopic: ByteRange? = nil, attempts: Int, requestedAt: UnixTime,
    takenUpAt: UnixTime
  ) {
    self.sourceTopic = sourceTopic
    self.takenUpAt = takenUpAt
    self.notBefore = notBefore
    self.source = source
    self.attempts = attempts
    self.requestedAt = requestedAt
  }

  /// Reads the headers that `ResultEncoder.deferred` wrote; `nil` if they are not all there, or make no sense.
  /// - Parameter topics: the names of the topics that are read.
  init?(_ headers: [RecordBody.Header], in bytes: Span<UInt8>, topics: [[UInt8]]) {
    // No request may wait for ever. When it was made is its producer's word, which may be in microseconds, say.
    let latest = RequestLimits.expiration * 1000
    guard let notBefore = Self.number(OwnHeader.notBefore, of: headers, in: bytes, atMost: latest),
      let requestedAt = Self.number(OwnHeader.requestedAt, of: headers, in: bytes, atMost: .max),
      let takenUpAt = Self.number(OwnHeader.takenUpAt, of: headers, in: bytes, atMost: latest),
      let attempts = Self.number(OwnHeader.attempts, of: headers, in: bytes, atMost: 1_000_000),
      let item = Self.number(OwnHeader.item, of: headers, in: bytes, atMost: Int64(RequestLimits.tokens)),
      let partition = Self.number(OwnHeader.sourcePartition, of: headers, in: bytes, atMost: Int64(Int32.max)),
      let offset = Self.number(OwnHeader.sourceOffset, of: headers, in: bytes, atMost: .max),
      let name = Self.value(of: OwnHeader.sourceTopic, in: headers, bytes), !name.isEmpty
    else { return nil }
    let topic = topics.firstIndex { bytes.extracting(name.indices).equals($0.span) }
    self.init(
      notBefore: UnixTime(milliseconds: notBefore),
      source: Source(
        partition: PartitionID(topic: topic.map { UInt32($0) } ?? Self.noTopic, partition: Int32(partition)),
        offset: offset, item: Int32(item)),
      sourceTopic: topic == nil ? name : nil, attempts: Int(attempts), requestedAt: UnixTime(milliseconds: requestedAt),
      takenUpAt: UnixTime(milliseconds: takenUpAt))
  }

  private static func number(
    _ name: String, of headers: [RecordBody.Header], in bytes: Span<UInt8>, atMost limit: Int64
  ) -> Int64? {
    guard let value = value(of: name, in: headers, bytes), let number = JSONText.int64(of: value, in: bytes),
      number >= 0, number <= limit
    else { return nil }
    return number
  }

  private static func value(of name: String, in headers: [RecordBody.Header], _ bytes: Span<UInt8>) -> ByteRange? {
    let wanted = JSONString(range: .empty, hasEscapes: false)
    return headers.last { header in
      var candidate = wanted
      candidate.range = header.name
      return JSONText.matches(candidate, name, in: bytes)
    }?.value
  }
}
