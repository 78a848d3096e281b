import Testing
import Wire

@Suite struct SeededRandomTests {
  /// From the reference algorithms, worked out in Python.
  @Test(
    arguments: [
      (0, [0x99ec_5f36_cb75_f2b4, 0xbf6e_1f78_4956_452a, 0x1a5f_849d_4933_e6e0]),
      (1, [0xb3f2_af6d_0fc7_10c5, 0x853b_5596_4736_4cea, 0x92f8_9756_082a_4514]),
      (42, [0x1578_0b2e_0c2e_c716, 0x6104_d986_6d11_3a7e, 0xae17_5332_39e4_99a1]),
    ] as [(UInt64, [UInt64])])
  func theSeedDeterminesTheNumbers(seed: UInt64, expected: [UInt64]) {
    var random = SeededRandom(seed: seed)
    #expect((0..<3).map { _ in random.next() } == expected)
  }

  @Test func aCopyGoesOnAlike() {
    var random = SeededRandom(seed: 8)
    _ = random.next()
    var copy = random
    #expect((0..<10).map { _ in random.next() } == (0..<10).map { _ in copy.next() })
  }

  @Test func uniformNumbersFillTheirRange() {
    var random = SeededRandom(seed: 6)
    var counts = [Int](repeating: 0, count: 10)
    for _ in 0..<10_000 { counts[random.uniform(below: 10)] += 1 }
    #expect(counts.allSatisfy { (850...1150).contains($0) }, "\(counts)")
    #expect(random.uniform(below: 1) == 0)
    #expect(random.uniform(below: 0) == 0)
    #expect(random.uniform(below: -5) == 0)
  }

  @Test func unitNumbersAndChancesKeepTheirBounds() {
    var random = SeededRandom(seed: 12)
    let units = (0..<5000).map { _ in random.unit() }
    #expect(units.allSatisfy { 0 <= $0 && $0 < 1 })
    #expect(abs(units.reduce(0, +) / 5000 - 0.5) < 0.02)
    let hits = (0..<5000).count { _ in random.chance(0.25) }
    #expect((1150...1350).contains(hits))
    #expect(!(0..<100).contains { _ in random.chance(0) })
    #expect((0..<100).allSatisfy { _ in random.chance(1) })
  }

  @Test func jitterSpreadsFromZeroToItsLimit() {
    var random = SeededRandom(seed: 2)
    let limit = Duration.milliseconds(800)
    let waits: [Duration] = (0..<2000).map { _ in random.uniform(below: limit) }
    #expect(waits.allSatisfy { .zero <= $0 && $0 < limit })
    #expect(waits.contains { $0 < .milliseconds(40) } && waits.contains { $0 > .milliseconds(760) })
    let none: [Duration] = [.zero, .seconds(-1)].map { random.uniform(below: $0) }
    #expect(none == [.zero, .zero])
    let huge: Duration = random.uniform(below: .seconds(Int64.max))
    #expect(huge > .zero)
  }
}
