import Glibc
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Transport

@Suite struct EventLoopTests {
  @Test func workFromOtherThreadsRunsOnTheLoopInOrder() throws {
    let fixture = try LoopFixture()
    let seen = Monitor<[Int]>([])
    for number in 0..<1000 {
      fixture.loop.execute { [loop = fixture.loop] in
        seen.update { $0.append(loop.isCurrent ? number : -1) }
      }
    }
    #expect(seen.wait { $0.count == 1000 })
    #expect(seen.value == Array(0..<1000))
    #expect(fixture.loop.isCurrent == false)
  }

  @Test func workHandedOverInOneTurnNeedsOneTurn() throws {
    let fixture = try LoopFixture()
    let turns = Monitor<[UInt64]>([])
    let gate = fixture.block()
    for _ in 0..<100 {
      fixture.loop.execute { [loop = fixture.loop] in turns.update { $0.append(loop.turns.load(ordering: .relaxed)) } }
    }
    gate.update { $0 = true }
    #expect(turns.wait { $0.count == 100 })
    #expect(Set(turns.value).count == 1)
  }

  @Test func timersFireInOrderAndNotEarly() throws {
    let fixture = try LoopFixture()
    let fired = Monitor<[String]>([])
    fixture.loop.execute { [loop = fixture.loop] in
      let start = loop.now
      for (name, delay) in [("late", 30), ("early", 5), ("middle", 15)] {
        _ = loop.schedule(at: start + .milliseconds(delay)) {
          let early = Clock.now < start + .milliseconds(delay)
          fired.update { $0.append(early ? "\(name) too early" : name) }
        }
      }
      let cancelled = loop.schedule(at: start + .milliseconds(1)) { fired.update { $0.append("cancelled") } }
      loop.cancel(cancelled)
    }
    #expect(fired.wait { $0.count >= 3 })
    #expect(fired.value == ["early", "middle", "late"])
  }

  @Test func endOfTurnHandlersRunAfterTheWorkOfTheTurn() throws {
    final class Handler: TurnHandler {
      let note: () -> Void
      init(_ note: @escaping () -> Void) { self.note = note }
      func turnEnded() { note() }
    }
    let fixture = try LoopFixture()
    let seen = Monitor<[String]>([])
    let gate = fixture.block()
    fixture.loop.execute { [loop = fixture.loop] in
      seen.update { $0.append("first") }
      loop.atEndOfTurn(
        Handler {
          seen.update { $0.append("end") }
          loop.atEndOfTurn(Handler { seen.update { $0.append("end again") } })
        })
    }
    fixture.loop.execute { seen.update { $0.append("second") } }
    gate.update { $0 = true }
    #expect(seen.wait { $0.count == 4 })
    #expect(seen.value == ["first", "second", "end", "end again"])
  }

  @Test func wakeupsCoalesceAndAWriteOfEightBytesWakesToo() throws {
    let fixture = try LoopFixture()
    let count = Monitor(0)
    let wakeup = try fixture.loop.makeWakeup { count.update { $0 += 1 } }
    let gate = fixture.block()
    for _ in 0..<100 { wakeup.signal() }
    gate.update { $0 = true }
    #expect(count.wait { $0 >= 1 })
    let after = fixture.onLoop { count.value }
    #expect(after == 1, "100 signals came together")

    let before = count.value
    var one: UInt64 = 1
    _ = unsafe write(wakeup.fileDescriptor, &one, 8)
    #expect(count.wait { $0 > before })

    wakeup.cancel()
    _ = fixture.onLoop { true }
    let last = count.value
    wakeup.signal()
    _ = fixture.onLoop { true }
    _ = fixture.onLoop { true }
    #expect(count.value == last)
  }

  @Test func stopRunsWhatWasHandedOverAndRefusesMore() throws {
    let loop = try EventLoop.start(name: "test")
    let count = Monitor(0)
    for _ in 0..<50 { loop.execute { count.update { $0 += 1 } } }
    loop.stop()
    loop.stop()
    #expect(count.value == 50)
    let accepted = loop.execute { count.update { $0 += 1 } }
    #expect(!accepted)
  }

  @Test func anIdleLoopTurnsAtLeastOnceASecond() throws {
    let fixture = try LoopFixture()
    let turns = fixture.loop.turns.load(ordering: .relaxed)
    let last = fixture.loop.lastTurn
    #expect(waitUntil { fixture.loop.turns.load(ordering: .relaxed) > turns + 1 && fixture.loop.lastTurn > last })
  }
}
