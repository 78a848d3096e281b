import APNs
import Testing
import Wire

@testable import Delivery

/// Requests of one key, one after the other.
@Suite struct MachineKeyOrderTests {
  private let ok = SendResult.answered(Response(status: 200))

  private func bench(apps: Int = 2, _ change: (inout DeliveryMachine.Limits) -> Void = { _ in }) -> MachineBench {
    var bench = MachineBench(apps: apps) {
      $0.isOrderedByKey = true
      change(&$0)
    }
    bench.assign()
    bench.assign(topic: MachineBench.deferred)
    return bench
  }

  private func record(
    _ id: Int, key: String?, app: Int = 0, offset: Int64? = nil, topic: UInt32 = MachineBench.requests,
    tokens: String? = nil
  ) -> Record {
    let value = tokens.map { #"{"id":"r\#(id)","app":"app-\#(app)","tokens":\#($0),"payload":{"aps":{}}}"# }
    var record = MachineBench.record(
      value ?? MachineBench.request(app, id: id), offset: offset ?? Int64(id), topic: topic)
    record.body = RecordBody(
      key: key.map { Array($0.utf8) }, value: record.body.value.map { Bytes(record.body.storage, $0).array })
    return record
  }

  /// The ids of the requests that are out.
  private func out(_ bench: MachineBench) -> [String] { bench.submitted.map { id(of: $0) } }

  private func id(of submission: Submission) -> String {
    let text = Bytes(submission.notification.storage, ByteRange(0, submission.notification.storage.count)).text
    guard let start = text.firstRange(of: "\"id\":\"")?.upperBound else { return "" }
    return String(text[start...].prefix { $0 != "\"" })
  }

  /// What was parked, as it comes back from the deferred topic.
  private func back(_ bench: MachineBench, from first: Int64 = 0) -> [Record] {
    bench.stored.filter { $0.topic == .deferred }.enumerated().map { index, parked in
      Record(
        source: PartitionID(topic: MachineBench.deferred, partition: 0), offset: first + Int64(index),
        timestamp: bench.moment.time,
        body: RecordBody(
          key: parked.key.map { Array($0.utf8) }, value: parked.value.map { Array($0.utf8) },
          headers: parked.headers.map { ($0.name, Array($0.value.utf8)) }))
    }
  }

  @Test func oneRequestOfAKeyIsOutAndOthersDoNotWaitForIt() {
    var bench = bench()
    bench.poll([
      record(0, key: "a"), record(1, key: "a"), record(2, key: "b"), record(3, key: nil), record(4, key: nil),
      record(5, key: "a", app: 1), record(6, key: ""), record(7, key: ""),
    ])
    #expect(out(bench) == ["r0", "r2", "r3", "r4", "r6"])
    bench.answer(ok)
    #expect(out(bench) == ["r2", "r3", "r4", "r6", "r1"])
    bench.answerAll()
    #expect(out(bench) == ["r7", "r5"])
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.count(.results) == 8)
    #expect(bench.machine.keys.lineCount == 0)
  }

  @Test func orderIsOffByDefault() {
    var bench = MachineBench()
    bench.assign()
    bench.poll([record(0, key: "a"), record(1, key: "a")])
    #expect(bench.submitted.count == 2)
  }

  @Test func twoTopicsAndTwoPartitionsShareNoKeys() {
    var bench = bench()
    bench.machine.assign([(PartitionID(topic: 0, partition: 1), nil)])
    var other = record(1, key: "a")
    other.source.partition = 1
    bench.poll([record(0, key: "a"), other, record(2, key: "a", topic: MachineBench.deferred)])
    #expect(bench.submitted.count == 3)
  }

  @Test func aRetryKeepsItsTurn() {
    var bench = bench()
    bench.poll((0..<3).map { record($0, key: "a") })
    for _ in 0..<2 {
      bench.answer(.answered(Response(status: 503)))
      #expect(bench.submitted.isEmpty)
      bench.pass(.seconds(30))
      #expect(out(bench) == ["r0"])
    }
    bench.answer(ok)
    #expect(out(bench) == ["r1"])
  }

  @Test func theItemsOfABatchGoTogetherAndTheNextRequestAfterAllOfThem() {
    var bench = bench()
    bench.poll([record(0, key: "a", tokens: #"["a0","a1","a2"]"#), record(1, key: "a")])
    #expect(bench.submitted.count == 3)
    bench.answer(ok, at: 1)
    bench.answer(ok)
    #expect(out(bench) == ["r0"])
    bench.answer(ok)
    #expect(out(bench) == ["r1"])
  }

  @Test func whatWaitsBehindAParkedRequestIsParkedBehindIt() {
    var bench = bench()
    bench.poll((0..<3).map { record($0, key: "a") })
    bench.answer(.answered(Response(status: 429, reason: .tooManyRequests, retryAfter: .seconds(900))))
    bench.poll([record(3, key: "a"), record(4, key: "b")])
    #expect(out(bench) == ["r4"])
    bench.acknowledge()
    #expect(bench.count(.deferred) == 4)
    #expect(bench.machine.takeCommits().map(\.offset) == [4])
    bench.submitted = []

    // They come back, in order, and one after the other.
    let parked = back(bench)
    bench.pass(.seconds(901))
    bench.poll(parked)
    for id in ["r0", "r1", "r2", "r3"] {
      #expect(out(bench) == [id])
      bench.answer(ok)
    }
    bench.acknowledge()
    #expect(bench.count(.results) == 4)
    #expect(bench.machine.keys.rememberedCount == 0)
  }

  @Test func aRequestThatIsParkedAgainIsNotOvertaken() {
    var bench = bench()
    bench.poll((0..<3).map { record($0, key: "a") })
    let later = SendResult.answered(Response(status: 429, reason: .tooManyRequests, retryAfter: .seconds(60)))
    bench.answer(later)
    bench.acknowledge()
    let parked = back(bench)
    bench.pass(.seconds(61))
    // The first comes back alone, and is parked once more: behind the other two.
    bench.poll([parked[0]])
    bench.answer(later)
    bench.acknowledge()
    bench.pass(.seconds(1))
    bench.poll([parked[1], parked[2]])
    #expect(bench.submitted.isEmpty)
    bench.acknowledge()
    #expect(bench.count(.deferred) == 6)
    bench.pass(.seconds(61))
    bench.poll(Array(back(bench)[3...]))
    for id in ["r0", "r1", "r2"] {
      #expect(out(bench) == [id])
      bench.answer(ok)
    }
  }

  @Test func whatCameBackElsewhereIsNotWaitedForLongerThanIsKnown() {
    var bench = bench()
    bench.poll([record(0, key: "a")])
    bench.answer(.answered(Response(status: 429, reason: .tooManyRequests, retryAfter: .seconds(60))))
    bench.acknowledge()
    // Another replica has the partition that it is parked in.
    bench.pass(.seconds(60))
    bench.poll([record(1, key: "a")])
    #expect(bench.submitted.isEmpty)
    bench.acknowledge()
    #expect(bench.count(.deferred) == 2)
    bench.pass(.seconds(121))
    bench.poll([record(2, key: "a")])
    #expect(out(bench) == ["r2"])
  }

  /// Two requests of one key, parked for a minute. The first may be in Kafka twice, so that its place is not known: that
  /// the second one is back says nothing of it.
  ///
  /// - Returns: as they come back, the second one first.
  private func parkedInDoubt(_ bench: inout MachineBench) -> [Record] {
    bench.poll((0..<2).map { record($0, key: "a") })
    bench.answer(.answered(Response(status: 429, reason: .tooManyRequests, retryAfter: .seconds(60))))
    let first = bench.published.removeFirst()
    bench.acknowledge()
    bench.machine.take(receipts: [Receipt(ticket: first.item.ticket, outcome: .undelivered("lost"))], at: bench.moment)
    bench.pass(.seconds(1))
    bench.acknowledge()
    return back(bench)
  }

  /// Parked again at once, it would go round through Kafka as fast as Kafka can, until the one before it is back.
  @Test func whatIsBackBeforeItsTimeAndBeforeThoseBeforeItWaitsInMemory() {
    var bench = bench()
    let parked = parkedInDoubt(&bench)
    bench.poll([parked[0]])
    bench.acknowledge()
    #expect(bench.count(.deferred) == 2)
    // It still counts as parked for what comes later.
    bench.poll([record(2, key: "a")])
    #expect(bench.submitted.isEmpty)
    bench.acknowledge()
    #expect(bench.count(.deferred) == 3)
    bench.poll(Array(back(bench)[1...]))
    bench.acknowledge()
    #expect(bench.count(.deferred) == 3)
    bench.pass(.seconds(61))
    for id in ["r0", "r1", "r2"] {
      #expect(out(bench) == [id])
      bench.answer(ok)
    }
    bench.acknowledge()
    #expect(bench.count(.results) == 3)
    #expect(bench.machine.keys.rememberedCount == 0 && bench.machine.keys.lineCount == 0)
  }

  @Test func whatWaitsInMemoryIsParkedAgainWhenItsTimeHasComeAndNotThatOfTheOneBeforeIt() {
    var bench = bench()
    let parked = parkedInDoubt(&bench)
    bench.poll([parked[0]])
    bench.pass(.seconds(58))
    bench.acknowledge()
    #expect(bench.count(.deferred) == 2)
    bench.pass(.seconds(2))
    bench.acknowledge()
    #expect(bench.submitted.isEmpty && bench.count(.deferred) == 3)
  }

  @Test func whatWaitsInMemoryForItsTimeIsNotOvertakenWhenTheOneBeforeItHasEnded() {
    var bench = bench()
    bench.poll([record(0, key: "a")])
    bench.answer(.answered(Response(status: 429, reason: .tooManyRequests, retryAfter: .seconds(60))))
    bench.acknowledge(.undelivered("lost"))
    bench.pass(.seconds(59) + .milliseconds(500))
    // Too late to be due together with the first one: a second from now.
    bench.poll([record(1, key: "a")])
    bench.acknowledge()
    bench.poll(back(bench).reversed())
    bench.pass(.milliseconds(600))
    #expect(out(bench) == ["r0"])
    bench.answer(ok)
    bench.poll([record(2, key: "a")])
    #expect(bench.submitted.isEmpty)
    bench.acknowledge()
    bench.pass(.milliseconds(500))
    #expect(out(bench) == ["r1"])
  }

  @Test func anAppThatGoesLeavesNothingParkedInMemory() {
    var bench = bench()
    let parked = parkedInDoubt(&bench)
    bench.poll([parked[0]])
    var apps = bench.machine.apps
    apps.remove(AppIndex(0))
    bench.machine.update(apps: apps, renewed: [], at: bench.moment)
    bench.poll([])
    bench.acknowledge()
    #expect(bench.count(.results) == 1)
    // Of the two, only the one that is not back is waited for.
    #expect(bench.machine.keys.rememberedCount == 1)
  }

  @Test func whatIsRevokedLeavesItsLine() {
    var bench = bench()
    bench.poll((0..<3).map { record($0, key: "a") })
    bench.machine.revoke([PartitionID(topic: 0, partition: 0)], isLost: false, at: bench.moment)
    bench.answer(ok)
    #expect(bench.submitted.isEmpty)
    bench.acknowledge()
    #expect(bench.machine.takeRelease(at: bench.moment)?.commits.map(\.offset) == [1])
    // It is given back at once, and the others are read again.
    bench.assign()
    bench.poll([record(1, key: "a"), record(2, key: "a")])
    #expect(out(bench) == ["r1"])
    bench.answer(ok)
    #expect(out(bench) == ["r2"])
  }

  /// What was parked is back, waits to be sent again, and goes to whoever has its partition of the deferred topic now.
  @Test func whatWasLetGoIsNotOvertaken() {
    var bench = bench()
    bench.poll([record(0, key: "a")])
    bench.answer(.answered(Response(status: 429, reason: .tooManyRequests, retryAfter: .seconds(60))))
    bench.acknowledge()
    bench.pass(.seconds(61))
    bench.poll(back(bench))
    bench.answer(.answered(Response(status: 503, reason: .serviceUnavailable)))
    #expect(bench.machine.waiting == 1)
    bench.machine.revoke(
      [PartitionID(topic: MachineBench.deferred, partition: 0)], isLost: false, at: bench.moment)
    #expect(bench.machine.takeRelease(at: bench.moment)?.commits.isEmpty == true)
    bench.poll([record(1, key: "a"), record(2, key: "b")])
    #expect(out(bench) == ["r2"])
    bench.acknowledge()
    #expect(bench.count(.deferred) == 2)
  }

  @Test func aLongLineOfExpiredRequestsEndsAtOnce() {
    var bench = bench()
    bench.poll(
      [record(0, key: "a")]
        + (1..<3000).map { id in
          var record = record(id, key: "a")
          record.body = RecordBody(
            key: [97], value: Array(MachineBench.request(0, id: id, extra: #","expiration":1790000005"#).utf8))
          return record
        })
    bench.pass(.seconds(10))
    bench.answer(ok)
    bench.acknowledge()
    #expect(bench.count(.results) == 3000)
  }
}
