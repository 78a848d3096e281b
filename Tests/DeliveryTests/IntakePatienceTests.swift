import Testing
import Wire

@testable import Delivery

@Suite struct IntakePatienceTests {
  private func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: (milliseconds + 1000) * 1_000_000) }

  @Test func itIsSpentByWaitingAndComesBackSlowly() {
    var patience = IntakePatience()
    #expect(patience.left(now: at(0)) == .milliseconds(50))
    patience.note(isWaiting: true, now: at(0))
    #expect(!patience.isOver(now: at(49)))
    #expect(patience.isOver(now: at(50)))
    patience.note(isWaiting: false, now: at(50))
    // Until it is half full it counts for nothing.
    #expect(patience.isOver(now: at(1299)))
    #expect(!patience.isOver(now: at(1300)))
    // And then for what there is of it.
    patience.note(isWaiting: true, now: at(1300))
    #expect(!patience.isOver(now: at(1324)))
    #expect(patience.isOver(now: at(1325)))
    #expect(patience.left(now: at(1325)) == .zero)
  }

  @Test func aWaitThatWentOnTooLongIsPaidForWithinReason() {
    var patience = IntakePatience()
    patience.note(isWaiting: true, now: at(0))
    patience.note(isWaiting: false, now: at(80))
    #expect(patience.left(now: at(80)) == .milliseconds(-30))
    patience.note(isWaiting: true, now: at(80))
    patience.note(isWaiting: false, now: at(60_000))
    #expect(patience.left(now: at(60_000)) == .milliseconds(-50))
    #expect(patience.isOver(now: at(63_749)))
    #expect(!patience.isOver(now: at(63_750)))
    #expect(patience.left(now: at(600_000)) == .milliseconds(50))
  }

  /// However often somebody waits, and in whatever pieces.
  @Test(arguments: [1, 3, 10, 20])
  func noMoreThanAFiftiethOfTheTimeGoesByWaiting(step: Int64) {
    var patience = IntakePatience()
    var waited: Int64 = 0
    var time: Int64 = 0
    while time < 100_000 {
      let waits = !patience.isOver(now: at(time))
      patience.note(isWaiting: waits, now: at(time))
      if waits { waited += step }
      time += step
    }
    #expect(waited <= 50 + 100_000 / 50 + step)
    #expect(waited >= 1_000)
  }
}
