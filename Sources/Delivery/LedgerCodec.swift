import Wire

/// The settled offsets beyond a commit point, to and from the metadata that Kafka keeps with a committed offset.
///
/// The text is `m1.` and base64url over: one byte for the form, the commit point, the body, and 32 bits of FNV-1a
/// over all before. Two forms compete and the shorter one wins: run lengths (varints, unsettled and settled in turn,
/// beginning at the commit point) when settled offsets lie together, one bit an offset when they are scattered. What
/// does not fit into the broker's limit is cut at the far end: the offsets cut off would be sent again after a crash,
/// and never is anything taken for settled that is not. For the same reason a text that is foreign, damaged, of
/// another version or bound to another offset decodes to nothing at all.
package enum LedgerCodec {
  /// What brokers accept by default (`offset.metadata.max.bytes`).
  package static let maximumBytes = 4096

  /// The metadata's text.
  package struct Encoded: Equatable, Sendable {
    package var text: String
    /// Whether every settled offset found room.
    package var isComplete: Bool
  }

  private static let prefix = "m1."
  private static let runLengths: UInt8 = 0
  private static let bitmap: UInt8 = 1
  /// 4 characters carry 3 bytes; form and check take 5, the commit point up to 10.
  private static let bodyLimit = (maximumBytes - prefix.utf8.count) * 3 / 4 - 15

  /// - Parameter settled: ascending, disjoint, all beyond `commitPoint`.
  package static func encode(commitPoint: Int64, settled: [Range<Int64>]) -> Encoded {
    guard let last = settled.last else { return Encoded(text: "", isComplete: true) }
    let runs = encodeRuns(commitPoint, settled)
    let bitmapBytes = (last.upperBound - commitPoint + 7) / 8
    var body = runs
    var form = runLengths
    if bitmapBytes < Int64(runs.bytes.count) || (!runs.isComplete && bitmapBytes <= Int64(bodyLimit)) {
      body = (encodeBitmap(commitPoint, settled, byteCount: Int(bitmapBytes)), true)
      form = bitmap
    }
    var bytes = [form]
    appendVarint(UInt64(bitPattern: commitPoint), to: &bytes)
    bytes += body.bytes
    let check = checksum(bytes.span)
    for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: check >> shift)) }
    return Encoded(text: prefix + Base64URL.encode(bytes.span), isComplete: body.isComplete)
  }

  /// The settled offsets that `text` names, ascending and disjoint; empty for a text that is not to be trusted.
  ///
  /// - Parameter commitPoint: the offset that was committed with it.
  package static func decode(_ text: some StringProtocol, commitPoint: Int64) -> [Range<Int64>] {
    guard text.utf8.count <= maximumBytes, text.hasPrefix(prefix),
      let bytes = Base64URL.decode(Array(text.utf8.dropFirst(prefix.utf8.count)).span), bytes.count >= 6
    else { return [] }
    let content = bytes.count - 4
    let check = bytes[content...].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    guard check == checksum(bytes.span.extracting(0..<content)) else { return [] }
    var cursor = 1
    guard let bound = readVarint(bytes, &cursor, end: content), Int64(bitPattern: bound) == commitPoint
    else { return [] }
    switch bytes[0] {
    case runLengths: return decodeRuns(bytes, cursor, content, commitPoint) ?? []
    case bitmap: return decodeBitmap(bytes, cursor, content, commitPoint)
    default: return []
    }
  }

  private static func encodeRuns(_ commitPoint: Int64, _ settled: [Range<Int64>]) -> (bytes: [UInt8], isComplete: Bool)
  {
    var bytes: [UInt8] = []
    var at = commitPoint
    for run in settled {
      let mark = bytes.count
      appendVarint(UInt64(run.lowerBound - at), to: &bytes)
      appendVarint(UInt64(run.upperBound - run.lowerBound), to: &bytes)
      if bytes.count > bodyLimit {
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

  /// 32-bit FNV-1a (Fowler, Noll, Vo): tells damage from data, no more.
  private static func checksum(_ bytes: Span<UInt8>) -> UInt32 {
    var hash: UInt32 = 0x811c_9dc5
    for index in bytes.indices { hash = (hash ^ UInt32(bytes[index])) &* 0x0100_0193 }
    return hash
  }
}

extension Int64 {
  fileprivate func adding(_ distance: UInt64) -> Int64? {
    guard distance <= UInt64(Int64.max) else { return nil }
    let (sum, overflow) = addingReportingOverflow(Int64(distance))
    return overflow ? nil : sum
  }
}
