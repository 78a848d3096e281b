import Glibc
import Synchronization
import Transport
import Wire

/// Puts the endpoint's answers on a socket, and keeps what the status page shows over time.
///
/// All of it happens on the endpoint's loop, so that nothing that is asked here can make delivery wait. Metrics and status
/// that took long to make are given again for a while: however often they are asked for, making them takes no more than
/// a fifth of one core. All other answers are small.
final class EndpointShell: Sendable {
  private enum Page: Hashable {
    case metrics(MetricsFormat)
    case status
  }

  private struct Kept {
    var answer: EndpointAnswer
    var until: Instant
  }

  private struct State {
    var history = StatusHistory()
    var kept: [Page: Kept] = [:]
  }

  private let registry: Registry
  private let health: HealthBoard
  private let problems: ProblemBook
  private let startTime = ServiceClock.now().time
  /// Touched on the endpoint's loop alone; the lock is for the compiler, and nobody waits for it.
  private let state = Mutex(State())

  init(registry: Registry, health: HealthBoard, problems: ProblemBook) {
    self.registry = registry
    self.health = health
    self.problems = problems
  }

  func listen(_ settings: HTTPSettings, on loop: EventLoop) throws(TransportError) -> HTTP1Responder {
    let switches = EndpointSwitches(statusPage: settings.statusPage, healthDetails: settings.healthDetails)
    let endpoint =
      settings.listen.path.map { Endpoint(unixPath: $0) }
      ?? Endpoint(host: settings.listen.host, port: settings.listen.port)
    let responder = try HTTP1Responder.listen(on: loop, at: endpoint) { request in
      let routes = EndpointRoutes(
        switches, metrics: { format in self.keeping(.metrics(format)) { self.metrics(format) } },
        health: { self.health.snapshot(at: ServiceClock.now().instant) },
        status: { self.keeping(.status) { self.status() } })
      let answer = routes.answer(
        EndpointRequest(request.path, method: request.method.rawValue, accept: request.header("accept")))
      return HTTP1Response(
        status: UInt16(clamping: answer.status), contentType: answer.contentType,
        headers: answer.headers.map { ($0.name, $0.value) }, body: Bytes(answer.body))
    }
    if settings.statusPage { loop.execute { self.sample(on: loop) } }
    return responder
  }

  // MARK: Answers

  private func metrics(_ format: MetricsFormat) -> EndpointAnswer {
    MetricsAnswer.answer(
      registry.snapshot(), health: health.snapshot(at: ServiceClock.now().instant),
      process: ProcessSample.now(startTime: startTime), as: format)
  }

  private func status() -> EndpointAnswer {
    let moment = ServiceClock.now()
    let document = StatusDocument(
      snapshot: registry.snapshot(), health: health.snapshot(at: moment.instant),
      process: ProcessSample.now(startTime: startTime), history: state.withLock { $0.history },
      problems: problems.recent(), host: Self.host, time: moment.time)
    return .json(200, document.json())
  }

  /// The answer that is at hand, or a new one.
  private func keeping(_ page: Page, _ make: () -> EndpointAnswer) -> EndpointAnswer {
    let start = ServiceClock.now().instant
    if let kept = state.withLock({ $0.kept[page] }), start < kept.until { return kept.answer }
    let answer = make()
    let end = ServiceClock.now().instant
    state.withLock { $0.kept[page] = Kept(answer: answer, until: end + (end - start) * 4) }
    return answer
  }

  // MARK: Over time

  private func sample(on loop: EventLoop) {
    let snapshot = registry.snapshot()
    let processor = ProcessSample.now(startTime: startTime).cpuNanoseconds
    state.withLock { $0.history.sample(snapshot, processor: .nanoseconds(processor), at: loop.now) }
    _ = loop.schedule(at: loop.now + StatusHistory.step) { self.sample(on: loop) }
  }

  /// The machine's name: in Kubernetes, the pod's.
  private static let host: String = {
    var name = [CChar](repeating: 0, count: 256)
    guard unsafe gethostname(&name, name.count - 1) == 0 else { return "this machine" }
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }()
}
