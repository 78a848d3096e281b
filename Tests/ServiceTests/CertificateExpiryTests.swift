import Testing
import Wire

@testable import Service

struct CertificateExpiryTests {
  private static let now = UnixTime(seconds: 1_800_000_000)
  private static let day: Int64 = 86_400

  private func certificate(_ app: String, days: Int64, seconds: Int64 = 0) -> CertificateSample {
    CertificateSample(app: app, validUntil: UnixTime(seconds: Self.now.seconds + days * Self.day + seconds))
  }

  @Test(arguments: [
    (Int64(400), Int64(0), ExpiryStage.distant), (30, 1, .distant), (30, 0, .month), (7, 1, .month), (7, 0, .week),
    (1, 1, .week), (1, 0, .day), (0, 1, .day), (0, 0, .expired), (-20, 0, .expired),
  ])
  func theStageIsThatOfTheDaysLeft(days: Int64, seconds: Int64, stage: ExpiryStage) {
    #expect(ExpiryStage(of: certificate("a", days: days, seconds: seconds).validUntil, at: Self.now) == stage)
  }

  @Test
  func eachStageIsToldOnce() {
    var watch = ExpiryWatch()
    let certificate = certificate("a", days: 40)
    var told: [Int64: ExpiryStage] = [:]
    // Every hour for 50 days.
    for hour in Int64(0)..<50 * 24 {
      let now = UnixTime(seconds: Self.now.seconds + hour * 3600)
      for warning in watch.warnings(of: [certificate], at: now) {
        #expect(told.values.contains(warning.stage) == false)
        told[hour / 24] = warning.stage
      }
    }
    #expect(told == [10: .month, 33: .week, 39: .day, 40: .expired])
  }

  @Test
  func aLateStartTellsTheNearestStageOnly() {
    var watch = ExpiryWatch()
    let warnings = watch.warnings(of: [certificate("a", days: 3), certificate("b", days: 300)], at: Self.now)
    #expect(warnings == [ExpiryWatch.Warning(certificate: certificate("a", days: 3), stage: .week)])
  }

  @Test
  func anotherCertificateIsToldAnew() {
    var watch = ExpiryWatch()
    #expect(watch.warnings(of: [certificate("a", days: 3)], at: Self.now).count == 1)
    #expect(watch.warnings(of: [certificate("a", days: 5)], at: Self.now).map(\.stage) == [.week])
    #expect(watch.warnings(of: [certificate("a", days: 500)], at: Self.now).isEmpty)
    #expect(watch.warnings(of: [], at: Self.now).isEmpty)
    #expect(watch.warnings(of: [certificate("a", days: 5)], at: Self.now).map(\.stage) == [.week])
  }

  @Test
  func theLogNamesAppAndDate() {
    let sink = LogLines()
    let reporter = ExpiryReporter(log: Log(sink: sink.take))
    reporter.check([certificate("legacy", days: 6)], at: Self.now)
    reporter.check(at: Self.now)
    #expect(sink.lines.count == 1)
    let line = sink.lines.first ?? ""
    #expect(line.contains("\"code\":\"certificate_expires\"") && line.contains("\"app\":\"legacy\""))
    #expect(line.contains("\"valid_until\":\"2027-01-21T08:00:00.000Z\""), "\(line)")
  }
}
