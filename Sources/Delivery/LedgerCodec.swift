import Wire

/// The settled offsets beyond a commit point, to and from the metadata that Kafka keeps with a committed offset.
///
/// The text is `m1.` and base64url over: one byte for the form, the commit point, the body, and 32 bits of FNV-1a
/// over all before, which tell damage from data, no more. Two forms compete and the shorter one wins: run lengths
/// (varints, unsettled and settled in turn, beginning at the commit point) when settled offsets lie together, one bit
/// an offset when they are scattered. Where some items of a batch are settled it is `m2.`: the body has its length
/// before it, and after it come the batches, each as the distance from the one before (or the commit point), the number
/// of runs of its settled items, and these runs. What does not fit into the limit is cut at the far end, batches first:
/// what is cut off would be sent again after a crash, and never is anything taken for settled that is not. For the same
/// reason a text that is foreign, damaged, of another version or bound to another offset decodes to nothing at all.
package enum LedgerCodec {
  /// What brokers accept by default (`offset.metadata.max.bytes`).
  package static let maximumBytes = 4096

  /// The metadata's text.
  package struct Encoded: Equatable, Sendable {
    package var text: String
    /// Whether every settled offset found room. Batches do not count: they have what the offsets leave.
    package var isComplete: Bool
    /// Whether the offsets take more than half of the room.
    package var isCrowded: Bool
  }

  private static let prefix = "m1."
  private static let batchPrefix = "m2."
  private static let runLengths: UInt8 = 0
  private static let bitmap: UInt8 = 1

  /// - Parameters:
  ///   - commitPoint: the offset that is committed with it.
  ///   - settled: all of it at or beyond `commitPoint`.
  ///   - limit: the most bytes that the text may have; 40 at least.
  package static func encode(
    commitPoint: Int64, _ settled: SettledOffsets, limit: Int = maximumBytes
  ) -> Encoded {
    guard !settled.isEmpty else { return Encoded(text: "", isComplete: true, isCrowded: false) }
    // 4 characters carry 3 bytes; form and check take 5, the commit point up to 10.
    let bodyLimit = (limit - prefix.utf8.count) * 3 / 4 - 15
    var body = encodeRuns(commitPoint, settled.records, limit: bodyLimit)
    var form = runLengths
    let distance = (settled.records.last?.upperBound ?? commitPoint) - commitPoint
    // Metadata that others made may name offsets up to the last one that there is.
    let bitmapBytes = distance / 8 + (distance % 8 == 0 ? 0 : 1)
    if bitmapBytes < Int64(body.bytes.count) || (!body.isComplete && bitmapBytes <= Int64(bodyLimit)) {
      body = (encodeBitmap(commitPoint, settled.records, byteCount: Int(bitmapBytes)), true)
      form = bitmap
    }
    let batches = encodeBatches(commitPoint, settled.batches, limit: bodyLimit - body.bytes.count - 2)
    var bytes = [form]
    appendVarint(UInt64(bitPattern: commitPoint), to: &bytes)
    if !batches.isEmpty { appendVarint(UInt64(body.bytes.count), to: &bytes) }
    bytes += body.bytes
    bytes += batches
    let check = FNV1a.hash32(bytes.span)
    for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: check >> shift)) }
    return Encoded(
      text: (batches.isEmpty ? prefix : batchPrefix) + Base64URL.encode(bytes.span), isComplete: body.isComplete,
      isCrowded: !body.isComplete || body.bytes.count > bodyLimit / 2)
  }

  /// What `text` names as settled; nothing for a text that is not to be trusted.
  ///
  /// - Parameters:
  ///   - text: the metadata that Kafka kept.
  ///   - commitPoint: the offset that was committed with it.
  package static func decode(_ text: some StringProtocol, commitPoint: Int64) -> SettledOffsets {
    let hasBatches = text.hasPrefix(batchPrefix)
    guard text.utf8.count <= maximumBytes, hasBatches || text.hasPrefix(prefix),
      let bytes = Base64URL.decode(Array(text.utf8.dropFirst(prefix.utf8.count)).span), bytes.count >= 6
    else { return SettledOffsets() }
    let content = bytes.count - 4
    let check = bytes[content...].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    guard check == FNV1a.hash32(bytes.span.extracting(0..<content)) else { return SettledOffsets() }
    var cursor = 1
    guard let bound = readVarint(bytes, &cursor, end: content), Int64(bitPattern: bound) == commitPoint
    else { return SettledOffsets() }
    var end = content
    if hasBatches {
      guard let length = readVarint(bytes, &cursor, end: content), length <= UInt64(content - cursor)
      else { return SettledOffsets() }
      end = cursor + Int(length)
    }
    let records: [Range<Int64>]? =
      switch bytes[0] {
      case runLengths: decodeRuns(bytes, cursor, end, commitPoint)
      case bitmap: decodeBitmap(bytes, cursor, end, commitPoint)
      default: nil
      }
    guard let records, let batches = decodeBatches(bytes, end, content, commitPoint) else { return SettledOffsets() }
    return SettledOffsets(records: records, batches: batches)
  }

  private static func encodeRuns(
    _ commitPoint: Int64, _ settled: [Range<Int64>], limit: Int
  ) -> (bytes: [UInt8], isComplete: Bool) {
    var bytes: [UInt8] = []
    var at = commitPoint
    for run in settled {
      let mark = bytes.count
      appendVarint(UInt64(run.lowerBound - at), to: &bytes)
      appendVarint(UInt64(run.upperBound - run.lowerBound), to: &bytes)
      if bytes.count > limit {
        bytes.removeSubrange(mark...)
        return (bytes, false)
      }
      at = run.upperBound
    }
    return (bytes, true)
  }

  private static func encodeBitmap(_ commitPoint: Int64, _ settled: [Range<Int64>], byteCount: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: byteCount)
    for run in settled {
      for offset in run {
        let bit = Int(offset - commitPoint)
        bytes[bit / 8] |= 1 << UInt8(bit % 8)
      }
    }
    return bytes
  }

  private static func encodeBatches(_ commitPoint: Int64, _ batches: [SettledBatch], limit: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    var before = commitPoint
    for batch in batches {
      let mark = bytes.count
      let runs = batch.items.runs
      appendVarint(UInt64(batch.offset - before), to: &bytes)
      appendVarint(UInt64(runs.count), to: &bytes)
      var item = 0
      for run in runs {
        appendVarint(UInt64(run.lowerBound - item), to: &bytes)
        appendVarint(UInt64(run.count), to: &bytes)
        item = run.upperBound
      }
      if bytes.count > limit {
        bytes.removeSubrange(mark...)
        return bytes
      }
      before = batch.offset
    }
    return bytes
  }

  private static func decodeBatches(
    _ bytes: [UInt8], _ start: Int, _ end: Int, _ commitPoint: Int64
  ) -> [SettledBatch]? {
    var batches: [SettledBatch] = []
    var cursor = start
    var offset = commitPoint
    while cursor < end {
      guard let distance = readVarint(bytes, &cursor, end: end), let next = offset.adding(distance),
        let runs = readVarint(bytes, &cursor, end: end), runs <= UInt64(RequestLimits.tokens)
      else { return nil }
      offset = next
      var items = ItemSet()
      var item: UInt64 = 0
      for _ in 0..<runs {
        guard let gap = readVarint(bytes, &cursor, end: end), let length = readVarint(bytes, &cursor, end: end),
          gap <= RequestLimits.tokens, length <= RequestLimits.tokens, item + gap + length <= RequestLimits.tokens
        else { return nil }
        for settled in item + gap..<item + gap + length { items.insert(Int(settled)) }
        item += gap + length
      }
      batches.append(SettledBatch(offset: offset, items: items))
    }
    return batches
  }

  private static func decodeRuns(_ bytes: [UInt8], _ start: Int, _ end: Int, _ commitPoint: Int64) -> [Range<Int64>]? {
    var runs: [Range<Int64>] = []
    var cursor = start
    var at = commitPoint
    while cursor < end {
      guard let gap = readVarint(bytes, &cursor, end: end), let length = readVarint(bytes, &cursor, end: end),
        let lower = at.adding(gap), let upper = lower.adding(length), length > 0
      else { return nil }
      runs.append(lower..<upper)
      at = upper
    }
    return runs
  }

  private static func decodeBitmap(_ bytes: [UInt8], _ start: Int, _ end: Int, _ commitPoint: Int64) -> [Range<Int64>] {
    guard commitPoint.adding(UInt64(end - start) * 8) != nil else { return [] }
    var runs: [Range<Int64>] = []
    var runStart: Int64?
    for index in start..<end {
      for bit in 0..<8 {
        let offset = commitPoint + Int64((index - start) * 8 + bit)
        let isSet = bytes[index] & (1 << UInt8(bit)) != 0
        if isSet, runStart == nil { runStart = offset }
        if !isSet, let first = runStart {
          runs.append(first..<offset)
          runStart = nil
        }
      }
    }
    if let runStart { runs.append(runStart..<commitPoint + Int64((end - start) * 8)) }
    return runs
  }

  private static func appendVarint(_ value: UInt64, to bytes: inout [UInt8]) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  private static func readVarint(_ bytes: [UInt8], _ cursor: inout Int, end: Int) -> UInt64? {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while cursor < end, shift < 64 {
      let byte = bytes[cursor]
      cursor += 1
      value |= UInt64(byte & 0x7f) << shift
      if byte & 0x80 == 0 { return value }
      shift += 7
    }
    return nil
  }
}

extension Int64 {
  fileprivate func adding(_ distance: UInt64) -> Int64? {
    guard distance <= UInt64(Int64.max) else { return nil }
    let (sum, overflow) = addingReportingOverflow(Int64(distance))
    return overflow ? nil : sum
  }
}
