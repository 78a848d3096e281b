package import Delivery
internal import Synchronization
package import Wire

/// A partition as the endpoint shows it.
package struct PartitionSample: Sendable {
  package var topic: String
  package var partition: Int32
  /// Records behind the committed offset; `nil` while that is not known.
  package var lag: Int64?
  package var isPaused: Bool

  package init(topic: String, partition: Int32, lag: Int64?, isPaused: Bool) {
    self.topic = topic
    self.partition = partition
    self.lag = lag
    self.isPaused = isPaused
  }
}

/// An app's certificate as the endpoint shows it.
package struct CertificateSample: Equatable, Sendable {
  package var app: String
  package var validUntil: UnixTime

  package init(app: String, validUntil: UnixTime) {
    self.app = app
    self.validUntil = validUntil
  }
}

/// The versions that `build_info` tells.
package struct BuildVersions: Sendable {
  package var martlet: String
  package var librdkafka: String
  package var nghttp2: String
  package var openssl: String

  package init(martlet: String, librdkafka: String, nghttp2: String, openssl: String) {
    self.martlet = martlet
    self.librdkafka = librdkafka
    self.nghttp2 = nghttp2
    self.openssl = openssl
  }
}

/// Where all numbers are kept. Threads that count ask once for a shard of their own and then never wait for another.
package final class Registry: Sendable {
  private struct State {
    var shards: [MetricShard] = []
    /// By app index; names stay when an app is removed, since its numbers do.
    var apps: [String] = []
    var configuredApps = 0
    var partitions: [PartitionSample] = []
    var certificates: [CertificateSample] = []
  }

  private let state = Mutex(State())
  package let versions: BuildVersions

  package init(versions: BuildVersions) { self.versions = versions }

  /// A shard for the calling thread's use alone. It lives as long as the registry.
  package func makeShard() -> MetricShard {
    let shard = MetricShard()
    state.withLock { $0.shards.append(shard) }
    return shard
  }

  /// Tells the names of all apps, in the order of their indices, removed ones included.
  ///
  /// - Parameter configured: how many of them the configuration holds now.
  package func setApps(_ names: [String], configured: Int) {
    state.withLock {
      $0.apps = names
      $0.configuredApps = configured
    }
  }

  /// Tells all partitions that are assigned now; series of others end with the next scrape.
  package func setPartitions(_ partitions: [PartitionSample]) {
    state.withLock { $0.partitions = partitions }
  }

  /// Tells the certificates of all apps that have one.
  package func setCertificates(_ certificates: [CertificateSample]) {
    state.withLock { $0.certificates = certificates }
  }

  /// The numbers of this moment, summed over all threads.
  package func snapshot() -> MetricSnapshot {
    // Taken out under the lock, summed outside it.
    let state = state.withLock { $0 }
    var snapshot = MetricSnapshot(
      apps: state.apps, configuredApps: state.configuredApps, partitions: state.partitions,
      certificates: state.certificates, versions: versions)
    for shard in state.shards {
      shard.addApps(to: &snapshot.appNumbers, rows: state.apps.count + 1)
      shard.addService(to: &snapshot.serviceNumbers)
    }
    return snapshot
  }
}

/// All numbers at one moment, as values.
package struct MetricSnapshot: Sendable {
  /// By app index.
  package var apps: [String]
  package var configuredApps: Int
  package var partitions: [PartitionSample]
  package var certificates: [CertificateSample]
  package var versions: BuildVersions
  /// Row after row, the first for unknown apps.
  var appNumbers: [UInt64]
  var serviceNumbers: [UInt64]

  init(
    apps: [String], configuredApps: Int, partitions: [PartitionSample], certificates: [CertificateSample] = [],
    versions: BuildVersions
  ) {
    self.apps = apps
    self.configuredApps = configuredApps
    self.partitions = partitions
    self.certificates = certificates
    self.versions = versions
    self.appNumbers = Array(repeating: 0, count: (apps.count + 1) * AppSeries.rowLength)
    self.serviceNumbers = Array(repeating: 0, count: ServiceSeries.rowLength)
  }

  /// A number of an app; `nil` stands for requests of no known app.
  package func value(_ series: AppSeries, app: AppIndex?) -> Int {
    let place = MetricShard.row(of: app) * AppSeries.rowLength + series.index
    return place < appNumbers.count ? Int(Int64(bitPattern: appNumbers[place])) : 0
  }

  /// A number of the service.
  package func value(_ series: ServiceSeries) -> Int { Int(Int64(bitPattern: serviceNumbers[series.index])) }

  /// How many spans were recorded.
  package func count(_ latency: Latency) -> Int {
    let first = ServiceSeries.histogram(latency)
    return serviceNumbers[first..<first + HistogramBuckets.count].reduce(0) { $0 + Int($1) }
  }
}
