import APNs
import Delivery
import Testing
import Wire

@testable import Service

extension BuildVersions {
  static let test = BuildVersions(martlet: "1.2.3", librdkafka: "2.0.2", nghttp2: "1.52.0", openssl: "3.0.1")
}

struct RegistryTests {
  private let registry = Registry(versions: .test)

  @Test
  func numbersOfAllShardsAreSummed() {
    registry.setApps(["a", "b"], configured: 2)
    let first = registry.makeShard()
    let second = registry.makeShard()
    first.add(.attempts, app: AppIndex(0), 3)
    second.add(.attempts, app: AppIndex(0), 4)
    second.add(.attempts, app: AppIndex(1))
    first.add(.notifications(.invalid, .alert), app: nil, 2)
    first.add(.commits)
    let snapshot = registry.snapshot()
    #expect(snapshot.value(.attempts, app: AppIndex(0)) == 7)
    #expect(snapshot.value(.attempts, app: AppIndex(1)) == 1)
    #expect(snapshot.value(.notifications(.invalid, .alert), app: nil) == 2)
    #expect(snapshot.value(.commits) == 1)
  }

  @Test
  func appsMayBeAddedWhileCounting() {
    let shard = registry.makeShard()
    registry.setApps(["a"], configured: 1)
    shard.add(.attempts, app: AppIndex(0))
    shard.add(.attempts, app: AppIndex(5_000), 2)
    registry.setApps((0...5_000).map { "app\($0)" }, configured: 5_001)
    let snapshot = registry.snapshot()
    #expect(snapshot.value(.attempts, app: AppIndex(0)) == 1)
    #expect(snapshot.value(.attempts, app: AppIndex(5_000)) == 2)
  }

  @Test
  func indicesOutOfBoundsCountAsUnknown() {
    registry.setApps(["a"], configured: 1)
    let shard = registry.makeShard()
    shard.add(.attempts, app: AppIndex(-1))
    shard.add(.attempts, app: AppIndex(.max))
    #expect(registry.snapshot().value(.attempts, app: nil) == 2)
  }

  @Test
  func gaugesGoUpAndDown() {
    registry.setApps(["a"], configured: 1)
    let taking = registry.makeShard()
    let settling = registry.makeShard()
    taking.add(.inFlight, app: AppIndex(0), 10)
    settling.add(.inFlight, app: AppIndex(0), -7)
    #expect(registry.snapshot().value(.inFlight, app: AppIndex(0)) == 3)
  }

  @Test
  func nothingIsLostBetweenThreads() async {
    registry.setApps((0..<64).map { "app\($0)" }, configured: 64)
    let rounds = 2_000
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        let shard = registry.makeShard()
        group.addTask {
          for round in 0..<rounds {
            shard.add(.notifications(.delivered, .alert), app: AppIndex(Int32(round % 64)))
            shard.add(.recordsConsumed)
            shard.observe(.sendToAnswer, app: AppIndex(Int32(round % 64)), .milliseconds(3))
            shard.observe(.endToEnd, .milliseconds(3))
          }
        }
      }
      group.addTask {
        // Scrapes in between must never see a number fall.
        var last = 0
        for _ in 0..<50 {
          let count = registry.snapshot().value(.recordsConsumed)
          #expect(count >= last)
          last = count
        }
      }
    }
    let snapshot = registry.snapshot()
    let delivered = (0..<64).reduce(0) { $0 + snapshot.value(.notifications(.delivered, .alert), app: AppIndex($1)) }
    #expect(delivered == 4 * rounds)
    #expect(snapshot.value(.recordsConsumed) == 4 * rounds)
    #expect(snapshot.buckets(.endToEnd).reduce(0, +) == UInt64(4 * rounds))
    let answers = (0..<64).reduce(0) { $0 + snapshot.buckets(.sendToAnswer, app: AppIndex($1)).reduce(0, +) }
    #expect(answers == UInt64(4 * rounds))
  }

  @Test
  func aSumDoesNotOverflow() {
    let shard = registry.makeShard()
    // What a record's time in seconds, taken for milliseconds, makes of its age.
    for _ in 0..<100 { shard.observe(.endToEnd, .seconds(1_780_000_000)) }
    let text = String(
      decoding: PrometheusText.render(registry.snapshot(), health: nil, process: nil, as: .prometheus), as: UTF8.self)
    #expect(text.contains("martlet_end_to_end_seconds_sum 8640000\n"))
    #expect(text.contains("martlet_end_to_end_seconds_count 100\n"))
  }

  @Test
  func bucketsFollowTheirBounds() {
    for (index, bound) in HistogramBuckets.bounds.enumerated() {
      #expect(HistogramBuckets.index(nanoseconds: bound) == index)
      #expect(HistogramBuckets.index(nanoseconds: bound + 1) == index + 1)
    }
    #expect(HistogramBuckets.index(nanoseconds: .max) == HistogramBuckets.count - 1)
    #expect(HistogramBuckets.labels.count == HistogramBuckets.count)
    for (bound, label) in zip(HistogramBuckets.bounds, HistogramBuckets.labels) {
      #expect(Double(label) == Double(bound) / 1e9)
    }
  }
}

struct MetricCatalogueTests {
  @Test
  func namesFollowPrometheusRules() {
    for metric in MetricCatalogue.all {
      #expect(metric.name.hasPrefix("martlet_") || metric.name.hasPrefix("process_"), "\(metric.name)")
      #expect(metric.name.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F })
      #expect(metric.name.hasSuffix("_total") == (metric.kind == .counter), "\(metric.name)")
      #expect(metric.help.hasSuffix("."), "\(metric.name)")
      #expect(!metric.name.contains("milli") && !metric.name.contains("_ms"), "\(metric.name)")
      if metric.kind == .histogram { #expect(metric.name.hasSuffix("_seconds")) }
      #expect(!metric.labels.contains { ["token", "id", "apns_id", "le"].contains($0) })
    }
    let names = MetricCatalogue.all.map(\.name)
    #expect(Set(names).count == names.count)
  }

  @Test
  func placesDoNotOverlap() {
    for (families, length) in [
      (MetricCatalogue.apps, AppSeries.rowLength), (MetricCatalogue.service, ServiceSeries.rowLength),
    ] {
      var taken: Set<Int> = []
      for family in families {
        for place in family.first..<family.first + family.count {
          #expect(taken.insert(place).inserted, "\(family.metric.name)")
          #expect(place < length)
        }
      }
    }
  }

  @Test
  func labelsStandWhereTheirNumbersAre() {
    func label(_ families: [MetricFamily], _ name: String, _ place: Int) -> [String]? {
      guard let family = families.first(where: { $0.metric.name == "martlet_\(name)" }) else { return nil }
      return family.values[place - family.first]
    }
    for status in Ending.Status.allCases {
      for type in PushType.allCases {
        #expect(
          label(MetricCatalogue.apps, "notifications_total", AppSeries.notifications(status, type).index)
            == [type.name, status.rawValue])
      }
    }
    for cause in RetryPolicy.Cause.allCases {
      #expect(label(MetricCatalogue.apps, "retries_total", AppSeries.retries(cause).index) == [cause.rawValue])
      #expect(label(MetricCatalogue.apps, "failures_total", AppSeries.failures(cause).index) == [cause.rawValue])
    }
    for rule in InvalidRule.allCases {
      #expect(
        label(MetricCatalogue.service, "requests_invalid_total", ServiceSeries.invalid(rule).index) == [rule.rawValue])
    }
    for topic in OutputTopic.allCases {
      #expect(
        label(MetricCatalogue.service, "publications_total", ServiceSeries.publications(topic).index) == [topic.label])
    }
    #expect(
      label(MetricCatalogue.apps, "rejections_total", AppSeries.rejections(.badCollapseID).index) == ["BadCollapseId"])
    #expect(
      label(MetricCatalogue.apps, "rejections_total", AppSeries.rejections(.unregistered).index) == ["Unregistered"])
    #expect(label(MetricCatalogue.apps, "rejections_total", AppSeries.rejections(.unknown).index) == ["other"])
  }

  @Test
  func unitsAreNamedWhereTheyShould() {
    for metric in MetricCatalogue.all {
      for unit in ["seconds", "bytes"] where metric.name.contains("_\(unit)") {
        #expect(metric.unit.rawValue == unit && metric.namedUnit == unit, "\(metric.name)")
      }
      if metric.unit == .seconds || metric.unit == .bytes { #expect(metric.namedUnit != nil, "\(metric.name)") }
    }
  }
}
