import Testing
import Wire

@testable import Delivery

@Suite struct TypicalStayTests {
  @Test func itComesToWhatMostTake() {
    var stay = TypicalStay()
    for _ in 0..<1000 { stay.note(80) }
    #expect(abs(stay.duration.milliseconds - 80) <= 2)
    for _ in 0..<1000 { stay.note(7) }
    #expect(abs(stay.duration.milliseconds - 7) <= 1)
  }

  @Test func aFewThatTakeVeryLongDoNotMoveIt() {
    var stay = TypicalStay()
    for number in 0..<2000 { stay.note(number % 4 == 0 ? 60_000 : 7) }
    #expect(stay.duration.milliseconds <= 8)
  }

  @Test func whereAllTakeVeryLongThatIsTroubleAndHasABound() {
    var stay = TypicalStay()
    for _ in 0..<5000 { stay.note(60_000) }
    #expect(stay.duration == .milliseconds(250))
    for _ in 0..<5000 { stay.note(0) }
    #expect(stay.duration == .milliseconds(1))
  }
}
