import Testing

@testable import Service

struct QuantityTests {
  @Test(arguments: [
    ("30s", Duration.seconds(30)), ("250ms", .milliseconds(250)), ("5m", .seconds(300)), ("1h", .seconds(3600)),
    ("1.5s", .milliseconds(1500)), ("0s", .zero), ("2d", .seconds(172_800)), ("10us", .microseconds(10)),
  ])
  func readsDurations(text: String, duration: Duration) {
    #expect(Quantity.duration(text) == duration)
    #expect(Quantity.duration(Quantity.text(duration)) == duration)
  }

  @Test(arguments: [("90s", 90.0), ("36h", 129_600), ("2d", 172_800), ("1500ms", 1.5), ("0s", 0)])
  func writesDurationsWithTheLargestUnitThatDivides(text: String, seconds: Double) {
    #expect(Quantity.text(.seconds(seconds)) == text)
  }

  @Test(arguments: ["", "30", "s", "-1s", "1e3s", "1.s", ".5s", "1 0s", "30sec", "999999999999d", "1..5s"])
  func refusesWhatIsNoDuration(text: String) { #expect(Quantity.duration(text) == nil) }

  @Test(arguments: [("32MiB", 33_554_432), ("1GB", 1_000_000_000), ("512", 512), ("1.5KiB", 1536), ("7B", 7)])
  func readsSizes(text: String, bytes: Int) { #expect(Quantity.size(text) == bytes) }

  @Test(arguments: [
    ("32MiB", 33_554_432), ("3GiB", 3_221_225_472), ("1025KiB", 1_049_600), ("1536B", 1536), ("0B", 0),
  ])
  func writesSizesWithTheLargestUnitThatDivides(text: String, bytes: Int) {
    #expect(Quantity.text(bytes: bytes) == text)
    #expect(Quantity.size(text) == bytes)
  }

  @Test(arguments: ["", "MiB", "-1", "1TiB", "99999999999GiB", "x"])
  func refusesWhatIsNoSize(text: String) { #expect(Quantity.size(text) == nil) }

  @Test(arguments: [
    ("maxInflight", "maxInFlight"), ("brokres", "brokers"), ("bundleID", "bundleId"), ("token", "token"),
  ])
  func findsTheNearestName(typed: String, meant: String) {
    #expect(NearestName.find(typed, in: ["maxInFlight", "maxInFlightPerApp", "brokers", "bundleId", "token"]) == meant)
  }

  @Test
  func offersNoNameThatIsFar() { #expect(NearestName.find("zzzzzz", in: ["brokers", "group", "log"]) == nil) }
}
