import Testing
import Wire

@testable import Delivery

@Suite struct DrainPhaseTests {
  private func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: (milliseconds + 1000) * 1_000_000) }

  private func view(
    idle: Bool = false, joining: Bool = false, committed: Bool = false, left: Bool = false
  ) -> DrainPhase.View {
    DrainPhase.View(isIdle: idle, isJoining: joining, isCommitted: committed, hasLeft: left)
  }

  @Test func eachStepFollowsWhenTheOneBeforeIsDone() {
    var phase = DrainPhase.draining(deadline: at(10_000))
    #expect(phase.advance(view(committed: true, left: true), now: at(0)) == nil)
    #expect(phase.advance(view(idle: true), now: at(500)) == .commit)
    #expect(phase == .committing(deadline: at(3500), limit: at(10_000)))
    #expect(phase.advance(view(idle: true), now: at(600)) == nil)
    #expect(phase.advance(view(idle: true, committed: true), now: at(700)) == .leave)
    #expect(phase == .leaving(deadline: at(4700)))
    #expect(phase.advance(view(idle: true, committed: true), now: at(800)) == nil)
    #expect(phase.advance(view(left: true), now: at(900)) == .end)
  }

  @Test func noStepLastsLongerThanItsTime() {
    var phase = DrainPhase.draining(deadline: at(1000))
    #expect(phase.advance(view(), now: at(999)) == nil)
    #expect(phase.advance(view(), now: at(1000)) == .commit)
    #expect(phase.advance(view(), now: at(3999)) == nil)
    #expect(phase.advance(view(), now: at(4000)) == .leave)
    #expect(phase.advance(view(), now: at(7999)) == nil)
    #expect(phase.advance(view(), now: at(8000)) == .end)
  }

  /// Nothing can be committed while the group rebalances; but a drain does not wait for that longer than it may last.
  @Test func theLastCommitWaitsForTheGroupButNotBeyondTheDrain() {
    var phase = DrainPhase.draining(deadline: at(10_000))
    #expect(phase.advance(view(idle: true, joining: true), now: at(0)) == .commit)
    #expect(phase.advance(view(joining: true, committed: true), now: at(9000)) == nil)
    #expect(phase == .committing(deadline: at(12_000), limit: at(10_000)))
    #expect(phase.advance(view(joining: true, committed: true), now: at(10_000)) == .leave)
  }

  @Test func commitsAreMadeUntilTheGroupIsLeftAndNeverWhileItIsJoined() {
    let phases: [(DrainPhase, Bool)] = [
      (.running, true), (.draining(deadline: at(0)), true), (.committing(deadline: at(0), limit: at(0)), true),
      (.leaving(deadline: at(0)), false), (.ended, false),
    ]
    for (phase, mayCommit) in phases {
      #expect(phase.mayCommit(isJoining: false) == mayCommit, "\(phase)")
      #expect(!phase.mayCommit(isJoining: true), "\(phase)")
    }
  }

  @Test func aRevocationMakesNoDrainLonger() {
    let timeout = Duration.seconds(5)
    #expect(DrainPhase.running.timeToFinish(timeout, now: at(0)) == timeout)
    #expect(DrainPhase.draining(deadline: at(9000)).timeToFinish(timeout, now: at(0)) == timeout)
    #expect(DrainPhase.draining(deadline: at(9000)).timeToFinish(timeout, now: at(7000)) == .seconds(2))
    #expect(DrainPhase.draining(deadline: at(9000)).timeToFinish(timeout, now: at(9500)) == .zero)
    #expect(DrainPhase.committing(deadline: at(9), limit: at(9)).timeToFinish(timeout, now: at(0)) == .zero)
    #expect(DrainPhase.leaving(deadline: at(9)).timeToFinish(timeout, now: at(0)) == .zero)
  }
}
