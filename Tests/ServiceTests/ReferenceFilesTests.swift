import Testing
import Wire

@testable import Service

struct ReferenceFilesTests {
  /// A file of the repository, from the place of this one.
  private func committed(_ path: String) throws -> String {
    let parts = #filePath.split(separator: "/").dropLast(3)
    let root = "/" + parts.joined(separator: "/")
    return String(decoding: try FileProbe.read("\(root)/\(path)", atMost: 1_048_576), as: UTF8.self)
  }

  @Test
  func theCommittedReferenceOfSettingsIsUpToDate() throws {
    #expect(
      try committed("docs/settings.md") == SettingsReference.markdown(),
      "make it anew: martlet reference settings > docs/settings.md")
  }

  @Test
  func theCommittedReferenceOfMetricsIsUpToDate() throws {
    #expect(
      try committed("docs/metrics.md") == MetricsReference.markdown(),
      "make it anew: martlet reference metrics > docs/metrics.md")
  }

  @Test
  func everyMetricHasOneRow() {
    let names = MetricsReference.rows.map(\.metric.name)
    #expect(Set(names) == Set(MetricCatalogue.all.map(\.name)))
    #expect(names.count == MetricCatalogue.all.count)
    for metric in MetricCatalogue.all { #expect(MetricsReference.markdown().contains(metric.help), "\(metric.name)") }
  }

  @Test
  func theNumberOfSeriesIsNotExceeded() throws {
    // Every number of three apps, two partitions and the process is above 0.
    let registry = Registry(versions: BuildVersions(martlet: "1", librdkafka: "2", nghttp2: "3", openssl: "4"))
    registry.setApps(["a", "b", "c"], configured: 3, caps: [1, 2, 3])
    registry.setPartitions([
      PartitionSample(topic: "t", partition: 0, lag: 1, isPaused: false),
      PartitionSample(topic: "t", partition: 1, lag: 1, isPaused: true),
    ])
    let token = TokenGauge()
    token.note(issuedAt: UnixTime(seconds: 1_790_000_000))
    registry.setCredentials(
      ["a", "b", "c"].map {
        CredentialSample(app: $0, validUntil: UnixTime(seconds: 1_800_000_000), token: token)
      })
    let health = HealthState(
      now: Instant(nanoseconds: 0), loops: [], isConfigured: true, hasJoinedGroup: true, isDraining: false,
      apps: ["a", "b", "c"].map { HealthState.App(name: $0, fault: nil) })
    var snapshot = registry.snapshot()
    for index in snapshot.appNumbers.indices { snapshot.appNumbers[index] = 1 }
    for index in snapshot.serviceNumbers.indices { snapshot.serviceNumbers[index] = 1 }
    let process = ProcessSample.now(startTime: UnixTime(seconds: 1))
    for format in MetricsFormat.allCases {
      let text = String(
        decoding: PrometheusText.render(snapshot, health: health, process: process, as: format), as: UTF8.self)
      let series = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
      // Of requests that name no known app there are no facts.
      let facts = MetricCatalogue.appFacts.count
      #expect(series.count == MetricsReference.appSeries * 4 - facts + 2 + MetricsReference.fixedSeries)
    }
  }
}
