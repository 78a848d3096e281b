import APNs
import Testing
import Wire

@testable import Delivery

/// An app that moves and is at its cap, beside another one: what is put aside of it, and comes back.
@Suite struct MachineComeBackTests {
  private let ok = SendResult.answered(Response(status: 200))

  /// Two apps: the first is at its cap and needs a second for what it has in flight; the other has room.
  ///
  /// - Parameter steps: of ten milliseconds each; it gets twice as much as it can send.
  private func besideOneThatHardlyMoves(cap: Int, steps: Int) -> (bench: MachineBench, offset: Int64) {
    var bench = MachineBench(maxInFlight: 1000, perApp: cap)
    bench.assign()
    bench.assign(topic: MachineBench.deferred)
    var offset: Int64 = 0
    for step in 0..<steps {
      if bench.machine.recordRoom() > 0 {
        if step % 10 == 0 { bench.poll(app: 0, cap / 5, from: offset) }
        bench.poll(app: 1, 1, from: offset + 100)
        offset += 101
      }
      if step * cap / 100 < (step + 1) * cap / 100,
        let oldest = bench.submitted.firstIndex(where: { $0.app == AppIndex(0) })
      {
        bench.answer(ok, at: oldest)
      }
      while let other = bench.submitted.firstIndex(where: { $0.app == AppIndex(1) }) { bench.answer(ok, at: other) }
      bench.acknowledge()
      bench.pass(.milliseconds(10))
    }
    return (bench, offset)
  }

  /// Put aside again and again, it would never go out.
  @Test func whatComesBackToAnAppThatMovesIsWaitedFor() throws {
    var (bench, offset) = besideOneThatHardlyMoves(cap: 100, steps: 500)
    let parked = try #require(bench.stored.first { $0.topic == .deferred })
    // The intake has waited for it long enough when something new is put aside.
    var isPutAside = false
    for _ in 0..<500 where !isPutAside {
      bench.acknowledge()
      bench.pass(.milliseconds(10))
      bench.answer(ok)
      if bench.machine.recordRoom() > 0 {
        bench.poll(app: 0, 2, from: offset)
        offset += 2
      }
      isPutAside = bench.published.contains { $0.item.topic == .deferred }
    }
    #expect(isPutAside)
    bench.acknowledge()
    // As another request, it is no copy of the one that was parked.
    let now = String(bench.moment.time.milliseconds)
    let due = [OwnHeader.notBefore: now, OwnHeader.requestedAt: now]
    let back = MachineBench.back(parked.value, parked.headers, at: 0, changed: due)
    let out = bench.submitted.count
    bench.poll([back])
    #expect(bench.published.isEmpty)
    #expect(bench.submitted.count == out)
    bench.pass(.milliseconds(100))
    #expect(bench.published.isEmpty)
    bench.answer(ok)
    #expect(bench.submitted.count == out)
    #expect(bench.published.map(\.item.topic) == [.results])
  }

  /// The intake goes on meanwhile, so it has not waited for anybody.
  @Test func whatComesBackSpendsNoPatience() throws {
    var bench = MachineBench(maxInFlight: 1000, perApp: 100)
    bench.assign()
    bench.assign(topic: MachineBench.deferred)
    bench.poll(app: 0, 1)
    bench.answer(.answered(Response(status: 429, reason: .tooManyRequests, retryAfter: .seconds(60))))
    bench.acknowledge()
    let parked = try #require(bench.stored.first)
    bench.pass(.seconds(60))
    bench.poll(app: 0, 100, from: 1)
    for _ in 0..<30 { bench.answer(ok) }
    bench.acknowledge()
    bench.poll(app: 0, 30, from: 101)
    bench.poll([MachineBench.back(parked.value, parked.headers, at: 0)])
    #expect(bench.machine.isPaused(PartitionID(topic: MachineBench.deferred, partition: 0)))
    bench.pass(.milliseconds(200))
    #expect(!bench.machine.patience.isOver(now: bench.moment.instant))
    bench.poll(app: 0, 1, from: 131)
    bench.pass(.milliseconds(200))
    #expect(bench.machine.patience.isOver(now: bench.moment.instant))
  }

  @Test func anAppWithFewInFlightIsWaitedFor() {
    let (bench, _) = besideOneThatHardlyMoves(cap: 20, steps: 1000)
    #expect(bench.count(.deferred) == 0)
    #expect(bench.count(.results) > 200)
  }

  /// One app gets twice as much as it can send. What was put aside of it waits for its turn, and nobody else with it.
  @Test func whatComesBackHoldsUpNobodyElse() {
    var bench = MachineBench(maxInFlight: 1000, perApp: 100)
    bench.assign()
    bench.assign(topic: MachineBench.deferred)
    let deferred = PartitionID(topic: MachineBench.deferred, partition: 0)
    var (offset, held, known, read): (Int64, Duration, Int, Int) = (0, .zero, 0, 0)
    var aside: [(due: Int64, record: Record)] = []
    for step in 0..<4000 {
      for parked in bench.stored[known...] where parked.topic == .deferred {
        let due = parked.headers.first { $0.name == OwnHeader.notBefore }.flatMap { Int64($0.value) } ?? 0
        aside.append((due, MachineBench.back(parked.value, parked.headers, at: Int64(aside.count))))
      }
      known = bench.stored.count
      if bench.machine.recordRoom() > 0 {
        if !bench.machine.isPaused(deferred) {
          let end = aside[read...].firstIndex { $0.due > bench.moment.time.milliseconds } ?? aside.count
          bench.poll(aside[read..<end].map(\.record))
          read = end
        }
        if step % 10 == 0 { bench.poll(app: 0, 20, from: offset) }
        bench.poll(app: 1, 1, from: offset + 20)
        offset += 21
      } else {
        held = held + .milliseconds(10)
      }
      if let oldest = bench.submitted.firstIndex(where: { $0.app == AppIndex(0) }) { bench.answer(ok, at: oldest) }
      while let other = bench.submitted.firstIndex(where: { $0.app == AppIndex(1) }) { bench.answer(ok, at: other) }
      bench.acknowledge()
      bench.pass(.milliseconds(10))
    }
    #expect(held <= .milliseconds(50) + .seconds(40) / 50 + .milliseconds(50), "\(held)")
    #expect(read > 500)
  }
}
