/// Dates as HTTP writes them (IMF-fixdate, RFC 9110 section 5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT". The two older forms
/// are not sent any more.
package enum HTTPDate {
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
  /// From the weekday of 1970-01-01 on.
  private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]

  /// The date of a time, to the second.
  package static func text(_ time: UnixTime) -> String {
    let (days, rest) = time.dayAndSeconds
    let date = CivilDate(daysSince1970: days)
    let weekday = weekdays[Int((days % 7 + 7) % 7)]
    let clock = "\(two(rest / 3600)):\(two(rest / 60 % 60)):\(two(rest % 60))"
    return "\(weekday), \(two(date.day)) \(months[Int(date.month) - 1]) \(four(date.year)) \(clock) GMT"
  }

  /// The time that such a date names; `nil` for anything else, also for times that no day has. The weekday is not looked
  /// at.
  package static func time(_ text: Span<UInt8>) -> UnixTime? {
    guard text.count == 29, text.extracting(3..<5).spells(", "), text[7] == 0x20, text[11] == 0x20, text[16] == 0x20,
      text[19] == 0x3a, text[22] == 0x3a, text.extracting(25..<29).spells(" GMT"),
      let day = number(text, 5..<7), let year = number(text, 12..<16),
      let hour = number(text, 17..<19), let minute = number(text, 20..<22), let second = number(text, 23..<25),
      let month = months.firstIndex(where: { text.extracting(8..<11).spells($0) }),
      (1...31).contains(day), year >= 1970, hour < 24, minute < 60, second <= 60
    else { return nil }
    let days = CivilDate(year: year, month: Int64(month) + 1, day: day).daysSince1970
    return UnixTime(seconds: days * 86_400 + hour * 3600 + minute * 60 + second)
  }

  /// The same of a text.
  package static func time(_ text: String) -> UnixTime? { time(text.utf8.span) }

  private static func number(_ text: Span<UInt8>, _ range: Range<Int>) -> Int64? {
    var value: Int64 = 0
    for index in range {
      let digit = text[index] &- 0x30
      guard digit < 10 else { return nil }
      value = value * 10 + Int64(digit)
    }
    return value
  }

  private static func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

  private static func four(_ year: Int64) -> String {
    let text = String(year)
    return String(repeating: "0", count: max(0, 4 - text.count)) + text
  }
}
