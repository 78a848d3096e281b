import APNs
import Testing
import Wire

@testable import Delivery

/// Requests that Kafka will not park as they are.
@Suite struct MachineParkingTests {
  @Test func aRequestOfTheHeaderFormIsReadableWhenItWasParkedInShort() throws {
    var bench = MachineBench()
    bench.assign()
    bench.poll([
      MachineBench.record(
        #"{"aps":{}}"#, offset: 0,
        headers: [
          ("app", Array("app-0".utf8)), ("token", Array("abcd".utf8)), ("big", [UInt8](repeating: 65, count: 99)),
        ])
    ])
    bench.answer(.answered(Response(status: 429, reason: .tooManyRequests, retryAfter: .seconds(900))))
    bench.acknowledge(.refused("too large"))
    let parked = try #require(bench.published.first)
    let names = parked.item.headers.map { String(decoding: parked.item.requestStorage[$0.name.indices], as: UTF8.self) }
    #expect(parked.item.topic == .deferred)
    #expect(names == ["app", "token"])
  }

  @Test func aRequestThatKafkaWillNotParkEndsWithAResult() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 1)
    bench.answer(.answered(Response(status: 429, reason: .tooManyRequests, retryAfter: .seconds(900))))
    bench.acknowledge(.refused("too large"))
    bench.acknowledge(.refused("too large"))
    #expect(bench.published.map(\.item.topic) == [.results])
    #expect(bench.machine.takeCommits().isEmpty)
    bench.acknowledge()
    #expect(bench.stored(.results).first?.contains(#""status":"failed""#) == true)
    #expect(bench.machine.takeCommits().map(\.offset) == [1])
    #expect(bench.machine.inFlight(of: AppIndex(0)) == 0)
  }

  /// An app at its cap that does not move, and one more of its requests.
  private func parked(extra: String) -> MachineBench {
    var bench = MachineBench { $0.maxInFlightPerApp = 10 }
    bench.assign()
    bench.poll(app: 0, 10)
    bench.pass(.seconds(1))
    bench.poll(app: 0, 1, from: 10, extra: extra)
    return bench
  }

  @Test func whatIsParkedForWantOfRoomIsBackWhenItExpires() {
    for (extra, range) in [
      ("", 1_790_000_006_000...1_790_000_011_000),
      (#","expiration":1790000003"#, 1_790_000_003_000...1_790_000_003_000),
    ] {
      let headers = parked(extra: extra).published.first?.item.extraHeaders ?? []
      let due = headers.first { $0.name == OwnHeader.notBefore }.flatMap { Int($0.value) }
      #expect(due.map(range.contains) == true, "\(extra) \(due ?? 0)")
    }
  }

  @Test func whatHasExpiredIsNotParkedAgain() {
    #expect(parked(extra: "").published.map(\.item.topic) == [.deferred])
    var bench = parked(extra: #","expiration":1790000000"#)
    #expect(bench.published.map(\.item.topic) == [.results])
    #expect(bench.published.first?.value?.contains(#""status":"expired""#) == true)
    // It says nothing about how fast the app is: the next one is parked, and holds nobody up.
    bench.poll(app: 0, 1, from: 11)
    #expect(bench.published.map(\.item.topic) == [.results, .deferred])
    #expect(bench.machine.recordRoom() > 0)
  }

  /// Comes back to an app without room, first taken up that long ago.
  private func comesBack(after seconds: Int64) throws -> MachineBench {
    var bench = parked(extra: "")
    let item = try #require(bench.published.first)
    let times = [OwnHeader.notBefore: Int64(1_790_000_000), OwnHeader.takenUpAt: 1_790_000_001 - seconds]
    let headers = item.item.extraHeaders.map { header in
      (header.name, Optional(Array((times[header.name].map { "\($0 * 1000)" } ?? header.value).utf8)))
    }
    bench.assign(topic: MachineBench.deferred)
    bench.poll([MachineBench.record(item.value, offset: 0, topic: MachineBench.deferred, headers: headers)])
    return bench
  }

  @Test func whatHasWaitedTooLongIsNotParkedAgain() throws {
    #expect(try comesBack(after: 3599).published.map(\.item.topic) == [.deferred, .deferred])
    let bench = try comesBack(after: 3600)
    #expect(bench.published.map(\.item.topic) == [.deferred, .results])
    #expect(bench.published.last?.value?.contains(#""status":"failed""#) == true)
    #expect(bench.machine.inFlight(of: AppIndex(0)) == 10)
  }

  @Test func anOldRequestIsParkedLikeANewOne() {
    var bench = parked(extra: "")
    bench.poll([
      MachineBench.record(MachineBench.request(0, id: 99), offset: 11, time: UnixTime(seconds: 1_789_000_000))
    ])
    #expect(bench.published.map(\.item.topic) == [.deferred, .deferred])
  }

  /// A record of the deferred topic that is due at a time.
  private func deferred(_ id: Int, app: Int = 0, due seconds: Int64, topic: String = "push.requests") -> Record {
    let numbers: [(String, Int64)] = [
      (OwnHeader.notBefore, seconds * 1000), (OwnHeader.attempts, 1), (OwnHeader.item, 0),
      (OwnHeader.requestedAt, 1_789_999_000_000), (OwnHeader.takenUpAt, 1_790_000_000_000),
      (OwnHeader.sourcePartition, 3), (OwnHeader.sourceOffset, Int64(id) + 70),
    ]
    return MachineBench.record(
      MachineBench.request(app, id: id), offset: Int64(id), topic: MachineBench.deferred,
      headers: numbers.map { ($0.0, Array(String($0.1).utf8)) } + [(OwnHeader.sourceTopic, Array(topic.utf8))])
  }

  @Test func whatIsNotDueDoesNotHoldUpWhatIs() {
    var bench = MachineBench()
    bench.assign(topic: MachineBench.deferred)
    bench.poll([deferred(0, due: 1_790_000_900), deferred(1, due: 1_790_000_000), deferred(2, due: 1_790_000_002)])
    #expect(bench.submitted.count == 1)
    #expect(!bench.machine.isPaused(PartitionID(topic: MachineBench.deferred, partition: 0)))
    bench.pass(.seconds(2))
    #expect(bench.submitted.count == 2)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.count(.results) == 2)
    bench.pass(.seconds(897))
    #expect(bench.submitted.isEmpty)
    bench.pass(.seconds(1))
    #expect(bench.submitted.count == 1)
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [3])
  }

  @Test func newCredentialsDoNotHurryWhatWasParkedUntilSomeTime() {
    var bench = MachineBench()
    bench.assign()
    bench.assign(topic: MachineBench.deferred)
    bench.poll(app: 0, 10)
    bench.poll([deferred(0, due: 1_790_000_900)])
    bench.answerAll(.answered(Response(status: 403, reason: .invalidProviderToken)))
    #expect(bench.machine.isBroken(AppIndex(0)))
    bench.machine.update(apps: bench.machine.apps, renewed: [AppIndex(0)], at: bench.moment)
    bench.pass(.seconds(1))
    #expect(bench.submitted.isEmpty)
    bench.pass(.seconds(899))
    #expect(bench.submitted.count == 1)
  }

  @Test func whatWaitsInMemoryForItsTimeIsBounded() {
    var bench = MachineBench { $0.maxEarly = 2 }
    let id = PartitionID(topic: MachineBench.deferred, partition: 0)
    bench.assign(topic: MachineBench.deferred)
    bench.poll((0..<4).map { deferred($0, due: 1_790_000_010 + Int64($0)) } + [deferred(4, due: 1_790_000_000)])
    #expect(bench.machine.inFlight == 2)
    #expect(bench.machine.isPaused(id))
    bench.pass(.seconds(10))
    #expect(bench.submitted.count == 1)
    bench.pass(.seconds(5))
    #expect(bench.submitted.count == 5)
    #expect(!bench.machine.isPaused(id))
    // Revoked while some wait: nothing is left of them.
    bench.poll([deferred(5, due: 1_790_000_900)])
    bench.answerAll()
    bench.acknowledge()
    bench.machine.revoke([id], isLost: false, at: bench.moment)
    #expect(bench.machine.takeRelease(at: bench.moment)?.commits.map(\.offset) == [5])
    #expect(bench.machine.inFlight == 0)
  }

  /// What is held does not stop the others, but there may be many partitions that begin with it.
  @Test func whileMuchIsHeldAPollBringsLittle() {
    var bench = MachineBench {
      $0.maxEarly = 0
      $0.maxInFlightBytes = 4000
    }
    bench.assign(0..<1, topic: MachineBench.deferred)
    bench.assign()
    bench.poll([deferred(0, due: 1_790_000_010), deferred(1, due: 1_790_000_010)])
    #expect(bench.machine.inFlight == 0 && bench.machine.heldBytes > 200)
    #expect(bench.machine.recordRoom() > 100)
    bench.poll((2..<20).map { deferred($0, due: 1_790_000_010) })
    #expect(bench.machine.heldBytes > 1000)
    #expect(bench.machine.recordRoom() == 65_536 * 20 / bench.machine.heldBytes, "64 KiB of such records")
    bench.poll(app: 1, 1)
    #expect(bench.submitted.count == 1, "another app's request")
    bench.pass(.seconds(10))
    #expect(bench.machine.heldBytes == 0 || bench.machine.inFlight > 5)
    while bench.machine.heldBytes > 0 || !bench.submitted.isEmpty {
      bench.answerAll()
      bench.acknowledge()
      bench.pass(.milliseconds(100))
    }
    #expect(bench.machine.heldBytes == 0)
    #expect(bench.machine.recordRoom() > 100)
    bench.poll([deferred(20, due: 1_790_000_900)])
    bench.machine.revoke(
      [PartitionID(topic: MachineBench.deferred, partition: 0)], isLost: false, at: bench.moment)
    #expect(bench.machine.heldBytes == 0)
  }

  /// Where an app has more that waits for long than may wait in memory.
  @Test func whatWaitsForLongGoesBehindWhatCameAfterItOnceAMinute() {
    var bench = MachineBench { $0.maxEarly = 0 }
    let id = PartitionID(topic: MachineBench.deferred, partition: 0)
    bench.assign(topic: MachineBench.deferred)
    bench.poll([
      deferred(0, due: 1_790_000_900), deferred(1, due: 1_790_000_010), deferred(2, due: 1_790_000_121),
      deferred(3, app: 1, due: 1_790_000_010),
    ])
    bench.pass(.seconds(59))
    #expect(bench.submitted.isEmpty && bench.machine.isPaused(id))
    bench.pass(.seconds(1))
    // Those that are due go out. What is due in a minute anyway is waited for where it lies.
    bench.pass(.seconds(5))
    #expect(bench.submitted.count == 1 && bench.machine.isPaused(id))
    bench.pass(.seconds(56))
    #expect(bench.submitted.count == 3 && !bench.machine.isPaused(id))
    let headers = bench.published.first?.item.extraHeaders ?? []
    #expect(bench.published.map(\.item.topic) == [.deferred])
    #expect(headers.first { $0.name == OwnHeader.notBefore }?.value == "1790000900001")
    #expect(headers.first { $0.name == OwnHeader.attempts }?.value == "1")
    #expect(headers.first { $0.name == OwnHeader.takenUpAt }?.value == "1790000000000")
    bench.answerAll()
    bench.acknowledge()
    #expect(bench.machine.takeCommits().map(\.offset) == [4])
    #expect(bench.machine.inFlight == 0 && bench.machine.inFlight(of: AppIndex(0)) == 0)
  }

  /// Clocks that disagree would have it go round and round.
  @Test func onlySoManyAreParkedAnewInASecond() {
    var bench = MachineBench { $0.maxEarly = 0 }
    bench.assign(topic: MachineBench.deferred)
    bench.pass(.seconds(100))
    bench.poll((0..<600).map { deferred($0, due: 1_790_000_900) })
    for count in [256, 512, 600, 600] {
      #expect(bench.published.count == count)
      bench.pass(.seconds(1))
    }
  }

  @Test func whatHasAKeyWhoseOrderCountsStaysInItsPlace() {
    var bench = MachineBench {
      $0.maxEarly = 0
      $0.isOrderedByKey = true
    }
    bench.assign(topic: MachineBench.deferred)
    bench.pass(.seconds(100))
    bench.poll([deferred(0, due: 1_790_000_900), deferred(1, due: 1_790_000_900)])
    #expect(bench.published.isEmpty)
    bench.pass(.seconds(800))
    #expect(bench.published.isEmpty && bench.submitted.count == 2)
  }

  /// A broken app must not take the places of those that wait for their time.
  @Test func whatIsDueLeavesItsPlaceAmongTheEarlyOnes() {
    var bench = MachineBench { $0.maxEarly = 10 }
    bench.assign()
    bench.assign(topic: MachineBench.deferred)
    bench.poll((0..<10).map { deferred($0, due: 1_790_000_010) })
    bench.poll(app: 0, 10)
    for _ in 0..<10 { bench.answer(.notSent(.unreachable)) }
    bench.pass(.seconds(10))
    #expect(bench.machine.isBroken(AppIndex(0)))
    bench.poll([deferred(10, app: 1, due: 1_790_000_030)])
    #expect(!bench.machine.isPaused(PartitionID(topic: MachineBench.deferred, partition: 0)))
  }

  @Test func whatTheBreakerHoldsEndsWhenItIsGivenUp() {
    var bench = MachineBench()
    bench.assign()
    bench.poll(app: 0, 40)
    for _ in 0..<10 { bench.answer(.notSent(.unreachable)) }
    bench.submitted = []
    #expect(bench.machine.isBroken(AppIndex(0)))
    bench.poll(app: 0, 20, from: 40)
    bench.acknowledge()
    let waiting = bench.machine.waiting
    #expect(waiting >= 20)
    bench.pass(.seconds(3601))
    for _ in 0..<70 { bench.pass(.seconds(1)) }
    bench.acknowledge()
    #expect(bench.machine.waiting == 0)
    #expect(bench.count(.results) + bench.submitted.count >= waiting)
  }

  @Test func aParkedRequestOfATopicThatIsNoLongerReadKeepsItsSource() {
    var bench = MachineBench()
    bench.assign(topic: MachineBench.deferred)
    bench.poll([deferred(0, due: 1_790_000_000, topic: "push.requests.old")])
    bench.answer(.answered(Response(status: 429, reason: .tooManyRequests, retryAfter: .seconds(900))))
    let headers = bench.published.first?.item.extraHeaders ?? []
    #expect(headers.first { $0.name == OwnHeader.sourceTopic }?.value == "push.requests.old")
    #expect(headers.first { $0.name == OwnHeader.attempts }?.value == "2")
    bench.acknowledge()
    bench.poll([deferred(1, due: 1_790_000_000, topic: "push.requests.old")])
    bench.answerAll()
    bench.acknowledge()
    let result = bench.stored(.results).first ?? ""
    #expect(result.contains(#""source":{"topic":"push.requests.old","partition":3,"offset":71,"index":0}"#))
    #expect(result.contains(#""attempts":2"#))
  }

  @Test func aParkedRequestOfAnAppThatIsGoneKeepsItsSource() {
    var bench = MachineBench(apps: 1)
    bench.assign(topic: MachineBench.deferred)
    bench.poll([deferred(0, app: 7, due: 1_790_000_900)])
    bench.acknowledge()
    let result = bench.stored(.results).first ?? ""
    #expect(result.contains(#""status":"invalid""#))
    #expect(result.contains(#""attempts":1"#))
    #expect(result.contains(#""requested_at":1789999000000"#))
    #expect(result.contains(#""source":{"topic":"push.requests","partition":3,"offset":70,"index":0}"#))
    #expect(!result.contains(#""apns_id":null"#))
    let letter = bench.stored.first { $0.topic == .deadLetters }?.headers ?? []
    #expect(letter.first { $0.name == OwnHeader.sourceOffset }?.value == "70")
  }

  /// Credentials that have expired, a backlog that waits for new ones, and an expiration that the app gives to all.
  @Test func whatExpiredWhileTheCredentialsHadDoesNotFloodTheDevices() {
    var bench = MachineBench { $0.maxInFlightPerApp = 50 }
    var rules = bench.machine.apps[AppIndex(0)]
    rules.defaultExpiration = .seconds(60)
    var table = bench.machine.apps
    table.update(rules)
    bench.machine.update(apps: table, at: bench.moment)
    bench.assign()
    bench.assign(topic: MachineBench.deferred)
    bench.poll(app: 0, 10)
    bench.answerAll(.answered(Response(status: 403, reason: .invalidProviderToken)))
    #expect(bench.machine.isBroken(AppIndex(0)))
    bench.poll(app: 0, 200, from: 10)
    #expect(bench.machine.inFlight(of: AppIndex(0)) <= 50)
    bench.acknowledge()
    let parked = bench.stored.filter { $0.topic == .deferred }
    #expect(parked.count == 150)
    bench.moment.instant = bench.moment.instant + .seconds(61)
    bench.moment.time = UnixTime(seconds: 1_790_000_061)
    bench.machine.update(apps: table, renewed: [AppIndex(0)], at: bench.moment)
    bench.pass(.milliseconds(1))
    bench.poll(
      parked.enumerated().map { index, parked in
        MachineBench.back(parked.value, parked.headers, at: Int64(index))
      })
    #expect(bench.submitted.isEmpty)
    bench.acknowledge()
    #expect(bench.stored(.results).count { $0.contains(#""status":"expired""#) } == 200)
    bench.poll([
      MachineBench.record(MachineBench.request(0, id: 900), offset: 900, time: UnixTime(seconds: 1_790_000_061))
    ])
    #expect(bench.submitted.count == 1)
  }
}
