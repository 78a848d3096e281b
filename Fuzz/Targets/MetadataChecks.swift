import Delivery
import Wire

/// What a commit's metadata may say: nothing that is beside the commit point, and the same when it is written again.
enum MetadataChecks {
  /// - Parameter input: a first byte that chooses the version, and what stands before the check.
  static func check(_ input: [UInt8]) throws {
    let bare = String(decoding: input, as: UTF8.self)
    try hold(LedgerCodec.decode(bare, commitPoint: 0).isEmpty || bare.hasPrefix("m"), "foreign text is believed")
    guard let version = input.first else { return }
    var content = Array(input.dropFirst())
    let commitPoint = boundOffset(of: content)
    var hash: UInt32 = 0x811c_9dc5
    for byte in content { hash = (hash ^ UInt32(byte)) &* 0x0100_0193 }
    for shift in [24, 16, 8, 0] as [UInt32] { content.append(UInt8(truncatingIfNeeded: hash >> shift)) }
    let text = (version & 1 == 0 ? "m1." : "m2.") + Base64URL.encode(content.span)
    let settled = LedgerCodec.decode(text, commitPoint: commitPoint)
    try check(settled, at: commitPoint)
    try hold(
      LedgerCodec.decode(text, commitPoint: commitPoint &+ 1).isEmpty, "metadata of another offset is believed")
    // No consumer's position is negative, and a book that names nothing is not written.
    guard commitPoint >= 0, !settled.isEmpty else { return }
    for limit in [LedgerCodec.maximumBytes, 40 + Int(version)] {
      let written = LedgerCodec.encode(commitPoint: commitPoint, settled, limit: limit)
      try hold(written.text.utf8.count <= limit, "\(written.text.utf8.count) bytes where \(limit) are allowed")
      let again = LedgerCodec.decode(written.text, commitPoint: commitPoint)
      try check(again, at: commitPoint)
      if written.isComplete {
        try hold(flat(again.records) == flat(settled.records), "written and read again: other records")
      }
      try hold(again.batches.count <= settled.batches.count, "more batches than there were")
      for (first, second) in zip(settled.batches, again.batches) { try hold(first == second, "another batch") }
    }
  }

  private static func check(_ settled: SettledOffsets, at commitPoint: Int64) throws {
    var end = commitPoint
    for run in settled.records {
      try hold(run.lowerBound >= end && !run.isEmpty, "\(run) after \(end)")
      end = run.upperBound
    }
    var offset = commitPoint
    for batch in settled.batches {
      try hold(batch.offset >= offset, "batch \(batch.offset) after \(offset)")
      offset = batch.offset
      try hold(batch.items.runs.allSatisfy { $0.upperBound <= RequestLimits.tokens }, "items beyond a batch's size")
    }
  }

  /// Runs that touch are one.
  private static func flat(_ runs: [Range<Int64>]) -> [Range<Int64>] {
    runs.reduce(into: []) { flat, run in
      if let last = flat.last, last.upperBound == run.lowerBound {
        flat[flat.count - 1] = last.lowerBound..<run.upperBound
      } else {
        flat.append(run)
      }
    }
  }

  /// The offset that the content is bound to: a varint behind the byte of the form.
  private static func boundOffset(of content: [UInt8]) -> Int64 {
    var value: UInt64 = 0
    for (index, byte) in content.dropFirst().prefix(10).enumerated() {
      value |= UInt64(byte & 0x7f) << UInt64(7 * index)
      if byte & 0x80 == 0 { break }
    }
    return Int64(bitPattern: value)
  }
}
