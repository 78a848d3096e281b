import Testing
import Wire

@testable import Delivery

/// What is remembered of parked requests, and for how long.
@Suite struct KeyOrderTests {
  private let start = UnixTime(seconds: 1_790_000_000)

  private func time(_ seconds: Int64) -> UnixTime { UnixTime(seconds: start.seconds + seconds) }

  private func park(
    _ order: inout KeyOrder, _ line: UInt64, _ offset: Int64, until: Int64, now: Int64 = 0, notBefore: UnixTime? = nil
  ) {
    order.park(line, offset: offset, item: 0, notBefore: notBefore, until: time(until), now: time(now))
  }

  @Test func whatDoesNotComeBackMakesRoomFirst() {
    var order = KeyOrder(limit: 4)
    for line in 1...4 as ClosedRange<UInt64> { park(&order, line, 10, until: line <= 2 ? 0 : 1000) }
    park(&order, 5, 10, until: 1000, now: 500)
    #expect(order.rememberedCount == 3)
    #expect(order.lineCount == 3)
    let waits = [1, 3, 5].map { order.parkedBefore(11, $0, now: time(500)) }
    #expect(waits == [nil, time(1000), time(1000)])
  }

  @Test func whereAllIsStillAwaitedHalfOfTheRoomIsMade() {
    var order = KeyOrder(limit: 4)
    for line in 1...4 as ClosedRange<UInt64> { park(&order, line, 10, until: 1000 + Int64(line)) }
    park(&order, 5, 10, until: 2000)
    #expect(order.rememberedCount == 3)
    let waits = [1, 2, 3, 4, 5].map { order.parkedBefore(11, $0, now: start) }
    #expect(waits == [nil, nil, time(1003), time(1004), time(2000)])
  }

  @Test func aLineIsForgottenButNotWhatWaitsInIt() {
    var order = KeyOrder(limit: 1)
    let request = KeyOrder.Request(offset: 1, epoch: 1, sequence: 1)
    let goesOut = order.enter(7, PushSlot(index: 0, generation: 1), request, isFirst: false)
    #expect(goesOut)
    park(&order, 7, 2, until: 10)
    park(&order, 8, 2, until: 10)
    #expect(order.rememberedCount == 1)
    #expect(order.lineCount == 2)
    order.leave(7)
    #expect(order.lineCount == 1)
  }

  @Test func whatIsParkedAgainIsRememberedOnceAndAsItIsNow() {
    var order = KeyOrder(limit: 4)
    park(&order, 1, 10, until: 30, notBefore: time(30))
    park(&order, 1, 10, until: 90, notBefore: time(90))
    #expect(order.rememberedCount == 1)
    order.unpark(1, offset: 10, item: 0, notBefore: time(30), onlyIfSame: true)
    let wait = order.parkedBefore(11, 1, now: start)
    #expect(wait == time(90))
    order.unpark(1, offset: 10, item: 0, notBefore: time(90), onlyIfSame: true)
    #expect(order.rememberedCount == 0)
    #expect(order.lineCount == 0)
  }
}
