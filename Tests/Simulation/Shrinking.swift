import Wire

extension Simulation {
  /// What to tell of a run that broke a promise: the seed, the fewest faults that still break one, and how to play it
  /// again.
  package static func explain(_ report: Report) -> String {
    var off: Set<Fault> = []
    var last = report
    for fault in Fault.allCases where last.covered[fault] != nil {
      let fewer = run(seed: report.seed, without: off.union([fault]))
      guard fewer.violation != nil else { continue }
      off.insert(fault)
      last = fewer
    }
    let needed = last.covered.keys.map(\.rawValue).sorted().joined(separator: ", ")
    let without = off.map(\.rawValue).sorted().joined(separator: ",")
    let options = without.isEmpty ? "" : " MARTLET_SIM_WITHOUT=\(without)"
    return """
      seed \(report.seed): \(report.violation ?? "no promise was broken")
      with the fewest faults (\(needed)): \(last.violation ?? "")
      play it again: MARTLET_SIM_SEED=\(report.seed)\(options) scripts/simulate
      """
  }
}
