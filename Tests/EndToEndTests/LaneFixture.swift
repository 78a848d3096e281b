import APNs
import MockAPNs
import TestSupport
import Transport
import Wire

@testable import Delivery
@testable import Service

/// One lane with one app, which sends to a look-alike of APNs.
final class LaneFixture: Sendable {
  struct Written: Sendable {
    var lines = ""
  }

  let server: MockServer
  let lane: Lane
  let registry: Registry
  let outcomes = Monitor<[LaneOutcome]>([])
  let log = Monitor(Written())

  init(
    _ configuration: MockServer.Configuration = MockServer.Configuration(), proxy: Proxy? = nil,
    limits: PoolLimits = PoolLimits(), pingTimeout: Duration = .seconds(120), requestTimeout: Duration = .seconds(120)
  ) throws {
    var configuration = configuration
    // Far beyond what a busy machine needs.
    var limits = limits
    limits.connectTimeout = .seconds(60)
    limits.pingTimeout = pingTimeout
    configuration.acceptsAnyKey = true
    configuration.journal.requests = 10_000
    server = try MockServer.start(configuration)
    registry = Registry(versions: BuildVersions(martlet: "", librdkafka: "", nghttp2: "", openssl: ""))
    registry.setApps(["shop"], configured: 1)
    let (outcomes, written) = (outcomes, log)
    lane = try Lane(
      index: LaneIndex(0), requestTimeout: requestTimeout, metrics: registry.makeShard(),
      log: Log(
        level: .debug,
        sink: { bytes in
          Planted.keep(log: bytes)
          written.update { $0.lines += String(decoding: bytes, as: UTF8.self) }
        }),
      deliver: { batch in
        let taken = batch
        batch.removeAll(keepingCapacity: true)
        outcomes.update { $0 += taken }
      })
    let key = try SigningKey.generate()
    Planted.note(pem: try key.privatePEM())
    let source = TokenSource(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", key: key)
    lane.install(
      AppRuntime(
        name: "shop", bundleID: "com.example.shop", endpoint: Endpoint(host: "localhost", port: server.port),
        proxy: proxy, authority: "localhost", tls: try TLSContext.client(trust: .pem(server.authorityPEM)),
        credentials: .token(source), limits: limits), at: AppIndex(0))
    // Submissions come in by another way, and may come first.
    let isInstalled = Monitor(false)
    lane.loop.execute { isInstalled.update { $0 = true } }
    _ = isInstalled.wait { $0 }
  }

  func stop() {
    lane.stop()
    server.stop()
  }

  /// So many pushes, in one batch; the slots are counted from `first`.
  func submit(
    _ count: Int, first: Int = 0, _ notification: (Int) -> Notification = { LaneFixture.notification($0) }
  ) {
    var batch = (first..<first + count).map { number in
      Submission(
        slot: PushSlot(index: UInt32(number), generation: 1), app: AppIndex(0), notification: notification(number))
    }
    lane.submit(&batch)
  }

  static func notification(_ number: Int, payload: String = Planted.payload) -> Notification {
    let token = Planted.token
    return Notification(
      storage: Array((token + payload).utf8), token: ByteRange(0, token.utf8.count),
      payload: ByteRange(token.utf8.count, token.utf8.count + payload.utf8.count),
      apnsID: UUID(high: 1, low: UInt64(number)))
  }

  static func broadcast(_ number: Int, channel: String) -> Notification {
    let payload = #"{"aps":{}}"#
    return Notification(
      storage: Array((channel + payload).utf8), token: .empty,
      payload: ByteRange(channel.utf8.count, channel.utf8.count + payload.utf8.count), pushType: .liveactivity,
      expiration: 0, channel: ByteRange(0, channel.utf8.count), apnsID: UUID(high: 1, low: UInt64(number)))
  }

  /// Connections that ended for this cause.
  func closed(_ cause: CloseCause) -> Int {
    // The first row is that of unknown apps.
    Int(registry.snapshot().appNumbers[AppSeries.rowLength + AppSeries.connectionsClosed(cause).index])
  }

  /// Statuses of answers, and how many had none, once so many outcomes are there.
  func results(_ count: Int) -> [Int: Int] {
    guard outcomes.wait(within: .seconds(60), until: { $0.count >= count }) else { return [:] }
    return outcomes.value.reduce(into: [:]) { counts, outcome in
      if case .answered(let response) = outcome.result {
        counts[Int(response.status), default: 0] += 1
      } else {
        counts[0, default: 0] += 1
      }
    }
  }
}
