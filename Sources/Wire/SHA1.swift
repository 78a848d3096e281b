/// SHA-1 (FIPS 180-4), for UUIDs that are derived from names and for nothing else: it is no longer fit for security.
///
/// Input may come in pieces. Nothing is allocated.
package struct SHA1: Sendable {
  private var state: (UInt32, UInt32, UInt32, UInt32, UInt32) = (
    0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0
  )
  /// The block that is being filled, as big-endian words.
  private var block = InlineArray<16, UInt32>(repeating: 0)
  /// Bytes taken so far; the low six bits say how full `block` is.
  private var count: UInt64 = 0

  package init() {}

  /// Takes the next bytes of the input.
  package mutating func update(_ bytes: Span<UInt8>) {
    for index in bytes.indices { update(bytes[index]) }
  }

  /// Takes the next byte of the input.
  package mutating func update(_ byte: UInt8) {
    let place = Int(count & 63)
    block[place >> 2] = block[place >> 2] << 8 | UInt32(byte)
    count &+= 1
    if place == 63 { compress() }
  }

  /// The digest of all that came in.
  package consuming func finish() -> InlineArray<20, UInt8> {
    let bits = count &* 8
    update(0x80)
    while count & 63 != 56 { update(0) }
    for shift in stride(from: UInt64(56), through: 0, by: -8) {
      update(UInt8(truncatingIfNeeded: bits >> shift))
    }
    let words: InlineArray<5, UInt32> = [state.0, state.1, state.2, state.3, state.4]
    var digest = InlineArray<20, UInt8>(repeating: 0)
    for index in digest.indices {
      digest[index] = UInt8(truncatingIfNeeded: words[index >> 2] >> UInt32(24 - 8 * (index & 3)))
    }
    return digest
  }

  /// Works the full block into the state. The 80 words of the schedule are kept as the last 16.
  private mutating func compress() {
    var (a, b, c, d, e) = state
    for round in 0..<80 {
      let place = round & 15
      if round >= 16 {
        let mixed = block[(round - 3) & 15] ^ block[(round - 8) & 15] ^ block[(round - 14) & 15] ^ block[place]
        block[place] = Self.rotate(mixed, 1)
      }
      let (choice, constant) = Self.function(round, b, c, d)
      let sum = Self.rotate(a, 5) &+ choice &+ e &+ constant &+ block[place]
      (a, b, c, d, e) = (sum, a, Self.rotate(b, 30), c, d)
    }
    state = (state.0 &+ a, state.1 &+ b, state.2 &+ c, state.3 &+ d, state.4 &+ e)
  }

  private static func function(_ round: Int, _ b: UInt32, _ c: UInt32, _ d: UInt32) -> (UInt32, UInt32) {
    switch round {
    case 0..<20: (b & c | ~b & d, 0x5a82_7999)
    case 20..<40: (b ^ c ^ d, 0x6ed9_eba1)
    case 40..<60: (b & c | b & d | c & d, 0x8f1b_bcdc)
    default: (b ^ c ^ d, 0xca62_c1d6)
    }
  }

  private static func rotate(_ word: UInt32, _ bits: UInt32) -> UInt32 {
    word << bits | word >> (32 - bits)
  }
}
