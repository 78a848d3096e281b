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
        var token = ProviderToken(keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
        let now = Moment(instant: Instant(nanoseconds: Int64(number)), time: UnixTime(seconds: 1_790_000_000))
        try? token.sign(at: now) { try key.sign($0) }
        digest &+= token.current?.authorization.count ?? 0
      }
      return digest
    }
  }

  /// One scrape of all metrics, with `partitions` partitions and `apps` apps, each of which delivers, has retries,
  /// rejections, dead tokens, latencies and connections. The result counts the bytes.
  static func metrics(_ options: Options) -> (Int) -> Int {
    let names = (0..<options.apps).map { "app-\($0)" }
    let registry = filled(names, partitions: options.partitions)
    let now = Instant(nanoseconds: 1)
    let health = HealthState(
      now: now, loops: [HealthState.Loop(name: "lane-0", lastTurn: now)], isConfigured: true, hasJoinedGroup: true,
      isDraining: false, apps: names.map { HealthState.App(name: $0, fault: nil) })
    return { count in
      var bytes = 0
      for _ in 0..<count {
        let snapshot = registry.snapshot()
        bytes += PrometheusText.render(snapshot, health: health, process: nil, as: .prometheus).count
      }
      return bytes
    }
  }

  /// What delivery and two lanes have counted.
  private static func filled(_ names: [String], partitions: Int) -> Registry {
    let registry = Registry(
      versions: BuildVersions(martlet: "0", librdkafka: "0", nghttp2: "0", openssl: "0"))
    registry.setApps(names, configured: names.count, caps: names.map { _ in 5_000 })
    for _ in 0..<3 {
      let shard = registry.makeShard()
      for number in names.indices {
        let app = AppIndex(Int32(number))
        for type in [PushType.alert, .background] { shard.add(.notifications(.delivered, type), app: app, 1 + number) }
        for series in [
          AppSeries.attempts, .inFlight, .resent, .deferred, .undeferred, .openStreams, .connectionsOpened, .goAways,
          .rejections(.unregistered), .rejections(.badDeviceToken), .retries(.throttled), .retries(.serverError),
          .retries(.lost), .invalidTokens(.unregistered), .connections(.open), .connectionsClosed(.goAway),
        ] {
          shard.add(series, app: app, 3)
        }
        for span in [3, 40, 900] { shard.observe(.sendToAnswer, app: app, .milliseconds(Int64(span))) }
      }
    }
    let token = TokenGauge()
    token.note(issuedAt: UnixTime(seconds: 1_790_000_000))
    registry.setCredentials(names.map { CredentialSample(app: $0, token: token) })
    registry.setPartitions(
      (0..<partitions).map {
        PartitionSample(topic: "push.requests", partition: Int32($0), lag: 17, isPaused: false)
      })
    return registry
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
