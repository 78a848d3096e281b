import Simulation
import Testing

/// Whole runs of the delivery over a simulated Kafka and a simulated Apple. `scripts/simulate` plays more of them.
@Suite struct SimulationTests {
  /// Seeds that broke a promise once, and some more.
  @Test(arguments: 1...12) func everyPromiseIsKept(seed: UInt64) {
    let report = Simulation.run(seed: seed)
    if report.violation != nil { Issue.record(Comment(rawValue: Simulation.explain(report))) }
  }

  @Test func everyPromiseIsKeptWithFreshSeeds() {
    let clock = ContinuousClock()
    let end = clock.now + .seconds(3)
    repeat {
      let report = Simulation.run(seed: UInt64.random(in: 1 << 20..<1 << 40))
      if report.violation != nil { Issue.record(Comment(rawValue: Simulation.explain(report))) }
    } while clock.now < end
  }

  @Test func aSeedNamesARun() {
    let first = Simulation.run(seed: 7, keepsStory: true)
    let second = Simulation.run(seed: 7, keepsStory: true)
    #expect(first.story == second.story)
    #expect(first.events == second.events)
  }
}
