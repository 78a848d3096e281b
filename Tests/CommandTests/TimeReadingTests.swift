import Service
import Testing
import Wire

@testable import martlet

struct TimeReadingTests {
  @Test(
    arguments: [
      ("1970-01-01T00:00:00Z", 0), ("1970-01-01", 0), ("2026-01-31T12:00:00Z", 1_769_860_800_000),
      ("2026-01-31T12:00:00.123Z", 1_769_860_800_123), ("2026-01-31T13:30:00+01:30", 1_769_860_800_000),
      ("2026-01-31T04:00:00-08:00", 1_769_860_800_000), ("2026-01-31 12:00Z", 1_769_860_800_000),
      ("2024-02-29T00:00:00Z", 1_709_164_800_000), ("1769860800", 1_769_860_800_000),
    ] as [(String, Int64)])
  func timesAreRead(_ text: String, _ milliseconds: Int64) {
    #expect(TimeReading.time(text)?.milliseconds == milliseconds)
  }

  @Test(
    arguments: [
      "", "now", "2026", "2026-13-01", "2026-02-29", "2026-01-31T12", "2026-01-31T24:00:00Z", "2026-01-31T12:00:00",
      "2026-01-31T12:00:00.Z", "2026-01-31T12:00:00Zx", "2026-01-31T12:00:00+1", "-5", "99999999999999", "1h",
    ])
  func whatIsNoTimeIsRefused(_ text: String) {
    #expect(TimeReading.time(text) == nil)
  }

  @Test func whatIsWrittenIsReadAgain() {
    for milliseconds in [0, 951_782_399_999, 1_709_164_800_000, 4_102_444_799_999] as [Int64] {
      let time = UnixTime(milliseconds: milliseconds)
      #expect(TimeReading.time(RFC3339.text(time)) == time)
    }
  }
}
