/// Random numbers that a seed fully determines: for jitter and for tests, not for secrets.
///
/// xoshiro256** (Blackman and Vigna), its state filled by SplitMix64, as its authors advise.
package struct SeededRandom: RandomNumberGenerator, Sendable {
  private var state: (UInt64, UInt64, UInt64, UInt64)

  package init(seed: UInt64) {
    var counter = seed
    func splitMix() -> UInt64 {
      counter &+= 0x9e37_79b9_7f4a_7c15
      var mixed = counter
      mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
      mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
      return mixed ^ mixed >> 31
    }
    state = (splitMix(), splitMix(), splitMix(), splitMix())
  }

  @inline(__always)
  private static func rotate(_ word: UInt64, _ bits: UInt64) -> UInt64 { word << bits | word >> (64 - bits) }

  package mutating func next() -> UInt64 {
    let result = Self.rotate(state.1 &* 5, 7) &* 9
    let shifted = state.1 << 17
    state.2 ^= state.0
    state.3 ^= state.1
    state.1 ^= state.2
    state.0 ^= state.3
    state.2 ^= shifted
    state.3 = Self.rotate(state.3, 45)
    return result
  }

  /// Evenly spread over 0 ..< `limit`; 0 if the limit is 0.
  package mutating func uniform(below limit: Int) -> Int {
    limit > 0 ? Int.random(in: 0..<limit, using: &self) : 0
  }

  /// Evenly spread over 0 ..< 1, in steps of 2^-53.
  package mutating func unit() -> Double {
    Double(next() >> 11) * 0x1p-53
  }

  /// True with the given probability, from 0 to 1.
  package mutating func chance(_ probability: Double) -> Bool {
    unit() < probability
  }

  /// Evenly spread from zero to just below `limit`, by the nanosecond: the "full jitter" of a backoff. Zero if the
  /// limit is not positive.
  package mutating func uniform(below limit: Duration) -> Duration {
    let nanoseconds = limit.nanoseconds
    return nanoseconds > 0 ? .nanoseconds(Int64.random(in: 0..<nanoseconds, using: &self)) : .zero
  }
}
