/// Times as text, in UTC.
package enum RFC3339 {
  /// `2026-01-31T12:00:00.123Z` (RFC 3339, section 5.6). Years beyond 9999, which it has no text for, lose digits.
  package static func text(_ time: UnixTime) -> String {
    let seconds = time.seconds
    let days = seconds >= 0 ? seconds / 86_400 : -((86_399 - seconds) / 86_400)
    let inDay = seconds - days * 86_400
    let (year, month, day) = civil(days: days)
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
    append(year, 4, "-")
    append(month, 2, "-")
    append(day, 2, "T")
    append(inDay / 3600, 2, ":")
    append(inDay / 60 % 60, 2, ":")
    append(inDay % 60, 2, ".")
    append(time.milliseconds - seconds * 1000, 3, "Z")
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Days since 1970-01-01 to a date of the Gregorian calendar, by eras of 400 years that begin on a first of March.
  private static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
  }
}
