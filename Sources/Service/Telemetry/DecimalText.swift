/// Numbers as decimal digits, without an allocation for each.
enum DecimalText {
  /// With leading zeros up to a number of digits; digits beyond those are cut off at the left.
  static func append(_ number: UInt64, digits: Int, to bytes: inout [UInt8]) {
    var divisor: UInt64 = 1
    for _ in 1..<max(2, digits + 1) { divisor *= 10 }
    var rest = number % divisor
    for _ in 0..<digits {
      divisor /= 10
      bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest / divisor))
      rest %= divisor
    }
  }
}
