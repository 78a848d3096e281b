import Kafka
import Service
import Synchronization
import Transport
import Wire

/// Runs the demo on a loop of its own: produces, reads the results, shows how it goes, and knows when it is done.
///
/// `@unchecked Sendable` holds because all state is touched on the loop alone, once `init` has returned.
final class DemoDriver: @unchecked Sendable {
  private static let tick: Duration = .milliseconds(10)
  /// Without a new result for so long the demo gives up and says what is missing.
  private static let patience: Duration = .seconds(60)

  private let loop: EventLoop
  private let duration: Duration
  private let registry: Registry
  private let view: DemoView
  private var traffic: DemoTraffic
  private var auditor: DemoAuditor
  private var books = DemoBooks()
  private let began: Instant
  private var producedFor: Duration?
  private var lastProgress: Instant
  private var lastView: Instant
  private var continuation: CheckedContinuation<DemoBooks, Never>?

  init(_ options: DemoOptions, world: DemoWorld, registry: Registry, view: DemoView) throws {
    duration = options.duration
    self.registry = registry
    self.view = view
    let ignored: LogSink = { _ in }
    traffic = try DemoTraffic(options, world: world, log: ignored)
    auditor = try DemoAuditor(world: world, log: ignored)
    loop = try EventLoop.start(name: "demo")
    began = ServiceClock.now().instant
    lastProgress = began
    lastView = began
  }

  /// Ends the production early; from any thread.
  func stopProducing() {
    loop.execute { [self] in if producedFor == nil { producedFor = loop.now - began } }
  }

  /// Runs the demo to its end.
  func finished() async -> DemoBooks {
    let books = await withCheckedContinuation { continuation in
      loop.execute { [self] in
        self.continuation = continuation
        step()
      }
    }
    loop.stop()
    return books
  }

  private func step() {
    let now = loop.now
    if producedFor == nil, now - began >= duration { producedFor = duration }
    if producedFor == nil {
      do {
        try traffic.produce(after: now - began, answered: books.answered, now: loop.moment.time)
      } catch {
        Console.error("martlet demo: \(error)")
        producedFor = now - began
      }
    }
    let isStored = traffic.takeReports()
    let before = books.answered
    auditor.read(into: &books)
    books.produced = traffic.produced - traffic.refused
    if books.answered > before { lastProgress = now }
    let isDone = producedFor != nil && isStored && books.unaccounted == 0
    if now - lastView >= view.period || isDone {
      lastView = now
      books.seconds = Double((now - began).nanoseconds) / 1e9
      view.show(books, registry.snapshot())
    }
    if isDone || (producedFor != nil && now - lastProgress > Self.patience) {
      continuation?.resume(returning: books)
      continuation = nil
    } else {
      _ = loop.schedule(at: now + Self.tick) { [self] in step() }
    }
  }
}
