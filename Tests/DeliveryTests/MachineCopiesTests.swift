import APNs
import Testing
import Wire

@testable import Delivery

/// Several records on the deferred topic that stand for one request.
@Suite struct MachineCopiesTests {
  private let ok = SendResult.answered(Response(status: 200))
  private let later = SendResult.answered(
    Response(status: 429, reason: .tooManyRequests, retryAfter: .seconds(900)))

  /// A request was parked, and its record on the deferred topic is due.
  private func parked() throws -> (bench: MachineBench, record: (Int64) -> Record) {
    var bench = MachineBench()
    bench.assign()
    bench.assign(topic: MachineBench.deferred)
    bench.poll(app: 0, 1)
    bench.answer(later)
    bench.acknowledge()
    let record = try last(bench)
    bench.pass(.seconds(1000))
    return (bench, record)
  }

  /// What was parked last, at any offset of the deferred topic.
  private func last(_ bench: MachineBench) throws -> (Int64) -> Record {
    let stored = try #require(bench.stored.last { $0.topic == .deferred })
    return { MachineBench.back(stored.value, stored.headers, at: $0) }
  }

  private func commit(_ bench: inout MachineBench) -> Int64? {
    bench.machine.takeCommits().last { $0.partition.topic == MachineBench.deferred }?.offset
  }

  @Test func aCopyIsSettledWithTheOneThatIsInFlight() throws {
    var (bench, record) = try parked()
    bench.poll([record(0), record(1)])
    #expect(bench.submitted.count == 1)
    #expect((commit(&bench) ?? 0) == 0)
    bench.answer(ok)
    bench.acknowledge()
    #expect(commit(&bench) == 2)
    #expect(bench.count(.results) == 1)
    // And one that comes when all is over.
    bench.poll([record(2)])
    #expect(bench.submitted.isEmpty)
    #expect(commit(&bench) == 3)
  }

  @Test func anEarlierCopyIsLetGoOnceALaterOneIsStored() throws {
    var (bench, record) = try parked()
    bench.poll([record(0)])
    bench.answer(later)
    bench.acknowledge()
    let second = try last(bench)
    bench.poll([record(1)])
    #expect(bench.submitted.isEmpty)
    #expect(bench.published.isEmpty)
    #expect(commit(&bench) == 2)
    // The later one is the request now.
    bench.pass(.seconds(1000))
    bench.poll([second(2)])
    bench.answer(ok)
    bench.acknowledge()
    #expect(bench.count(.results) == 1)
    #expect(commit(&bench) == 3)
  }

  /// It may be read before Kafka's word on it is here; it must not be settled by that word.
  @Test func whatAPushWasParkedAsIsNoCopyOfIt() throws {
    var (bench, record) = try parked()
    bench.poll([record(0)])
    bench.answer(later)
    let headers = try #require(bench.published.last).item.extraHeaders
    let value = bench.published.last?.value
    bench.poll([MachineBench.back(value, headers, at: 1)])
    bench.acknowledge()
    #expect(commit(&bench) == 1)
    bench.pass(.seconds(1000))
    bench.answer(ok)
    bench.acknowledge()
    #expect(commit(&bench) == 2)
  }

  /// Another request has the same offset: the topic was made anew.
  @Test func anotherRequestIsNoCopy() throws {
    var (bench, record) = try parked()
    let time = bench.moment.time
    bench.poll([record(0)])
    let other = MachineBench.record(
      MachineBench.request(0, id: 7), offset: 1, topic: MachineBench.deferred,
      headers: try #require(bench.stored.last { $0.topic == .deferred }).headers.map { header in
        (header.name, Array((header.name == OwnHeader.requestedAt ? String(time.milliseconds) : header.value).utf8))
      })
    bench.poll([other])
    #expect(bench.submitted.count == 2)
  }

  /// What was stored may be gone when offsets begin again.
  @Test func afterARewindNothingIsKnownToBeStored() throws {
    var (bench, record) = try parked()
    bench.poll([record(5)])
    bench.answer(later)
    bench.acknowledge()
    bench.poll([record(0)])
    // Its device is still to be left alone, so that it waits again; but it was not let go.
    #expect(bench.published.map(\.item.topic) == [.deferred])
  }

  /// The same where another record shows that they do.
  @Test func afterARewindNothingIsKnownToBeStoredOfThoseThatFollow() throws {
    var (bench, record) = try parked()
    bench.poll([record(5)])
    bench.answer(later)
    bench.acknowledge()
    let other = MachineBench.record(MachineBench.request(1, id: 7), offset: 0, topic: MachineBench.deferred)
    bench.poll([other, record(1)])
    #expect(bench.submitted.count == 1)
    #expect(bench.published.map(\.item.topic) == [.deferred])
  }

  /// The times tell which of two copies is the later one.
  @Test func whatIsParkedOnceMoreIsDueLaterThanBefore() throws {
    var (bench, record) = try parked()
    let due = bench.stored.last?.headers.first { $0.name == OwnHeader.notBefore }
    let first = try #require(due.flatMap { Int64($0.value) })
    bench.poll([record(0)])
    bench.answer(later)
    let second = bench.published.last?.item.extraHeaders.first { $0.name == OwnHeader.notBefore }
    #expect(try #require(second.flatMap { Int64($0.value) }) > first)
  }
}
