import APNs
import Testing
import Wire

@testable import Delivery

/// What a new configuration does to notifications that are on their way.
@Suite struct AppChangesTests {
  private let partition = PartitionID(topic: MachineBench.requests, partition: 0)

  private func isResult(_ text: String, _ status: String, _ reason: String) -> Bool {
    text.contains("\"status\":\"\(status)\"") && text.contains("\"reason\":\"\(reason)\"")
  }

  @Test func whatIsWithALaneWhenItsAppIsRemovedEndsAsItIsAnswered() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 2)
    bench.remove(app: 0)
    #expect(bench.submitted.count == 2 && bench.published.isEmpty)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.stored(.results).allSatisfy { $0.contains("\"status\":\"delivered\"") })
    #expect(bench.machine.takeCommits().map(\.offset) == [2])
  }

  @Test func laterRecordsOfARemovedAppAreInvalid() {
    var bench = MachineBench()
    bench.assign()
    bench.remove(app: 0)
    bench.poll(app: 0, 1)
    bench.poll(app: 1, 1, from: 1)
    #expect(bench.submitted.count == 1)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.stored(.results).count { isResult($0, "invalid", "UnknownApp") } == 1)
    #expect(bench.count(.deadLetters) == 1)
    #expect(bench.machine.takeCommits().map(\.offset) == [2])
  }

  @Test func whatCameBackUnsentOfARemovedAppIsInvalid() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 1)
    bench.remove(app: 0)
    bench.answer(.notSent(.draining))
    bench.acknowledge()
    #expect(bench.stored(.results).map { isResult($0, "invalid", "UnknownApp") } == [true])
    #expect(bench.machine.inFlight == 0)
    #expect(bench.machine.takeCommits().map(\.offset) == [1])
  }

  @Test func whatWaitsForAnotherAttemptEndsWhenItsAppIsRemoved() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 2)
    // One may have reached APNs, the other has not.
    bench.answer(.answered(Response(status: 503, reason: .serviceUnavailable)))
    bench.answer(.notSent(.unreachable))
    #expect(bench.machine.waiting == 2 && bench.published.isEmpty)
    bench.remove(app: 0)
    bench.acknowledge()
    let results = bench.stored(.results)
    #expect(results.count { isResult($0, "failed", "AppRemoved") } == 1)
    #expect(results.count { isResult($0, "invalid", "UnknownApp") } == 1)
    #expect(bench.machine.inFlight == 0 && bench.machine.inFlight(of: AppIndex(0)) == 0)
    // Their places in the queue of waits are of no consequence.
    bench.pass(.seconds(60))
    #expect(bench.submitted.isEmpty && bench.published.isEmpty)
    #expect(bench.machine.takeCommits().map(\.offset) == [2])
    #expect(bench.machine.isIdle)
  }

  @Test func recordsThatWaitForRoomOfARemovedAppWaitNoLonger() {
    var bench = MachineBench { $0.maxInFlightPerApp = 2 }
    bench.assign()
    bench.poll(app: 0, 5)
    #expect(bench.submitted.count == 2 && bench.machine.recordRoom() == 0)
    bench.remove(app: 0)
    #expect(bench.machine.recordRoom() > 0)
    bench.acknowledge()
    #expect(bench.stored(.results).count { isResult($0, "invalid", "UnknownApp") } == 3)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [5])
  }

  @Test func anAppThatComesBackIsServedUnderItsOldIndex() {
    var bench = MachineBench()
    bench.assign()
    bench.remove(app: 0)
    var apps = bench.machine.apps
    let index = apps.update(AppRules(name: "app-0", bundleID: "com.example.new", environment: .sandbox))
    bench.machine.update(apps: apps, renewed: [index], at: bench.moment)
    bench.poll(app: 0, 1)
    #expect(bench.submitted.map(\.app) == [AppIndex(0)] && index == AppIndex(0))
  }

  @Test func anAppThatIsNewIsServedAtOnce() {
    var bench = MachineBench()
    bench.assign()
    var apps = bench.machine.apps
    let index = apps.update(AppRules(name: "app-2", bundleID: "com.example.app2", environment: .production))
    bench.machine.update(apps: apps, renewed: [index], at: bench.moment)
    bench.poll(app: 2, 3)
    #expect(bench.submitted.map(\.app) == [index, index, index])
  }

  @Test func newCredentialsCloseTheBreakerAndWhatWaitedGoesOut() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 12)
    for _ in 0..<12 { bench.answer(.notSent(.credentials)) }
    bench.pass(.milliseconds(1))
    #expect(bench.machine.isBroken(AppIndex(0)))
    let out = bench.submitted.count
    bench.machine.update(apps: bench.machine.apps, renewed: [AppIndex(0)], at: bench.moment)
    #expect(!bench.machine.isBroken(AppIndex(0)))
    bench.pass(.zero)
    #expect(out < 12 && bench.submitted.count == 12)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [12])
  }

  @Test func theQueueOfRetriesKeepsItsOrderWhenSomeAreBroughtForward() {
    var queue = WaitQueue()
    func slot(_ index: UInt32) -> PushSlot { PushSlot(index: index, generation: 1) }
    for index in 0..<6 { queue.insert(slot(UInt32(index)), due: Instant(nanoseconds: Int64(100 - index * 10))) }
    queue.bringForward(to: Instant(nanoseconds: 20)) { $0.index % 2 == 0 }
    var order: [UInt32] = []
    while let next = queue.popDue(now: Instant(nanoseconds: 1000)) { order.append(next.index) }
    #expect(order == [4, 2, 0, 5, 3, 1])
  }
}

extension MachineBench {
  fileprivate mutating func remove(app: Int) {
    var apps = machine.apps
    apps.remove(AppIndex(Int32(app)))
    machine.update(apps: apps, at: moment)
    collect()
  }
}
