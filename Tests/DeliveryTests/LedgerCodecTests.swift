import Testing
import Wire

@testable import Delivery

@Suite struct LedgerCodecTests {
  private func merged(_ ranges: [Range<Int64>]) -> [Range<Int64>] {
    var result: [Range<Int64>] = []
    for range in ranges {
      if let last = result.last, last.upperBound == range.lowerBound {
        result[result.count - 1] = last.lowerBound..<range.upperBound
      } else {
        result.append(range)
      }
    }
    return result
  }

  @Test(
    arguments: [
      [], [1..<2], [1..<1_000_000], [5..<6, 7..<9, 4000..<4001], [1..<2, 3..<4, 5..<6, 7..<8],
    ] as [[Range<Int64>]])
  func whatIsWrittenIsReadBack(ranges: [Range<Int64>]) {
    for point in [0, 1, 77, Int64(1) << 40] {
      let shifted = ranges.map { $0.lowerBound + point..<$0.upperBound + point }
      let encoded = LedgerCodec.encode(commitPoint: point, SettledOffsets(records: shifted))
      #expect(encoded.isComplete)
      #expect(encoded.text.utf8.count <= LedgerCodec.maximumBytes)
      #expect(LedgerCodec.decode(encoded.text, commitPoint: point).records == shifted)
    }
  }

  @Test(arguments: 0..<60)
  func scatteredOffsetsAreReadBack(seed: Int) {
    var random = SeededRandom(seed: UInt64(seed))
    let point = Int64(random.uniform(below: 1_000_000))
    let density = random.unit()
    let settled = (1..<Int64(random.uniform(below: 6000) + 2)).filter { _ in random.chance(density) }
    let ranges = merged(settled.map { point + $0..<point + $0 + 1 })
    let encoded = LedgerCodec.encode(commitPoint: point, SettledOffsets(records: ranges))
    #expect(encoded.isComplete)
    #expect(LedgerCodec.decode(encoded.text, commitPoint: point).records == ranges)
  }

  /// Twenty thousand in flight, in one partition, every second one settled: the worst a full service can show.
  @Test func aFullServicesGapsFit() {
    let ranges = (0..<10_000).map { Int64($0) * 2 + 1..<Int64($0) * 2 + 2 }
    let encoded = LedgerCodec.encode(commitPoint: 0, SettledOffsets(records: ranges))
    #expect(encoded.isComplete)
    #expect(encoded.text.utf8.count <= 4096)
    #expect(LedgerCodec.decode(encoded.text, commitPoint: 0).records == ranges)
  }

  @Test func whatDoesNotFitIsCutAtTheFarEndAndSaysSo() {
    let ranges = (0..<20_000).map { Int64($0) * 3 + 1..<Int64($0) * 3 + 2 }
    let encoded = LedgerCodec.encode(commitPoint: 0, SettledOffsets(records: ranges))
    #expect(!encoded.isComplete)
    #expect(encoded.text.utf8.count <= 4096)
    let decoded = LedgerCodec.decode(encoded.text, commitPoint: 0).records
    #expect(decoded.count > 1000)
    #expect(decoded == Array(ranges.prefix(decoded.count)))
  }

  @Test(arguments: [
    "", "m1", "m1.", "m2.AAAA", "{\"v\":1}", "bm90IG91cnM=", "m1.!!!!", "m1.AAAAAAAAAAAAAAAA", "\u{fffd}",
    "m1." + String(repeating: "A", count: 5000),
  ])
  func foreignTextsSayNothing(text: String) {
    #expect(LedgerCodec.decode(text, commitPoint: 0).isEmpty)
  }

  @Test func anotherOffsetsTextSaysNothing() {
    let encoded = LedgerCodec.encode(commitPoint: 10, SettledOffsets(records: [12..<13]))
    #expect(LedgerCodec.decode(encoded.text, commitPoint: 11).isEmpty)
  }

  /// A damaged text never makes a record count as settled: each single-character change and each cut is noticed.
  @Test func damageIsNoticed() {
    let text = LedgerCodec.encode(commitPoint: 1000, SettledOffsets(records: [1002..<1005, 1010..<1011, 1300..<1400]))
      .text
    let letters = Array(text)
    for index in letters.indices {
      for replacement in ["A", "z", "_", "5"] where String(letters[index]) != replacement {
        var changed = letters
        changed[index] = Character(replacement)
        let decoded = LedgerCodec.decode(String(changed), commitPoint: 1000)
        #expect(decoded.isEmpty || decoded == LedgerCodec.decode(text, commitPoint: 1000))
      }
      #expect(LedgerCodec.decode(String(letters[..<index]), commitPoint: 1000).isEmpty)
    }
  }

  // MARK: Batches

  @Test(arguments: [0, 1, 7_000_000_000] as [Int64])
  func theSettledItemsOfBatchesAreReadBack(point: Int64) {
    let settled = SettledOffsets(
      records: [point + 1..<point + 3],
      batches: [
        SettledBatch(offset: point, items: ItemSet([0, 1, 2, 63, 64, 999])),
        SettledBatch(offset: point + 3, items: ItemSet([5])),
        SettledBatch(offset: point + 4000, items: ItemSet(100..<900)),
      ])
    let encoded = LedgerCodec.encode(commitPoint: point, settled)
    #expect(LedgerCodec.decode(encoded.text, commitPoint: point) == settled)
    #expect(LedgerCodec.decode(encoded.text, commitPoint: point + 1).isEmpty)
  }

  @Test func batchesHaveWhatTheOffsetsLeave() {
    let scattered = ItemSet(stride(from: 0, to: 1000, by: 2))
    let batches = (0..<10).map { SettledBatch(offset: Int64($0) * 2, items: scattered) }
    let records = (0..<10).map { Int64($0) * 2 + 1..<Int64($0) * 2 + 2 }
    let encoded = LedgerCodec.encode(commitPoint: 0, SettledOffsets(records: records, batches: batches))
    #expect(encoded.text.utf8.count <= 4096)
    #expect(encoded.isComplete)
    let decoded = LedgerCodec.decode(encoded.text, commitPoint: 0)
    #expect(decoded.records == records)
    #expect(decoded.batches == Array(batches.prefix(decoded.batches.count)))
    #expect((1..<10).contains(decoded.batches.count))
  }

  @Test func damageToBatchesIsNoticed() {
    let settled = SettledOffsets(batches: [SettledBatch(offset: 12, items: ItemSet([1, 2, 40]))])
    let text = LedgerCodec.encode(commitPoint: 10, settled).text
    let letters = Array(text)
    for index in letters.indices {
      var changed = letters
      changed[index] = letters[index] == "A" ? "B" : "A"
      #expect(LedgerCodec.decode(String(changed), commitPoint: 10).isEmpty)
      #expect(LedgerCodec.decode(String(letters[..<index]), commitPoint: 10).isEmpty)
    }
  }

  @Test(arguments: [48, 80, 400])
  func aSmallerLimitIsKept(limit: Int) {
    let records = (0..<500).map { Int64($0) * 9 + 1..<Int64($0) * 9 + 2 }
    let encoded = LedgerCodec.encode(commitPoint: 0, SettledOffsets(records: records), limit: limit)
    #expect(encoded.text.utf8.count <= limit)
    #expect(!encoded.isComplete && encoded.isCrowded)
    let decoded = LedgerCodec.decode(encoded.text, commitPoint: 0).records
    #expect(decoded == Array(records.prefix(decoded.count)))
    #expect(!decoded.isEmpty)
  }
}
