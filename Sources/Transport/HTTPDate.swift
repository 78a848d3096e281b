package import Wire

/// Dates as HTTP writes them (IMF-fixdate, RFC 9110 section 5.6.7).
package enum HTTPDate {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  static func text(_ time: UnixTime) -> String {
    let seconds = time.seconds
    let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
    let (year, month, day) = civil(days)
    let rest = seconds - days * 86_400
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][Int((days % 7 + 7) % 7)]
    let clock = "\(two(rest / 3600)):\(two(rest / 60 % 60)):\(two(rest % 60))"
    return "\(weekday), \(two(day)) \(months[Int(month) - 1]) \(four(year)) \(clock) GMT"
  }

  /// The time that such a date names; `nil` for anything else, also for the obsolete forms.
  package static func time(_ text: String) -> UnixTime? {
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 6, words[5] == "GMT", let day = Int64(words[1]), let year = Int64(words[3]),
      let month = months.firstIndex(of: String(words[2])), (1970...9999).contains(year), (1...31).contains(day)
    else { return nil }
    let clock = words[4].split(separator: ":", omittingEmptySubsequences: false).map { Int64($0) ?? -1 }
    guard clock.count == 3, (0...23).contains(clock[0]), (0...59).contains(clock[1]), (0...60).contains(clock[2])
    else { return nil }
    // The inverse of `civil`: whole days before the year's first of March, the months' days since, the day.
    let fromMarch = (Int64(month) + 10) % 12
    let shifted = month < 2 ? year - 1 : year
    let days =
      365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + (153 * fromMarch + 2) / 5 + day - 1 - 719_468
    return UnixTime(seconds: days * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2])
  }

  private static func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

  private static func four(_ year: Int64) -> String {
    let text = String(year)
    return String(repeating: "0", count: max(0, 4 - text.count)) + text
  }

  /// The date of a day counted from 1970-01-01 in the Gregorian calendar: 400 years have 146,097 days, and years are
  /// counted from March so that the leap day comes last.
  private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
  }
}
