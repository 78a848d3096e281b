/// A day of the Gregorian calendar, and its number counted from 1970-01-01.
///
/// 400 years have 146,097 days. Years are counted from March, so that the day that comes and goes is their last.
package struct CivilDate: Hashable, Sendable {
  package var year: Int64
  /// 1 to 12.
  package var month: Int64
  /// 1 to 31.
  package var day: Int64

  package init(year: Int64, month: Int64, day: Int64) {
    self.year = year
    self.month = month
    self.day = day
  }

  /// The day so many days after 1970-01-01, or before it.
  package init(daysSince1970 days: Int64) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  /// - Precondition: `year` is no negative number.
  package var daysSince1970: Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let monthFromMarch = (month + 9) % 12
    return 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + (153 * monthFromMarch + 2) / 5 + day - 1
      - 719_468
  }
}

extension UnixTime {
  /// The day that it falls on (UTC), in days since 1970-01-01, and the seconds of that day.
  var dayAndSeconds: (day: Int64, seconds: Int64) {
    let day = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
    return (day, seconds - day * 86_400)
  }
}
