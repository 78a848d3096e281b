import Glibc
import Simulation
import Synchronization

// Plays simulated runs and says what became of them:
//
//   simulate [--runs N | --minutes N | --seeds A..B] [--jobs N] [--verbose] [--first-failure]
//
// MARTLET_SIM_SEED plays that one run and tells its story; MARTLET_SIM_WITHOUT names faults that it must do without.

func environment(_ name: String) -> String? { unsafe getenv(name).map { unsafe String(cString: $0) } }

func playOne(_ seed: UInt64) -> Int32 {
  let without = Set(
    (environment("MARTLET_SIM_WITHOUT") ?? "").split(separator: ",").compactMap { Fault(rawValue: String($0)) })
  let report = Simulation.run(seed: seed, without: without, keepsStory: true)
  for line in report.story { print(line) }
  print(report.violation.map { "seed \(seed): \($0)" } ?? "seed \(seed): every promise was kept")
  return report.violation == nil ? 0 : 1
}

func usage() -> Never {
  print("usage: simulate [--runs N | --minutes N | --seeds A..B] [--jobs N] [--verbose] [--first-failure]")
  exit(64)
}

struct Options: Sendable {
  var seeds: Range<UInt64>
  var limit: Duration = .seconds(60)
  var jobs = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
  var isVerbose = false
  var stopsEarly = false

  init(_ arguments: some Sequence<String>) {
    // Seeds that nobody has seen, and so few digits that they can be typed.
    let first = UInt64.random(in: 0..<1 << 40)
    seeds = first..<UInt64.max
    var rest = Array(arguments)[...]
    while let option = rest.popFirst() {
      switch option {
      case "--verbose": isVerbose = true
      case "--first-failure": stopsEarly = true
      case "--jobs":
        guard let number = rest.popFirst().flatMap({ Int($0) }), number > 0 else { usage() }
        jobs = number
      case "--minutes":
        guard let minutes = rest.popFirst().flatMap({ Double($0) }) else { usage() }
        limit = .milliseconds(Int(minutes * 60_000))
      case "--runs":
        guard let runs = rest.popFirst().flatMap({ UInt64($0) }), runs > 0, runs < 1 << 40 else { usage() }
        bound(to: first..<first + runs)
      case "--seeds":
        guard let bounds = rest.popFirst()?.split(separator: "."), bounds.count == 2, let low = UInt64(bounds[0]),
          let high = UInt64(bounds[1]), low < high
        else { usage() }
        bound(to: low..<high)
      default: usage()
      }
    }
  }

  private mutating func bound(to seeds: Range<UInt64>) {
    self.seeds = seeds
    limit = .seconds(1 << 30)
  }
}

/// Set by an interrupt: the runs that are being played end, and what became of them so far is told.
let isStopping = Atomic(false)

/// Plays runs on several cores; each takes the next seed. Says on standard error how far it is.
final class Players: Sendable {
  private let options: Options
  private let next: Atomic<UInt64>
  private let totals = Mutex(Totals())
  private let clock = ContinuousClock()
  private let start: ContinuousClock.Instant

  init(_ options: Options) {
    self.options = options
    next = Atomic(options.seeds.lowerBound)
    start = clock.now
  }

  func play() async -> Int32 {
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<options.jobs { group.addTask { self.playOn() } }
    }
    let result = totals.withLock { $0 }
    result.tell(after: clock.now - start, jobs: options.jobs)
    return result.failed == 0 ? 0 : 1
  }

  private func playOn() {
    while !isStopping.load(ordering: .relaxed), clock.now - start < options.limit,
      totals.withLock({ $0.failed }) < (options.stopsEarly ? 1 : 5)
    {
      let seed = next.wrappingAdd(1, ordering: .relaxed).oldValue
      guard options.seeds.contains(seed) else { return }
      if options.isVerbose { print("seed \(seed)") }
      let report = Simulation.run(seed: seed)
      let runs = totals.withLock { totals in
        totals.add(report)
        return totals.runs
      }
      if runs.isMultiple(of: 1000) {
        let line = Array("\(runs) runs\n".utf8)
        _ = unsafe write(STDERR_FILENO, line, line.count)
      }
      if let violation = report.violation {
        print(options.stopsEarly ? "seed \(seed): \(violation)" : Simulation.explain(report))
      }
      fflush(nil)
    }
  }
}

if let seed = environment("MARTLET_SIM_SEED").flatMap({ UInt64($0) }) {
  exit(playOne(seed))
} else {
  signal(SIGINT) { _ in isStopping.store(true, ordering: .relaxed) }
  exit(await Players(Options(CommandLine.arguments.dropFirst())).play())
}
