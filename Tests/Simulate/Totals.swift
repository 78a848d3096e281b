import Simulation

/// What many runs came to.
struct Totals {
  var runs = 0
  var failed = 0
  private var requests = 0
  private var events = 0
  private var virtual: Duration = .zero
  private var longestRecovery: Duration = .zero
  private var longestWait: Duration = .zero
  private var times: [Fault: Int] = [:]
  private var runsWith: [Fault: Int] = [:]

  mutating func add(_ report: Simulation.Report) {
    runs += 1
    requests += report.requests
    events += report.events
    virtual += report.virtualTime
    longestRecovery = max(longestRecovery, report.recovery)
    longestWait = max(longestWait, report.healthyWait ?? .zero)
    for (fault, count) in report.covered {
      times[fault, default: 0] += count
      runsWith[fault, default: 0] += 1
    }
    if report.violation != nil { failed += 1 }
  }

  func tell(after elapsed: Duration, jobs: Int) {
    let seconds = max(Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18, 0.001)
    print(
      "\(runs) runs in \(text(elapsed)), \(jobs) at a time, \(Int(Double(runs) / seconds)) a second: \(failed) failed")
    print(
      "\(requests) notifications and \(events) events in \(text(virtual)) of virtual time; "
        + "the longest recovery after the last fault took \(text(longestRecovery)), "
        + "and no healthy app waited for a sick one longer than \(text(longestWait))")
    print("faults: how often each struck, and in how many runs")
    for kind in Fault.Kind.allCases {
      print("  \(kind.rawValue)")
      for fault in Fault.allCases where fault.kind == kind {
        print("    \(padded(fault.rawValue, 22))\(padded(times[fault] ?? 0, 10))\(padded(runsWith[fault] ?? 0, 9))")
      }
    }
    let missing = Fault.allCases.filter { times[$0] == nil }.map(\.rawValue)
    if !missing.isEmpty { print("never struck: \(missing.joined(separator: ", "))") }
  }

  private func text(_ duration: Duration) -> String {
    let seconds = duration.components.seconds
    if seconds < 60 {
      let hundredths = duration.components.attoseconds / 10_000_000_000_000_000
      return "\(seconds).\(hundredths < 10 ? "0" : "")\(hundredths) s"
    }
    if seconds < 7200 { return "\(seconds / 60) min \(seconds % 60) s" }
    return seconds < 172_800 ? "\(seconds / 3600) h \(seconds / 60 % 60) min" : "\(seconds / 86_400) days"
  }

  private func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  private func padded(_ number: Int, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: " ", count: max(0, width - digits.count)) + digits
  }
}
