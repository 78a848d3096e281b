internal import Wire

/// Durations and sizes as people write them: `"30s"`, `"250ms"`, `"32MiB"`.
package enum Quantity {
  private static let durationUnits: [(suffix: String, nanoseconds: Double)] = [
    ("ms", 1e6), ("us", 1e3), ("ns", 1), ("s", 1e9), ("m", 60e9), ("h", 3600e9), ("d", 86_400e9),
  ]

  private static let sizeUnits: [(suffix: String, bytes: Double)] = [
    ("KiB", 1024), ("MiB", 1_048_576), ("GiB", 1_073_741_824), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("B", 1),
  ]

  // What is written, the largest first. Not where it is used: there the compiler would unroll the loops, and Swift 6.3
  // does it differently from build to build, so that no two programs were the same.
  private static let writtenDurations: [(suffix: String, nanoseconds: Int64)] = [
    ("d", 86_400_000_000_000), ("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000),
    ("ms", 1_000_000), ("us", 1_000), ("ns", 1),
  ]

  private static let writtenSizes: [(suffix: String, bytes: Int)] = [
    ("GiB", 1_073_741_824), ("MiB", 1_048_576), ("KiB", 1024),
  ]

  /// A duration from a number with a unit (`ns`, `us`, `ms`, `s`, `m`, `h`, `d`); `nil` where it is none.
  ///
  /// A bare number is none: nobody can tell its unit.
  package static func duration(_ text: String) -> Duration? {
    for unit in durationUnits where text.hasSuffix(unit.suffix) {
      guard let number = decimal(text.dropLast(unit.suffix.count)) else { return nil }
      let nanoseconds = (number * unit.nanoseconds).rounded()
      return nanoseconds < 9e18 ? .nanoseconds(Int64(nanoseconds)) : nil
    }
    return nil
  }

  /// A size in bytes from a number with a unit (`B`, `kB`, `MB`, `GB`, `KiB`, `MiB`, `GiB`) or without one.
  package static func size(_ text: String) -> Int? {
    let unit = sizeUnits.first { text.hasSuffix($0.suffix) } ?? ("", 1)
    guard let number = decimal(text.dropLast(unit.suffix.count)) else { return nil }
    let bytes = (number * unit.bytes).rounded()
    return bytes < 9e18 ? Int(bytes) : nil
  }

  /// The shortest text that `duration` reads as the same duration.
  package static func text(_ duration: Duration) -> String {
    let nanoseconds = duration.nanoseconds
    guard nanoseconds != 0 else { return "0s" }
    for (suffix, size) in writtenDurations where nanoseconds % size == 0 { return "\(nanoseconds / size)\(suffix)" }
    return "\(nanoseconds)ns"
  }

  /// A size with the largest unit that divides it.
  package static func text(bytes: Int) -> String {
    for (suffix, size) in writtenSizes where bytes != 0 && bytes % size == 0 { return "\(bytes / size)\(suffix)" }
    return "\(bytes)B"
  }

  /// Digits with at most one point; no sign, no exponent.
  private static func decimal(_ text: Substring) -> Double? {
    let text = text.hasSuffix(" ") ? text.dropLast() : text
    guard let first = text.utf8.first, let last = text.utf8.last, isDigit(first), isDigit(last) else { return nil }
    guard text.utf8.allSatisfy({ isDigit($0) || $0 == UInt8(ascii: ".") }) else { return nil }
    return Double(text)
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
