import Testing
import Wire

@testable import Transport

@Suite struct TimersTests {
  private func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

  @Test func timersComeOutInTheOrderOfTheirDeadlinesAndThenOfTheirSetting() {
    var timers = Timers<String>()
    for (name, deadline) in [("c", 30), ("a", 10), ("d1", 40), ("b", 20), ("d2", 40), ("d3", 40)] {
      _ = timers.insert(name, at: at(Int64(deadline)))
    }
    var order: [String] = []
    while let (_, name) = timers.popDue(at(1000)) { order.append(name) }
    #expect(order == ["a", "b", "c", "d1", "d2", "d3"])
  }

  @Test func aTimerIsNotDueBeforeItsDeadline() {
    var timers = Timers<Int>()
    _ = timers.insert(1, at: at(10))
    let early = timers.popDue(Instant(nanoseconds: 9_999_999))
    #expect(early == nil)
    #expect(timers.next == at(10))
    let due = timers.popDue(at(10))
    #expect(due?.payload == 1)
    #expect(timers.next == nil)
  }

  @Test func aCancelledTimerDoesNotFireAndAStaleHandleDoesNothing() {
    var timers = Timers<Int>()
    let first = timers.insert(1, at: at(10))
    let removed = timers.remove(first)
    #expect(removed)
    let removedAgain = timers.remove(first)
    #expect(!removedAgain)
    let second = timers.insert(2, at: at(10))
    let removedByStaleHandle = timers.remove(first)
    #expect(!removedByStaleHandle, "the slot belongs to another timer now")
    #expect(timers.isSet(second))
    let fired = timers.popDue(at(10))
    #expect(fired?.payload == 2)
  }

  @Test func manyTimersSetAndCancelledAtRandomStayInOrder() {
    var timers = Timers<Int64>()
    var set: [(timer: Timer, deadline: Int64)] = []
    var state: UInt64 = 7
    func random() -> Int64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int64(state >> 40)
    }
    for _ in 0..<2000 {
      if random() % 3 == 0, !set.isEmpty {
        let gone = set.remove(at: Int(random()) % set.count)
        let removed = timers.remove(gone.timer)
        #expect(removed)
      } else {
        let deadline = random() % 500
        set.append((timers.insert(deadline, at: at(deadline)), deadline))
      }
    }
    var order: [Int64] = []
    while let (_, deadline) = timers.popDue(at(500)) { order.append(deadline) }
    #expect(order == set.map(\.deadline).sorted())
  }
}
