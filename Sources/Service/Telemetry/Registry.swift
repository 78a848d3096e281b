internal import APNs
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

/// An app's credentials as the endpoint shows them: a certificate, or the provider tokens of a key.
package struct CredentialSample: Sendable {
  package var app: String
  package var validUntil: UnixTime?
  package var token: TokenGauge?

  package init(app: String, validUntil: UnixTime? = nil, token: TokenGauge? = nil) {
    self.app = app
    self.validUntil = validUntil
    self.token = token
  }
}

/// What the endpoint shows of a key's provider tokens. Any thread, and nobody waits for anybody.
package final class TokenGauge: Sendable {
  private let signed = Atomic<Int>(0)
  /// Milliseconds since 1970; 0 while there is no token.
  private let issued = Atomic<Int64>(0)

  package init() {}

  /// A token was signed.
  package func note(issuedAt time: UnixTime) {
    issued.store(time.milliseconds, ordering: .relaxed)
    signed.add(1, ordering: .relaxed)
  }

  /// Tokens signed so far.
  package var count: Int { signed.load(ordering: .relaxed) }

  /// When the one in use was signed.
  package var issuedAt: UnixTime? {
    let time = issued.load(ordering: .relaxed)
    return time == 0 ? nil : UnixTime(milliseconds: time)
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
    var caps: [Int?] = []
    var configuredApps = 0
    var partitions: [PartitionSample] = []
    var credentials: [CredentialSample] = []
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
  /// - Parameters:
  ///   - names: by index; a name that is gone keeps its place.
  ///   - configured: how many of them the configuration holds now.
  ///   - caps: how many notifications of each may be in flight; `nil` for removed ones.
  package func setApps(_ names: [String], configured: Int, caps: [Int?] = []) {
    state.withLock {
      $0.apps = names
      $0.configuredApps = configured
      $0.caps = caps
    }
  }

  /// Tells all partitions that are assigned now; series of others end with the next scrape.
  package func setPartitions(_ partitions: [PartitionSample]) {
    state.withLock { $0.partitions = partitions }
  }

  /// Tells the credentials of all apps that can use theirs.
  package func setCredentials(_ credentials: [CredentialSample]) {
    state.withLock { $0.credentials = credentials }
  }

  /// The numbers of this moment, summed over all threads.
  package func snapshot() -> MetricSnapshot {
    // Taken out under the lock, summed outside it.
    let state = state.withLock { $0 }
    var snapshot = MetricSnapshot(
      apps: state.apps, caps: state.caps, configuredApps: state.configuredApps, partitions: state.partitions,
      credentials: state.credentials, versions: versions)
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
  package var caps: [Int?]
  package var configuredApps: Int
  package var partitions: [PartitionSample]
  package var credentials: [CredentialSample]
  package var versions: BuildVersions
  /// Row after row, the first for unknown apps.
  var appNumbers: [UInt64]
  var serviceNumbers: [UInt64]

  init(
    apps: [String], caps: [Int?], configuredApps: Int, partitions: [PartitionSample],
    credentials: [CredentialSample], versions: BuildVersions
  ) {
    self.apps = apps
    self.caps = caps
    self.configuredApps = configuredApps
    self.partitions = partitions
    self.credentials = credentials
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

  /// The spans that were recorded, by bucket.
  package func buckets(_ latency: Latency) -> [UInt64] {
    let first = ServiceSeries.histogram(latency).index
    return Array(serviceNumbers[first..<first + HistogramBuckets.count])
  }

  /// The same of an app.
  package func buckets(_ latency: AppLatency, app: AppIndex?) -> [UInt64] {
    let first = MetricShard.row(of: app) * AppSeries.rowLength + AppSeries.histogram(latency).index
    guard first + HistogramBuckets.count <= appNumbers.count else { return [] }
    return Array(appNumbers[first..<first + HistogramBuckets.count])
  }

  /// Notifications of an app that ended with a status, of all push types.
  package func ended(_ status: Ending.Status, app: AppIndex?) -> Int {
    PushType.allCases.reduce(0) { $0 + value(.notifications(status, $1), app: app) }
  }
}
