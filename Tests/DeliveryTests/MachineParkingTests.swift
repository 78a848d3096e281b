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
    let names = parked.item.headers.map { String(decoding: parked.item.headerStorage[$0.name.indices], as: UTF8.self) }
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
    var limits = DeliveryMachine.Limits()
    limits.maxInFlightPerApp = 10
    var bench = MachineBench(limits: limits)
    bench.assign()
    bench.poll(app: 0, 10)
    bench.pass(.seconds(1))
    bench.poll(app: 0, 1, from: 10, extra: extra)
    return bench
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
}
