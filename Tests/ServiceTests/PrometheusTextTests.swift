import APNs
import Delivery
import Glibc
import TestSupport
import Testing
import Wire

@testable import Service

struct PrometheusTextTests {
  private let registry = Registry(versions: .test)
  private let process = ProcessSample(
    cpuNanoseconds: 1_500_000_000, residentBytes: 4096, openDescriptors: 7, mostDescriptors: 1024, threads: 9,
    startTime: UnixTime(milliseconds: 1_790_000_000_250))

  private static let health = HealthState(
    now: Instant(nanoseconds: 20_000_000_000),
    loops: [
      .init(name: "delivery", lastTurn: Instant(nanoseconds: 19_000_000_000)),
      .init(name: "lane-0", lastTurn: Instant(nanoseconds: 4_000_000_000)),
    ], isConfigured: true, hasJoinedGroup: true, isDraining: true,
    apps: [.init(name: "shop-ios", fault: nil), .init(name: "legacy", fault: "its certificate has expired")])

  private func text(_ format: MetricsFormat = .prometheus) -> String {
    String(
      decoding: PrometheusText.render(registry.snapshot(), health: Self.health, process: process, as: format),
      as: UTF8.self)
  }

  private func lines() -> [Substring] { text().split(separator: "\n") }

  private func fill() {
    registry.setApps(["shop-ios", "legacy"], configured: 2, caps: [5_000, nil])
    registry.setPartitions([
      PartitionSample(topic: "push.requests", partition: 3, lag: 42, isPaused: true),
      PartitionSample(topic: "push.requests", partition: 4, lag: nil, isPaused: false),
    ])
    let token = TokenGauge()
    token.note(issuedAt: UnixTime(seconds: 1_790_000_000))
    registry.setCredentials([
      CredentialSample(app: "shop-ios", token: token),
      CredentialSample(app: "legacy", validUntil: UnixTime(seconds: 1_800_000_000)),
    ])
    let shard = registry.makeShard()
    shard.add(.notifications(.delivered, .alert), app: AppIndex(0), 12)
    shard.add(.notifications(.failed, .voip), app: AppIndex(1), 3)
    shard.observe(.sendToAnswer, app: AppIndex(1), .milliseconds(40))
    shard.add(.rejections(.unregistered), app: AppIndex(1), 2)
    shard.add(.rejections(.unknown), app: AppIndex(1))
    shard.add(.inFlight, app: AppIndex(0), -1)
    shard.add(.invalid(.badToken), 5)
    shard.observe(.endToEnd, .milliseconds(40))
    shard.observe(.endToEnd, .seconds(90))
    shard.observe(.endToEnd, .seconds(-3))
  }

  @Test(arguments: [
    "martlet_notifications_total{app=\"shop-ios\",push_type=\"alert\",status=\"delivered\"} 12",
    "martlet_notifications_total{app=\"unknown\",push_type=\"alert\",status=\"invalid\"} 0",
    // What ended first in a new way must show as an increase.
    "martlet_notifications_total{app=\"legacy\",push_type=\"voip\",status=\"failed\"} 3",
    "martlet_notifications_total{app=\"legacy\",push_type=\"voip\",status=\"delivered\"} 0",
    "martlet_send_to_answer_seconds_bucket{app=\"legacy\",le=\"0.05\"} 1",
    "martlet_send_to_answer_seconds_sum{app=\"legacy\"} 0.040000",
    "martlet_send_to_answer_seconds_count{app=\"legacy\"} 1",
    "martlet_max_in_flight_notifications{app=\"shop-ios\"} 5000",
    "martlet_app_available{app=\"shop-ios\"} 1",
    "martlet_app_available{app=\"legacy\"} 0",
    "martlet_provider_tokens_total{app=\"shop-ios\"} 1",
    "martlet_provider_token_issued_timestamp_seconds{app=\"shop-ios\"} 1790000000",
    "martlet_draining 1",
    "martlet_stuck_loops 1",
    "process_threads 9",
    "martlet_rejections_total{app=\"legacy\",reason=\"Unregistered\"} 2",
    "martlet_rejections_total{app=\"legacy\",reason=\"other\"} 1",
    "martlet_attempts_total{app=\"legacy\"} 0",
    // Below 0 only while a step is seen and its counterpart is not.
    "martlet_in_flight_notifications{app=\"shop-ios\"} 0",
    "martlet_requests_invalid_total{rule=\"BadToken\"} 5",
    "martlet_end_to_end_seconds_bucket{le=\"0.001\"} 1",
    "martlet_end_to_end_seconds_bucket{le=\"0.05\"} 2",
    "martlet_end_to_end_seconds_bucket{le=\"60.0\"} 2",
    "martlet_end_to_end_seconds_bucket{le=\"+Inf\"} 3",
    "martlet_end_to_end_seconds_sum 90.040000",
    "martlet_end_to_end_seconds_count 3",
    "martlet_consumer_lag_records{topic=\"push.requests\",partition=\"3\"} 42",
    "martlet_assigned_partitions 2",
    "martlet_paused_partitions 1",
    "martlet_configured_apps 2",
    "martlet_certificate_expiry_timestamp_seconds{app=\"legacy\"} 1800000000",
    "martlet_reload_failures_total 0",
    "martlet_build_info{version=\"1.2.3\",librdkafka=\"2.0.2\",nghttp2=\"1.52.0\",openssl=\"3.0.1\"} 1",
    "process_cpu_seconds_total 1.500000",
    "process_start_time_seconds 1790000000.250000",
  ])
  func showsTheNumber(line: String) {
    fill()
    #expect(lines().contains { $0 == line }, "\(text())")
  }

  @Test
  func seriesOfZeroReasonsAreLeftOut() {
    fill()
    #expect(!text().contains("reason=\"BadTopic\""))
    #expect(!text().contains("partition=\"4\""))
    #expect(!text().contains("push_type=\"mdm\""))
    #expect(!text().contains("martlet_send_to_answer_seconds_count{app=\"shop-ios\"}"))
    #expect(!text().contains("martlet_max_in_flight_notifications{app=\"legacy\"}"))
  }

  @Test
  func everyMetricIsIntroducedOnceAndItsLinesFollow() {
    fill()
    var introduced: [String] = []
    var current = ""
    for line in lines() {
      let words = line.split(separator: " ")
      if line.hasPrefix("# HELP") {
        current = String(words[2])
        introduced.append(current)
      } else if line.hasPrefix("# TYPE") {
        #expect(words[2] == current[...])
      } else {
        #expect(line.hasPrefix(current), "\(line) below \(current)")
      }
    }
    #expect(introduced == MetricCatalogue.all.map(\.name))
  }

  @Test
  func seriesAreBoundedWhateverComes() {
    registry.setApps(["a"], configured: 1)
    let shard = registry.makeShard()
    for index in 0..<1_000 { shard.add(.notifications(.invalid, .alert), app: AppIndex(Int32(index) + 70_000)) }
    #expect(
      lines().contains("martlet_notifications_total{app=\"unknown\",push_type=\"alert\",status=\"invalid\"} 1000"))
    #expect(lines().count < 400)
  }

  @Test
  func openMetricsNamesFamiliesAndUnitsAndEnds() {
    fill()
    let text = text(.openMetrics)
    for line in [
      "# TYPE martlet_notifications counter", "# UNIT martlet_notifications notifications",
      "martlet_notifications_total{app=\"shop-ios\",push_type=\"alert\",status=\"delivered\"} 12",
      "# TYPE martlet_build info", "# TYPE process_cpu_seconds counter", "# UNIT process_cpu_seconds seconds",
      "# UNIT martlet_in_flight_bytes bytes", "# UNIT martlet_end_to_end_seconds seconds",
    ] {
      #expect(text.split(separator: "\n").contains { $0 == line }, "\(line)")
    }
    #expect(text.hasSuffix("\n# EOF\n"))
    #expect(!text.contains("_created"))
  }

  @Test
  func bothFormatsHaveTheSameSamples() {
    fill()
    func samples(_ format: MetricsFormat) -> [Substring] {
      text(format).split(separator: "\n").filter { !$0.hasPrefix("#") }
    }
    #expect(samples(.prometheus) == samples(.openMetrics))
  }

  @Test(
    arguments: [
      (nil, .prometheus), ("", .prometheus), ("*/*", .prometheus), ("text/html,*/*;q=0.1", .prometheus),
      ("application/openmetrics-text", .openMetrics), ("application/openmetrics-text; version=1.0.0", .openMetrics),
      ("application/openmetrics-text;version=0.0.1", .prometheus),
      ("application/openmetrics-text;q=0,*/*", .prometheus),
      ("text/plain;version=0.0.4;q=0.9, application/openmetrics-text;q=0.5", .prometheus),
      // What Prometheus 2 and 3 send.
      (
        "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
          + "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", .openMetrics
      ),
      (
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
          + "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
          + "text/plain;version=0.0.4;q=0.3,*/*;q=0.2", .openMetrics
      ),
      ("application/openmetrics-text;q=zero,;;;=,q=,text/plain;q=9", .prometheus),
    ] as [(String?, MetricsFormat)])
  func theFormatIsTheOneThatIsAskedFor(accept: String?, format: MetricsFormat) {
    #expect(MetricsFormat(accept: accept) == format)
  }

  @Test
  func labelsAreEscaped() {
    #expect(String(decoding: PrometheusText.label("app", "a\"b\\c\nd"), as: UTF8.self) == "app=\"a\\\"b\\\\c\\nd\"")
  }

  @Test(.enabled(if: unsafe access("/usr/bin/promtool", X_OK) == 0))
  func promtoolAcceptsIt() throws {
    fill()
    let files = try TemporaryFiles()
    let path = try files.write("metrics.txt", text())
    guard let pipe = unsafe popen("/usr/bin/promtool check metrics < \(path) 2>&1", "r") else {
      Issue.record("promtool was not started")
      return
    }
    var output: [UInt8] = []
    while case let byte = unsafe fgetc(pipe), byte != EOF { output.append(UInt8(truncatingIfNeeded: byte)) }
    #expect(unsafe pclose(pipe) == 0)
    #expect(output.isEmpty, "\(String(decoding: output, as: UTF8.self))")
  }

  @Test
  func theProcessIsSampled() {
    let sample = ProcessSample.now(startTime: UnixTime(milliseconds: 1))
    #expect(sample.cpuNanoseconds > 0 && sample.residentBytes > 1_000_000 && sample.openDescriptors >= 3)
    #expect(sample.threads >= 1 && sample.mostDescriptors >= sample.openDescriptors)
  }
}
