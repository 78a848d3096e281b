import Wire

/// Dates as HTTP writes them (RFC 9110, section 5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT". The two older forms are not
/// sent any more.
enum HTTPDate {
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// - Returns: `nil` for anything else, and for times that no day has.
  static func time(_ text: Span<UInt8>) -> UnixTime? {
    guard text.count == 29, text.extracting(25..<29).spells(" GMT"),
      let day = number(text, 5..<7), let year = number(text, 12..<16),
      let hour = number(text, 17..<19), let minute = number(text, 20..<22), let second = number(text, 23..<25),
      let month = months.firstIndex(where: { text.extracting(8..<11).spells($0) }),
      (1...31).contains(day), year >= 1970, hour < 24, minute < 60, second <= 60
    else { return nil }
    return UnixTime(seconds: ((days(year, month + 1, day) * 24 + hour) * 60 + minute) * 60 + second)
  }

  private static func number(_ text: Span<UInt8>, _ range: Range<Int>) -> Int64? {
    var value: Int64 = 0
    for index in range {
      let digit = text[index] &- 0x30
      guard digit < 10 else { return nil }
      value = value * 10 + Int64(digit)
    }
    return value
  }

  /// Days since 1970-01-01 in the Gregorian calendar. Years begin in March here, so that the day that comes and goes is
  /// their last.
  private static func days(_ year: Int64, _ month: Int, _ day: Int64) -> Int64 {
    let year = month > 2 ? year : year - 1
    let monthsSinceMarch = Int64((month + 9) % 12)
    return year * 365 + year / 4 - year / 100 + year / 400 + (monthsSinceMarch * 153 + 2) / 5 + day - 1 - 719_468
  }
}
