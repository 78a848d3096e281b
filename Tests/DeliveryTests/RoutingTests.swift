import Testing
import Wire

@testable import Delivery

@Suite struct RoutingTests {
  @Test func aQuietAppStaysOnItsHomeLane() {
    var router = Router(laneCount: 4, lanesPerApp: 4)
    router.grow(appCount: 8)
    for app in 0..<8 as Range<Int32> {
      for inFlight in 1..<100 {
        let lane = router.route(AppIndex(app), appInFlight: inFlight)
        #expect(lane.value == app % 4)
      }
    }
  }

  @Test func aBusyAppSpreadsEvenly() {
    var router = Router(laneCount: 4, lanesPerApp: 4, spread: 100)
    router.grow(appCount: 1)
    var counts = [0, 0, 0, 0]
    for inFlight in 1...2000 {
      counts[Int(router.route(AppIndex(0), appInFlight: inFlight).value)] += 1
    }
    #expect(counts.allSatisfy { $0 == 500 })
  }

  @Test func anAppUsesNoMoreLanesThanItMay() {
    var router = Router(laneCount: 4, lanesPerApp: 2, spread: 1)
    router.grow(appCount: 4)
    let lanes = Set((1...100).map { router.route(AppIndex(3), appInFlight: $0) })
    #expect(lanes == [LaneIndex(3), LaneIndex(0)])
  }

  @Test func whatComesBackMakesRoom() {
    var router = Router(laneCount: 2, lanesPerApp: 2, spread: 1)
    router.grow(appCount: 1)
    let first = router.route(AppIndex(0), appInFlight: 10)
    let second = router.route(AppIndex(0), appInFlight: 10)
    #expect(first != second)
    router.release(AppIndex(0), second)
    #expect(router.route(AppIndex(0), appInFlight: 10) == second)
  }
}

@Suite struct WaitQueueTests {
  @Test(arguments: 0..<10)
  func comesOutInOrderOfTimeThenOfInsertion(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var queue = WaitQueue()
    var expected: [(due: Int64, order: UInt32)] = []
    for order in 0..<500 as Range<UInt32> {
      let due = Int64(random.uniform(below: 50))
      queue.insert(PushSlot(index: order, generation: 1), due: Instant(nanoseconds: due))
      expected.append((due, order))
    }
    expected.sort { $0 < $1 }
    for item in expected {
      #expect(queue.nextDue == Instant(nanoseconds: item.due))
      #expect(queue.popDue(now: Instant(nanoseconds: item.due - 1)) == nil)
      #expect(queue.popDue(now: Instant(nanoseconds: item.due))?.index == item.order)
    }
    #expect(queue.count == 0)
  }
}

@Suite struct AppHealthTests {
  private var random = SeededRandom(seed: 1)
  private let start = Instant(nanoseconds: 1_000_000_000)

  @Test mutating func theBreakerOpensAfterARunOfFailuresAndProbesOneAtATime() {
    var health = AppHealth()
    var change: AppHealth.Change?
    for _ in 0..<AppHealth.failureLimit { change = health.failed(now: start, using: &random) }
    guard case .opened(let until) = change else {
      Issue.record("still closed")
      return
    }
    #expect(health.admit(now: start) == .refused(until: until))
    #expect(health.admit(now: until) == .granted)
    // The probe is out: the next one waits.
    #expect(health.admit(now: until) != .granted)
    let again = health.failed(now: until, using: &random)
    #expect(again != nil)
    #expect(health.admit(now: until) != .granted)
    #expect(health.succeeded() == .closed)
    #expect(health.admit(now: until) == .granted)
  }

  @Test mutating func aSuccessInBetweenKeepsItClosed() {
    var health = AppHealth()
    for round in 0..<100 {
      let change = round % 5 == 4 ? health.succeeded() : health.failed(now: start, using: &random)
      #expect(change == nil)
    }
    #expect(!health.isBroken)
  }

  @Test mutating func failuresThatComeInLateDoNotLengthenThePause() {
    var health = AppHealth()
    var changes = 0
    for _ in 0..<5000 where health.failed(now: start, using: &random) != nil { changes += 1 }
    #expect(changes == 1)
  }

  @Test func anAppIsSlowWhenItsBacklogWouldTakeLong() {
    var health = AppHealth()
    for _ in 0..<5000 { health.began(now: start) }
    #expect(!health.isSlow(now: start + .milliseconds(400)))
    #expect(health.isSlow(now: start + .milliseconds(600)))
    var time = start
    for _ in 0..<2000 {
      time = time + .microseconds(100)
      health.ended(now: time)
      health.inFlight += 1
    }
    for _ in 0..<6000 {
      time = time + .microseconds(100)
      health.ended(now: time)
      health.inFlight += 1
    }
    // Ten thousand a second: half a second's work.
    #expect(!health.isSlow(now: time))
    for _ in 0..<400 {
      time = time + .milliseconds(5)
      health.ended(now: time)
      health.inFlight += 1
    }
    // Two hundred a second: 25 seconds' work.
    #expect(health.isSlow(now: time))
  }
}
