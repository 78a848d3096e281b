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
}
