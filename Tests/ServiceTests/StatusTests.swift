import APNs
import Delivery
import Testing
import Wire

@testable import Service

/// A service of some apps whose clock moves by hand, and its status page.
private struct StatusBench {
  let registry = Registry(versions: .test)
  let shard: MetricShard
  var history = StatusHistory()
  var now = Instant(nanoseconds: 1_000_000_000)
  var health: HealthState
  var problems: [ProblemBook.Problem] = []

  init(apps: Int) {
    let names = (0..<apps).map { "app-\($0)" }
    registry.setApps(names, configured: apps, caps: names.map { _ in 100 })
    shard = registry.makeShard()
    shard.set(.lastReloadGood, to: 1)
    health = HealthState(
      now: now, loops: [], isConfigured: true, hasJoinedGroup: true, isDraining: false,
      apps: names.map { HealthState.App(name: $0, fault: nil) })
    history.sample(registry.snapshot(), processor: .zero, at: now)
  }

  /// Two seconds pass.
  mutating func step() {
    now = now + StatusHistory.step
    health.now = now
    history.sample(registry.snapshot(), processor: .zero, at: now)
  }

  func bytes() -> [UInt8] {
    StatusDocument(
      snapshot: registry.snapshot(), health: health, process: nil, history: history, problems: problems, host: "pod-1",
      time: UnixTime(seconds: 1_790_000_000)
    ).json()
  }

  func document() throws -> JSONDocument { try JSONDocument(bytes()) }
}

struct StatusTests {
  @Test
  func ratesAreThoseOfTheLastSeconds() throws {
    var bench = StatusBench(apps: 2)
    for _ in 0..<10 {
      bench.shard.add(.notifications(.delivered, .alert), app: AppIndex(0), 20)
      bench.shard.add(.notifications(.rejected, .voip), app: AppIndex(1), 2)
      bench.step()
    }
    let status = try bench.document()
    #expect(status["history"]["delivered"].numbers == Array(repeating: 10, count: 10))
    #expect(status["history"]["not_delivered"].numbers == Array(repeating: 1, count: 10))
    #expect(status["apps"][0]["per_second"].number == 10)
    #expect(status["apps"][1]["rejected"].number == 20)
    #expect(status["apps"][1]["bad"].numbers == [10, 10])
    #expect(status["totals"]["delivered"].number == 200)
  }

  @Test
  func latenciesAreThoseOfTheLastMinute() throws {
    var bench = StatusBench(apps: 1)
    for _ in 0..<1_000 { bench.shard.observe(.sendToAnswer, app: AppIndex(0), .seconds(20)) }
    for _ in 0..<36 { bench.step() }
    for _ in 0..<100 { bench.shard.observe(.sendToAnswer, app: AppIndex(0), .milliseconds(4)) }
    for _ in 0..<100 { bench.shard.observe(.endToEnd, .milliseconds(40)) }
    bench.step()
    let status = try bench.document()
    let median = try #require(status["apps"][0]["p50_us"].number)
    #expect((2_500...5_000).contains(median))
    #expect((25_000...50_000).contains(try #require(status["latency_us"]["end_to_end"][1].number)))
    #expect(status["latency_us"]["ping"][0].isNull)
  }

  @Test(
    arguments: [
      (0.5, [0, 10], 1_750), (0.5, [10, 10], 1_000), (0.99, [100], 990), (1, [0, 0, 0, 1], 10_000),
    ] as [(Double, [UInt64], Int)])
  func quantilesLieEvenlyInTheirBucket(quantile: Double, buckets: [UInt64], microseconds: Int) {
    #expect(LatencyQuantiles.microseconds(quantile, of: buckets) == microseconds)
  }

  @Test
  func quantilesOfNothingAndOfTheOpenBucket() {
    #expect(LatencyQuantiles.microseconds(0.5, of: [UInt64]()) == nil)
    #expect(LatencyQuantiles.microseconds(0.5, of: Array(repeating: UInt64(0), count: 15) + [3]) == 60_000_000)
  }

  @Test
  func theHistoryIsBounded() throws {
    var bench = StatusBench(apps: 1)
    for _ in 0..<1_000 { bench.step() }
    #expect(bench.history.service.count == StatusHistory.samples)
    #expect(try bench.document()["apps"][0]["good"].numbers.count == StatusHistory.slots)
  }

  @Test
  func theDocumentIsBoundedWhateverThereIs() throws {
    var bench = StatusBench(apps: 5_000)
    bench.health.apps[4_999].fault = "refused"
    bench.registry.setPartitions(
      (0..<2_000).map { PartitionSample(topic: "t", partition: $0, lag: Int64($0), isPaused: false) })
    bench.problems = (0..<100).map { number in
      ProblemBook.Problem(
        code: "commit_failed", app: "app-\(number)", level: .warning, message: "m", cause: nil, count: 1,
        first: UnixTime(seconds: 1), last: UnixTime(seconds: 1))
    }
    let status = try bench.document()
    #expect(status["apps"].count == StatusDocument.mostApps)
    #expect(status["apps"][0]["app"].text == "app-4999")
    #expect(status["apps_left_out"].number == 3_000)
    #expect(status["partitions"].count == StatusDocument.mostPartitions)
    #expect(status["partitions"][0]["lag"].number == 1_999)
    #expect(status["partitions_left_out"].number == 1_500)
    #expect(status["problems"].count == 1 + StatusDocument.mostProblems)
  }

  @Test
  func whatIsWrongNowComesFirstWithItsMend() throws {
    var bench = StatusBench(apps: 2)
    bench.health.apps[1].fault = "APNs refuses the app's credentials: InvalidProviderToken"
    bench.shard.set(.lastReloadGood, to: 0)
    bench.registry.setCredentials([
      CredentialSample(app: "app-0", validUntil: UnixTime(seconds: 1_790_000_000 + 86_000))
    ])
    bench.problems = [
      ProblemBook.Problem(
        code: "app_unavailable", app: "app-1", level: .warning, message: "m", cause: nil, count: 1,
        first: UnixTime(seconds: 1), last: UnixTime(seconds: 1))
    ]
    let problems = try bench.document()["problems"]
    #expect(problems.count == 3)
    #expect((0..<3).map { problems[$0]["code"].text } == ["reload_refused", "app_unavailable", "certificate_expires"])
    for index in 0..<3 {
      #expect(problems[index]["now"].flag == true)
      #expect(problems[index]["meaning"].text?.isEmpty == false && problems[index]["mend"].text?.isEmpty == false)
    }
  }

  @Test(arguments: [
    ("starting", false, false, false), ("ready", true, true, false), ("not ready", false, true, false),
    ("draining", true, true, true),
  ])
  func theStateIsOneWord(word: String, joined: Bool, had: Bool, draining: Bool) throws {
    var bench = StatusBench(apps: 1)
    bench.health.hasJoinedGroup = joined
    bench.health.hadJoinedGroup = had
    bench.health.isDraining = draining
    #expect(try bench.document()["service"]["state"].text == word)
  }

  @Test
  func thePageIsWholeAndItsPolicyNamesItsParts() {
    let page = String(decoding: StatusPage.html, as: UTF8.self)
    #expect(page.hasPrefix("<!doctype html>") && page.hasSuffix("</html>\n"))
    #expect(!page.contains("/*style*/") && !page.contains("/*script*/"))
    #expect(page.contains("prefers-color-scheme") && page.contains("\"use strict\""))
    #expect(StatusPage.policy.contains("default-src 'none'") && !StatusPage.policy.contains("unsafe"))
    // What would end the element in the middle of its text.
    #expect(page.split(separator: "</script", omittingEmptySubsequences: false).count == 2)
    #expect(page.split(separator: "</style", omittingEmptySubsequences: false).count == 2)
  }
}

/// A JSON document to ask things of; what is not there is null.
private struct JSONDocument {
  private let value: ConfigurationValue

  init(_ text: [UInt8]) throws {
    var context = ReadingContext(source: ConfigurationSource(file: "status.json", text: text))
    value = try #require(ConfigurationDocument.read(text, &context), "\(context.problems)")
    #expect(context.problems.isEmpty)
  }

  private init(_ value: ConfigurationValue) { self.value = value }

  private static let null = JSONDocument(ConfigurationValue(.null))

  subscript(key: String) -> JSONDocument { value.member(key).map { JSONDocument($0.value) } ?? Self.null }
  subscript(index: Int) -> JSONDocument { items.indices.contains(index) ? JSONDocument(items[index]) : Self.null }

  private var items: [ConfigurationValue] { if case .list(let items) = value.content { items } else { [] } }
  var count: Int { items.count }
  var isNull: Bool { value.content == .null }
  var text: String? { if case .string(let text) = value.content { text } else { nil } }
  var flag: Bool? { if case .bool(let flag) = value.content { flag } else { nil } }
  var numbers: [Double] { items.compactMap { JSONDocument($0).number } }
  var number: Double? {
    switch value.content {
    case .integer(let number): Double(number)
    case .number(let number): number
    default: nil
    }
  }
}
