import Wire

/// A point in time as people give it on a command line.
enum TimeReading {
  /// `2026-01-31T12:00:00Z`, with an offset (`+01:00`) in place of `Z`, a fraction of the seconds, or only a date; or
  /// UNIX seconds. `nil` where it is none of these.
  static func time(_ text: String) -> UnixTime? {
    if let seconds = Int64(text), (100_000_000...99_999_999_999).contains(seconds) { return UnixTime(seconds: seconds) }
    var rest = text[...]
    guard let year = number(&rest, 4), take("-", &rest), let month = number(&rest, 2), take("-", &rest),
      let day = number(&rest, 2), (1...12).contains(month), (1...length(of: month, year)).contains(day)
    else { return nil }
    let midnight = CivilDate(year: year, month: month, day: day).daysSince1970 * 86_400
    if rest.isEmpty { return UnixTime(seconds: midnight) }
    guard take("T", &rest) || take("t", &rest) || take(" ", &rest), let hour = number(&rest, 2), take(":", &rest),
      let minute = number(&rest, 2), hour < 24, minute < 60
    else { return nil }
    var milliseconds = (midnight + hour * 3600 + minute * 60) * 1000
    if take(":", &rest) {
      guard let second = number(&rest, 2), second <= 60 else { return nil }
      milliseconds += second * 1000
      if take(".", &rest) {
        let digits = rest.prefix { ("0"..."9").contains($0) }
        guard !digits.isEmpty, let fraction = Double("0.\(digits)") else { return nil }
        rest = rest.dropFirst(digits.count)
        milliseconds += Int64(fraction * 1000)
      }
    }
    guard let offset = offset(&rest), rest.isEmpty else { return nil }
    return UnixTime(milliseconds: milliseconds - offset * 60_000)
  }

  /// Minutes east of Greenwich.
  private static func offset(_ rest: inout Substring) -> Int64? {
    if take("Z", &rest) || take("z", &rest) { return 0 }
    let sign: Int64 = take("+", &rest) ? 1 : take("-", &rest) ? -1 : 0
    guard sign != 0, let hours = number(&rest, 2), take(":", &rest), let minutes = number(&rest, 2), hours < 24,
      minutes < 60
    else { return nil }
    return sign * (hours * 60 + minutes)
  }

  private static func take(_ character: Character, _ rest: inout Substring) -> Bool {
    guard rest.first == character else { return false }
    rest.removeFirst()
    return true
  }

  private static func number(_ rest: inout Substring, _ digits: Int) -> Int64? {
    let text = rest.prefix(digits)
    guard text.count == digits, text.allSatisfy({ ("0"..."9").contains($0) }) else { return nil }
    rest = rest.dropFirst(digits)
    return Int64(text)
  }

  private static func length(of month: Int64, _ year: Int64) -> Int64 {
    let isLeap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
    return [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Int(month) - 1]
  }
}
