import APNs
import Delivery
import Service
import Transport
import Wire

/// Pieces of work that do not come once for each notification, or are a small part of it.
enum SmallWork {
  /// A provider token, text and signature.
  static func token(_ options: Options) -> (Int) -> Int {
    guard let key = try? SigningKey.generate() else { return { _ in 0 } }
    return { count in
      var digest = 0
      for number in 0..<count {
        var token = ProviderToken(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", key: 1)
        let now = Moment(instant: Instant(nanoseconds: Int64(number)), time: UnixTime(seconds: 1_790_000_000))
        try? token.sign(at: now) { try key.sign($0) }
        digest &+= token.current?.authorization.count ?? 0
      }
      return digest
    }
  }

  /// One scrape of all metrics, with `apps` apps that all have numbers and `partitions` partitions.
  static func metrics(_ options: Options) -> (Int) -> Int {
    let registry = Registry(
      versions: BuildVersions(martlet: "0", librdkafka: "0", nghttp2: "0", openssl: "0"))
    registry.setApps((0..<options.apps).map { "app-\($0)" }, configured: options.apps)
    for _ in 0..<3 {
      let shard = registry.makeShard()
      for app in 0..<options.apps {
        shard.add(.notifications(.delivered, .alert), app: AppIndex(Int32(app)), 1 + app)
        shard.add(.attempts, app: AppIndex(Int32(app)), 1 + app)
      }
    }
    registry.setPartitions(
      (0..<options.partitions).map {
        PartitionSample(topic: "push.requests", partition: Int32($0), lag: 17, isPaused: false)
      })
    return { count in
      var digest = 0
      for _ in 0..<count {
        let snapshot = registry.snapshot()
        digest &+= PrometheusText.render(snapshot, health: nil, process: nil, as: .prometheus).count
      }
      return digest
    }
  }

  /// The header fields of a request that differ from one to the next.
  static func headers(_ options: Options) -> (Int) -> Int {
    let token = Array(String(repeating: "ab12", count: 16).utf8)
    let notification = Notification(
      storage: token, token: ByteRange(0, token.count), payload: .empty, expiration: 1_800_000_000,
      apnsID: UUID(high: 0x0f8f_ad5b_d9cb_469f, low: 0xa165_7086_7728_950e))
    return { count in
      var list = HeaderWriter()
      var names = SentNames()
      for _ in 0..<count {
        list.list.removeAll()
        RequestHeaders.addPath(notification, to: &list)
        RequestHeaders.addOwn(notification, sentNames: &names, to: &list)
      }
      return list.list.listSize &* count
    }
  }
}
