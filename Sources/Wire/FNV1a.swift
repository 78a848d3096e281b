/// FNV-1a of 64 bits (Fowler, Noll, Vo): quick, and the same in every process.
package struct FNV1a: Sendable {
  /// The form of 32 bits, for what is stored with few bytes.
  package static func hash32(_ bytes: Span<UInt8>) -> UInt32 {
    var hash: UInt32 = 0x811c_9dc5
    for index in bytes.indices { hash = (hash ^ UInt32(bytes[index])) &* 0x0100_0193 }
    return hash
  }

  package private(set) var value: UInt64

  package init(seed: UInt64 = 0) { value = 0xcbf2_9ce4_8422_2325 ^ seed }

  /// - Parameter bits: set in each byte first: with 0x20, letters count alike in either case.
  package mutating func add(_ bytes: Span<UInt8>, setting bits: UInt8 = 0) {
    for index in bytes.indices { value = (value ^ UInt64(bytes[index] | bits)) &* 0x0100_0000_01b3 }
  }

  /// Its eight bytes, the least significant one first.
  package mutating func add(_ number: UInt64) {
    for shift in stride(from: UInt64(0), to: 64, by: 8) {
      value = (value ^ (number >> shift & 0xff)) &* 0x0100_0000_01b3
    }
  }
}
