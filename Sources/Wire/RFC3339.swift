/// Times as text, in UTC.
package enum RFC3339 {
  /// `2026-01-31T12:00:00.123Z` (RFC 3339, section 5.6). Years beyond 9999, which it has no text for, lose digits.
  package static func text(_ time: UnixTime) -> String {
    let (days, inDay) = time.dayAndSeconds
    let date = CivilDate(daysSince1970: days)
    var bytes: [UInt8] = []
    func append(_ number: Int64, _ digits: Int, _ end: Unicode.Scalar) {
      var divisor: Int64 = 1
      for _ in 1..<digits { divisor *= 10 }
      while divisor > 0 {
        bytes.append(0x30 + UInt8(truncatingIfNeeded: max(0, number) / divisor % 10))
        divisor /= 10
      }
      bytes.append(UInt8(ascii: end))
    }
    append(date.year, 4, "-")
    append(date.month, 2, "-")
    append(date.day, 2, "T")
    append(inDay / 3600, 2, ":")
    append(inDay / 60 % 60, 2, ":")
    append(inDay % 60, 2, ".")
    append(time.milliseconds - time.seconds * 1000, 3, "Z")
    return String(decoding: bytes, as: UTF8.self)
  }
}
