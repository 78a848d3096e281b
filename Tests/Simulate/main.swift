import Glibc
import Simulation

// Plays simulated runs and says what became of them:
//
//   simulate [--minutes N | --seeds A..B] [--verbose] [--first-failure]
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

struct Totals {
  var runs = 0
  var failed = 0
  var requests = 0
  var events = 0
  var virtual: Duration = .zero
  var longestRecovery: Duration = .zero
  var longestWait: Duration = .zero
  var covered: [Fault: Int] = [:]

  mutating func add(_ report: Simulation.Report) {
    runs += 1
    requests += report.requests
    events += report.events
    virtual += report.virtualTime
    longestRecovery = max(longestRecovery, report.recovery)
    longestWait = max(longestWait, report.healthyWait ?? .zero)
    for (fault, count) in report.covered { covered[fault, default: 0] += count }
    if report.violation != nil { failed += 1 }
  }

  func tell(after elapsed: Duration) {
    print(
      "\(runs) runs in \(elapsed): \(failed) failed; \(requests) notifications, \(events) events, \(virtual) of virtual time"
    )
    print("longest recovery after the last fault: \(longestRecovery); longest wait of a healthy app: \(longestWait)")
    let faults = Fault.allCases.map { "\($0.rawValue) \(covered[$0] ?? 0)" }.joined(separator: ", ")
    print("faults: \(faults)")
  }
}

func usage() -> Never {
  print("usage: simulate [--minutes N | --seeds A..B] [--verbose] [--first-failure]")
  exit(64)
}

func playMany(_ arguments: [String]) -> Int32 {
  var seeds: Range<UInt64> = 0..<UInt64.max
  var first = UInt64.random(in: 0..<1 << 40)
  var limit: Duration = .seconds(60)
  var isVerbose = false
  var stopsEarly = false
  var rest = arguments[...]
  while let option = rest.popFirst() {
    switch option {
    case "--verbose": isVerbose = true
    case "--first-failure": stopsEarly = true
    case "--minutes":
      guard let minutes = rest.popFirst().flatMap({ Double($0) }) else { usage() }
      limit = .milliseconds(Int(minutes * 60_000))
    case "--seeds":
      guard let bounds = rest.popFirst()?.split(separator: "."), bounds.count == 2, let low = UInt64(bounds[0]),
        let high = UInt64(bounds[1]), low < high
      else { usage() }
      seeds = low..<high
      first = low
      limit = .seconds(1 << 30)
    default: usage()
    }
  }
  let clock = ContinuousClock()
  let start = clock.now
  var totals = Totals()
  var seed = first
  while seeds.contains(seed), clock.now - start < limit, totals.failed < (stopsEarly ? 1 : 5) {
    if isVerbose { print("seed \(seed)") }
    let report = Simulation.run(seed: seed)
    totals.add(report)
    if let violation = report.violation {
      print(stopsEarly ? "seed \(seed): \(violation)" : Simulation.explain(report))
    }
    fflush(nil)
    seed += 1
  }
  totals.tell(after: clock.now - start)
  return totals.failed == 0 ? 0 : 1
}

if let seed = environment("MARTLET_SIM_SEED").flatMap({ UInt64($0) }) {
  exit(playOne(seed))
} else {
  exit(playMany(Array(CommandLine.arguments.dropFirst())))
}
