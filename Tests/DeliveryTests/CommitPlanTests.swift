import Testing
import Wire

@testable import Delivery

@Suite struct CommitPlanTests {
  private let partitions = [PartitionID(topic: 0, partition: 0), PartitionID(topic: 0, partition: 3)]

  private func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: (milliseconds + 1000) * 1_000_000) }

  @Test func oneCommitAtATimeEachInterval() {
    var plan = CommitPlan(interval: .seconds(1), now: at(0))
    #expect(plan.isDue(now: at(999)) == false)
    #expect(plan.isDue(now: at(1000)) == true)
    let ticket = plan.begin(partitions)
    #expect(!plan.isIdle)
    #expect(plan.isDue(now: at(2000)) == false, "the last one is not answered")
    #expect(plan.due == at(3000))
    #expect(plan.answered(ticket) == partitions)
    #expect(plan.answered(ticket) == [], "it is answered once")
    #expect(plan.isIdle)
    #expect(plan.isDue(now: at(3000)) == true)
  }

  @Test func nothingToCommitIsNotWaitedFor() {
    var plan = CommitPlan(interval: .seconds(1), now: at(0))
    let ticket = plan.begin([])
    #expect(plan.isIdle)
    plan.release(partitions, after: ticket, now: at(0))
    #expect(plan.takeRelease(now: at(0)) == partitions)
  }

  @Test func partitionsAreGivenBackWhenTheirLastCommitIsAnswered() {
    var plan = CommitPlan(interval: .seconds(1), now: at(0))
    let earlier = plan.begin(partitions)
    let last = plan.begin(partitions)
    plan.release(partitions, after: last, now: at(0))
    #expect(plan.answered(earlier) == partitions)
    #expect(plan.takeRelease(now: at(1)) == nil)
    #expect(plan.answered(last) == partitions)
    #expect(plan.takeRelease(now: at(1)) == partitions)
    #expect(plan.takeRelease(now: at(1)) == nil, "they are given back once")
  }

  @Test func anAnswerThatDoesNotComeIsWaitedForWithinReason() {
    var plan = CommitPlan(interval: .seconds(1), now: at(0))
    let ticket = plan.begin(partitions)
    plan.release(partitions, after: ticket, now: at(0))
    #expect(plan.takeRelease(now: at(2999)) == nil)
    #expect(plan.takeRelease(now: at(3000)) == partitions)
  }

  @Test func aRefusedLastCommitIsSaidAgainSoon() {
    var plan = CommitPlan(interval: .seconds(60), now: at(0))
    plan.hurry(now: at(10))
    #expect(plan.isDue(now: at(10)) == true)
    _ = plan.answered(plan.begin(partitions))
    #expect(plan.isDue(now: at(109)) == false)
    #expect(plan.isDue(now: at(110)) == true)
  }
}
