import APNs
import Delivery
import Testing
import Wire

@testable import Kafka
@testable import Service

/// What the pipeline's events make of metrics and health.
struct PipelineObserverTests {
  private let registry = Registry(versions: .test)
  private let health = HealthBoard()
  private let lines = LogLines()

  private func observer() -> PipelineObserver {
    let apps = AppTable([AppRules(name: "shop", bundleID: "com.example.shop", environment: .production)])
    health.setApps([.init(name: "shop", fault: nil)])
    return PipelineObserver(
      metrics: registry.makeShard(), registry: registry, log: Log(sink: lines.take), health: health, topics: ["r"],
      apps: apps, maxInFlightPerApp: 10)
  }

  private func faults() -> [String?] { health.snapshot(at: Instant(nanoseconds: 0)).apps.map(\.fault) }

  @Test func aTopicIsBlockedOnceHoweverOftenThatIsTold() {
    let observer = observer()
    func blocked() -> Int { registry.snapshot().value(.outputBlocked(.results)) }
    // Stalled first, and then the broker says why.
    observer.note(OutputHealth.Change(topic: .results, fault: .stalled(.seconds(15))))
    observer.note(OutputHealth.Change(topic: .results, fault: .refused("no such topic")))
    #expect(blocked() == 1)
    observer.note(OutputHealth.Change(topic: .results, fault: nil))
    #expect(blocked() == 0)
  }

  @Test func whatIsKnownOfAnAppsCredentialsIsNotReplacedByLess() {
    let observer = observer()
    health.setFault("apps[0].token.keyFile: no such file", ofApp: "shop")
    observer.note(.breaker(AppIndex(0), .opened(until: Instant(nanoseconds: 0)), .notSent(.credentials)))
    #expect(faults() == ["apps[0].token.keyFile: no such file"])
    observer.note(.breaker(AppIndex(0), .closed, .answered(Response(status: 200))))
    #expect(faults() == [nil])
    observer.note(.breaker(AppIndex(0), .opened(until: Instant(nanoseconds: 0)), .notSent(.credentials)))
    #expect(faults() == ["the app's key or certificate cannot be used; it is tried again"])
    observer.note(.breaker(AppIndex(0), .opened(until: Instant(nanoseconds: 0)), .notSent(.tls)))
    #expect(faults() == ["the TLS handshake with APNs fails; it is tried again"])
  }
}
