import APNs
import Synchronization
import Testing
import Wire

@testable import Service

/// Collects lines, and is the clock of the log under test.
private final class Lines: Sendable {
  private let state = Mutex((lines: [String](), nanoseconds: Int64(1_000_000_000)))

  var all: [String] { state.withLock { $0.lines } }

  func advance(_ duration: Duration) { state.withLock { $0.nanoseconds += duration.nanoseconds } }

  func log(
    level: LogLevel = .info, format: LogSettings.Format = .json, burst: Int = 3, mostKinds: Int = 100
  ) -> Log {
    Log(
      level: level, format: format, limiter: RepeatLimiter(window: .seconds(10), burst: burst, mostKinds: mostKinds),
      now: {
        let nanoseconds = self.state.withLock { $0.nanoseconds }
        return Moment(
          instant: Instant(nanoseconds: nanoseconds),
          time: UnixTime(milliseconds: 1_790_000_000_000 + nanoseconds / 1_000_000))
      },
      sink: { bytes in self.state.withLock { $0.lines.append(String(decoding: bytes, as: UTF8.self)) } })
  }
}

struct LogTests {
  private let lines = Lines()

  @Test
  func aLineIsOneJSONObject() {
    lines.log().warning(
      "app.refused", "APNs refused the credentials",
      [.app("shop"), .status(403), .reason(.invalidProviderToken), .duration(.milliseconds(1_250)), .partition(3)])
    #expect(
      lines.all == [
        #"{"time":"2026-09-21T14:13:21.000Z","level":"warning","code":"app.refused","#
          + #""message":"APNs refused the credentials","app":"shop","http_status":403,"reason":"InvalidProviderToken","#
          + #""duration_seconds":1.250,"partition":3}"# + "\n"
      ])
  }

  @Test
  func textIsForPeople() {
    lines.log(format: .text).info("started", "Started", [.version("1.0"), .cause(CauseText("two words"))])
    #expect(lines.all == ["2026-09-21T14:13:21.000Z INFO    Started [started] version=1.0 cause=\"two words\"\n"])
  }

  @Test(arguments: [LogSettings.Format.json, .text])
  func valuesCannotBreakTheLine(format: LogSettings.Format) {
    lines.log(format: format).info("x", "m", [.host("a\"b\\c\nd\u{1B}[31m"), .file("x\ny")])
    let line = lines.all[0]
    #expect(line.filter { $0.isNewline }.count == 1 && line.hasSuffix("\n"))
    #expect(!line.contains("\u{1B}"))
    if format == .json { #expect(line.contains(#""host":"a\"b\\c\nd\u001b[31m""#), "\(line)") }
  }

  @Test
  func linesFitIntoAPipe() {
    lines.log().info("x", "m", (0..<40).map { _ in .host(String(repeating: "\u{1}", count: 1000)) })
    #expect(lines.all.count == 1 && lines.all[0].utf8.count <= LogLine.longest)
  }

  @Test
  func levelsAreKeptAndCostNothingWhenOff() {
    let log = lines.log(level: .warning)
    var built = 0
    func field() -> LogField {
      built += 1
      return .count(built)
    }
    log.trace("a", "m", [field()])
    log.debug("b", "m", [field()])
    log.info("c", "m", [field()])
    #expect(built == 0 && lines.all.isEmpty)
    log.error("d", "m", [field()])
    log.setLevel(.trace)
    log.trace("e", "m", [field()])
    #expect(built == 2 && lines.all.count == 2)
  }

  @Test
  func repeatsAreLimitedByCodeAndApp() {
    let log = lines.log()
    for _ in 0..<100 {
      log.warning("down", "m", [.app("a")])
      log.warning("down", "m", [.app("b")])
    }
    log.warning("other", "m", [.app("a")])
    #expect(lines.all.count == 3 + 3 + 1)
    lines.advance(.seconds(10))
    log.warning("down", "m", [.app("a")])
    #expect(lines.all.contains { $0.contains(#""app":"a","suppressed":97"#) })
  }

  @Test
  func whatWasLeftOutIsToldEvenIfNothingFollows() {
    let log = lines.log()
    for _ in 0..<10 { log.warning("down", "m", [.app("a")]) }
    lines.advance(.seconds(11))
    log.info("elsewhere", "m")
    #expect(lines.all.contains { $0.contains("left out") && $0.contains(#""app":"a","suppressed":7"#) }, "\(lines.all)")
    for _ in 0..<10 { log.warning("down", "m", [.app("a")]) }
    log.flush()
    #expect(lines.all.last?.contains(#""suppressed":7"#) == true)
  }

  @Test
  func aLongOutageFillsNoDisk() {
    let log = lines.log(burst: 5)
    for _ in 0..<600 {
      for _ in 0..<50 {
        log.warning("unreachable", "APNs cannot be reached", [.app("a"), .host("api.push.apple.com")])
      }
      lines.advance(.seconds(1))
    }
    #expect(lines.all.reduce(0) { $0 + $1.utf8.count } < 100_000)
  }

  @Test
  func rememberedKindsAreBounded() {
    let log = lines.log(burst: 1, mostKinds: 10)
    for index in 0..<1_000 { log.warning("down", "m", [.app("app\(index)")]) }
    #expect(lines.all.count < 20)
  }

  @Test
  func librdkafkasLinesComeIn() {
    let log = lines.log()
    log.kafka(severity: 3, facility: "FAIL", message: "broker 1: connect refused\nsecond line")
    log.kafka(severity: 7, facility: "MSG", message: "detail")
    #expect(lines.all.count == 1)
    #expect(lines.all[0].contains(#""level":"error","code":"kafka.fail""#))
    #expect(lines.all[0].contains(#""cause":"broker 1: connect refused second line""#))
  }

  @Test(arguments: [
    (Int64(0), "1970-01-01T00:00:00.000Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
    (1_735_689_599_999, "2024-12-31T23:59:59.999Z"), (-1, "1969-12-31T23:59:59.999Z"),
    (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
  ])
  func timesAreInUTC(milliseconds: Int64, text: String) {
    #expect(RFC3339.text(UnixTime(milliseconds: milliseconds)) == text)
  }
}

struct SecrecyTests {
  private static let deviceToken = "ab12cd34ef56ab12cd34ef56ab12cd34ef56ab12cd34ef56ab12cd34ef56ab12"
  private static let jwt =
    "eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQzEyM0RFRkcifQ.eyJpc3MiOiJERUYxMjNHSElKIn0.MEUCIQDsecretsignature"

  @Test
  func deviceTokensKeepOnlyTheirEnds() {
    #expect(ShortToken(Self.deviceToken).description == "ab12…ab12")
    #expect(ShortToken("ab12cd34").description == "…")
    #expect(ShortToken("").description == "…")
  }

  @Test(arguments: [
    ("authorization: bearer \(jwt)", "secretsignature"), ("authorization: Bearer s3cretwithoutform", "s3cret"),
    ("sasl.password=hunter2 was set", "hunter2"), ("password: hunter2", "hunter2"),
    ("ssl.key.pem=MIGHAgEAMBMG", "MIGH"), ("-----BEGIN PRIVATE KEY-----", "BEGIN"),
    ("POST /3/device/\(deviceToken) failed", deviceToken),
    ("key MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg is bad", "MIGHAgEAMBMGByqGSM49"),
  ])
  func plantedSecretsAreNotWritten(text: String, secret: String) {
    #expect(!CauseText(text).description.contains(secret), "\(CauseText(text))")
  }

  @Test(arguments: [
    "sasl_ssl://kafka-1.example.com:9093/bootstrap: Connect to ipv4#10.0.0.1:9093 failed: Connection refused (after 0ms)",
    "error:0A000086:SSL routines::certificate verify failed", "open /secrets/AuthKey_ABC123DEFG.p8: No such file",
  ])
  func usefulTextsStay(text: String) { #expect(CauseText(text).description == text) }

  @Test
  func textsAreBounded() {
    let long = CauseText(String(repeating: "word ", count: 10_000)).description
    #expect(long.utf8.count < CauseText.longest + 20)
    #expect(CauseText(String(repeating: "x", count: 10_000)).description.utf8.count <= CauseText.longest)
  }
}
