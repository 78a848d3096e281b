import Testing
import Wire

@testable import Transport

@Suite struct HTTP2SessionTests {
  @Test func requestAndResponseArriveWhole() throws {
    let pair = try SessionPair()
    try pair.run()
    pair.serverHeard.onRequest = { [unowned pair] in pair.answer($0.stream, 200, id: "ABC") }
    #expect(pair.submit(7, body: #"{"aps":{}}"#))
    try pair.run()

    let seen = try #require(pair.serverHeard.seen.first)
    #expect(seen.method == "POST")
    #expect(seen.path == "/3/device/7")
    #expect(seen.body == #"{"aps":{}}"#)
    #expect(
      seen.fields.map(\.name) == [
        ":method", ":scheme", ":authority", ":path", "authorization", "apns-topic", "apns-id",
      ])
    #expect(pair.clientHeard.words == [7: [.response(status: 200, body: "")]])
    #expect(pair.clientHeard.fields[7]?.text(of: "apns-id") == "ABC")
    #expect(pair.client.streams.count == 0)
    #expect(pair.server.streams.count == 0)
  }

  @Test(arguments: [1, 3, 10, 1000]) func hundredsOfStreamsInPiecesOfAnySize(piece: Int) throws {
    let pair = try SessionPair()
    pair.piece = piece
    try pair.run()
    pair.serverHeard.onRequest = { [unowned pair] in pair.answer($0.stream, 400, #"{"reason":"\#($0.path)"}"#) }
    for tag in 0..<300 as Range<UInt64> { #expect(pair.submit(tag, body: "body of \(tag)")) }
    try pair.run()
    #expect(pair.clientHeard.words.count == 300)
    for tag in 0..<300 as Range<UInt64> {
      #expect(
        pair.clientHeard.words[tag] == [.response(status: 400, body: #"{"reason":"/3/device/\#(tag)"}"#)])
    }
    #expect(Set(pair.serverHeard.seen.map(\.body)).count == 300)
  }

  @Test func smallWindowsDelayAndNeverFail() throws {
    var narrow = HTTP2Limits()
    narrow.streamWindow = 100
    narrow.connectionWindow = 65_535
    narrow.bodySize = 8192
    let pair = try SessionPair(client: narrow, server: narrow)
    try pair.run()
    let large = String(repeating: "x", count: 4096)
    pair.serverHeard.onRequest = { [unowned pair] in
      pair.answer($0.stream, 200, String(repeating: "y", count: $0.bodyLength))
    }
    for tag in 0..<100 as Range<UInt64> { #expect(pair.submit(tag, body: large)) }
    try pair.run()
    #expect(pair.clientHeard.words.count == 100)
    let expected = [ClientRecorder.Word.response(status: 200, body: String(repeating: "y", count: 4096))]
    #expect(pair.clientHeard.words.values.allSatisfy { $0 == expected })
  }

  @Test func limitsFromSettingsAreObeyedUpAndDownAndAtZero() throws {
    var one = HTTP2Limits()
    one.concurrentStreams = 1
    let pair = try SessionPair(server: one)
    try pair.run()
    #expect(pair.clientHeard.limits == [1])
    #expect(pair.submit(1))
    #expect(!pair.submit(2))
    try pair.run()
    for limit in [1000, 0, 100] {
      pair.server.announce(concurrentStreams: limit)
      try pair.run()
    }
    #expect(pair.clientHeard.limits == [1, 1000, 0, 100])
    #expect(pair.serverHeard.settingsAcknowledgements == 4)
    var taken = 0
    for tag in 10..<300 as Range<UInt64> where pair.submit(tag) { taken += 1 }
    #expect(taken == 99)
    pair.server.announce(concurrentStreams: 0)
    try pair.run()
    for seen in pair.serverHeard.seen { pair.answer(seen.stream, 200) }
    try pair.run()
    #expect(pair.clientHeard.words.count == 100)
    #expect(!pair.submit(400))
  }

  @Test func oneStreamOnlyUntilSettingsArrive() throws {
    let pair = try SessionPair()
    #expect(pair.submit(1))
    #expect(!pair.submit(2))
    try pair.run()
    #expect(pair.submit(2))
  }

  @Test func ourOwnBoundOnStreamsHolds() throws {
    var bounded = HTTP2Limits()
    bounded.concurrentStreams = 5
    let pair = try SessionPair(client: bounded)
    try pair.run()
    let taken = (0..<20 as Range<UInt64>).filter { pair.submit($0) }
    #expect(taken.count == 5)
  }

  @Test(arguments: [HTTP2Code.refusedStream, HTTP2Code.internalError, HTTP2Code.cancel, HTTP2Code.noError])
  func resetCodesAreTold(code: UInt32) throws {
    let pair = try SessionPair()
    try pair.run()
    #expect(pair.submit(5))
    try pair.run()
    pair.server.reset(slot: try #require(pair.serverHeard.seen.first).stream.slot, code: code)
    try pair.run()
    let expected: StreamFailure = code == HTTP2Code.refusedStream ? .refused : .reset(code: code)
    #expect(pair.clientHeard.words == [5: [.failed(expected)]])
    #expect(pair.client.streams.count == 0)
  }

  @Test func manyResetsByTheServerAreNoAttack() throws {
    let pair = try SessionPair()
    try pair.run()
    for round in 0..<10 as Range<UInt64> {
      for tag in 0..<300 as Range<UInt64> { #expect(pair.submit(round * 300 + tag)) }
      try pair.run()
      for seen in pair.serverHeard.seen.suffix(299) { pair.server.reset(slot: seen.stream.slot, code: 7) }
      pair.answer(pair.serverHeard.seen[pair.serverHeard.seen.count - 300].stream, 200)
      try pair.run()
    }
    #expect(pair.clientHeard.words.count == 3000)
    #expect(pair.serverHeard.goAways.isEmpty)
    #expect(pair.clientHeard.words.values.filter { $0 == [.failed(.refused)] }.count == 2990)
  }

  @Test func goAwayTwiceLowersTheLastStream() throws {
    let pair = try SessionPair()
    try pair.run()
    for tag in 0..<6 as Range<UInt64> { #expect(pair.submit(tag)) }  // streams 1, 3 ... 11
    try pair.run()
    pair.server.goAway(lastStream: 7, code: 0, debugData: Array(#"{"reason":"Shutdown"}"#.utf8))
    try pair.run()
    #expect(pair.clientHeard.words == [4: [.failed(.refused)], 5: [.failed(.refused)]])
    #expect(!pair.submit(9))
    pair.server.goAway(lastStream: 3, code: 2)
    try pair.run()
    #expect(pair.clientHeard.words.keys.sorted() == [2, 3, 4, 5])
    #expect(pair.clientHeard.goAways.map(\.lastStream) == [7, 3])
    #expect(pair.clientHeard.goAways.map(\.code) == [0, 2])
    #expect(pair.clientHeard.goAways[0].debugData == Array(#"{"reason":"Shutdown"}"#.utf8))
    for seen in pair.serverHeard.seen.prefix(2) { pair.answer(seen.stream, 200) }
    try pair.run()
    #expect(pair.clientHeard.words[0] == [.response(status: 200, body: "")])
    #expect(pair.clientHeard.words[1] == [.response(status: 200, body: "")])
    #expect(pair.client.isFinished)
  }

  @Test func requestsNotYetFramedAtGoAwayAreRefused() throws {
    let pair = try SessionPair()
    try pair.run()
    pair.server.goAway(code: 0)
    #expect(pair.submit(1))  // waits in the session; GOAWAY arrives before it is framed
    try pair.moveToClient()
    try pair.run()
    #expect(pair.clientHeard.words == [1: [.failed(.refused)]])
    #expect(pair.serverHeard.seen.isEmpty)
  }

  @Test func debugDataIsCutAtTheLimit() throws {
    let pair = try SessionPair()
    try pair.run()
    pair.server.goAway(code: 0, debugData: [UInt8](repeating: 65, count: 8000))
    try pair.run()
    #expect(pair.clientHeard.goAways.first?.debugData.count == 4096)
  }

  @Test func cancelledRequestsAreNeverHeardOf() throws {
    let pair = try SessionPair()
    try pair.run()
    for tag in 1...3 as ClosedRange<UInt64> { #expect(pair.submit(tag)) }
    #expect(pair.client.cancel(tag: 2))  // before it is framed
    try pair.run()
    #expect(pair.serverHeard.seen.map(\.path) == ["/3/device/1", "/3/device/3"])
    #expect(pair.client.cancel(tag: 3))
    #expect(!pair.client.cancel(tag: 3))
    pair.answer(pair.serverHeard.seen[1].stream, 200)  // crosses the reset
    pair.answer(pair.serverHeard.seen[0].stream, 200)
    try pair.run()
    #expect(pair.clientHeard.words == [1: [.response(status: 200, body: "")]])
    #expect(pair.client.streams.count == 0)
  }

  @Test func cancelFromWithinAResponseHoldsForTheSameBatch() throws {
    let pair = try SessionPair()
    try pair.run()
    #expect(pair.submit(1))
    #expect(pair.submit(2))
    try pair.run()
    pair.clientHeard.onResponse = { [unowned pair] _ in #expect(pair.client.cancel(tag: 2)) }
    for seen in pair.serverHeard.seen { pair.answer(seen.stream, 200) }
    try pair.run()
    #expect(pair.clientHeard.words.keys.sorted() == [1])
    #expect(pair.client.streams.count == 0)
  }

  @Test func lostConnectionGivesEachTagOneWord() throws {
    let pair = try SessionPair()
    try pair.run()
    for tag in 1...4 as ClosedRange<UInt64> { #expect(pair.submit(tag)) }
    try pair.run()
    pair.answer(pair.serverHeard.seen[0].stream, 200)
    try pair.run()
    #expect(pair.client.cancel(tag: 4))
    pair.client.failAll(pair.clientHeard)
    pair.client.failAll(pair.clientHeard)
    #expect(
      pair.clientHeard.words == [
        1: [.response(status: 200, body: "")], 2: [.failed(.connectionLost)], 3: [.failed(.connectionLost)],
      ])
    #expect(!pair.submit(9))
  }

  @Test func earlyAnswerFreesTheStreamWithoutTheRestOfTheBody() throws {
    var narrow = HTTP2Limits()
    narrow.streamWindow = 10
    let pair = try SessionPair(server: narrow)
    try pair.run()
    #expect(pair.submit(1, body: String(repeating: "x", count: 5000)))
    try pair.client.produce(limit: 1 << 20)
    // The server answers 413 after the first DATA frame: by hand, for nghttp2's server waits for the whole request.
    let head: [UInt8] = [0, 0, 5, 1, 5, 0, 0, 0, 1, 0x08, 3] + Array("413".utf8)
    try pair.feed(head, to: pair.client) { pair.client.handEvents(toClient: pair.clientHeard) }
    #expect(pair.clientHeard.words == [1: [.response(status: 413, body: "")]])
    try pair.client.produce(limit: 1 << 20)
    pair.client.handEvents(toClient: pair.clientHeard)
    #expect(pair.client.streams.count == 0)
    #expect(pair.clientHeard.words[1]?.count == 1)
  }

  @Test(arguments: [1000, 1001, 50_000]) func bodiesOverTheLimitAreDeliveredCutAtTheClient(length: Int) throws {
    var small = HTTP2Limits()
    small.bodySize = 1000
    let pair = try SessionPair(client: small)
    try pair.run()
    pair.serverHeard.onRequest = { [unowned pair] in
      pair.answer($0.stream, 502, String(repeating: "z", count: length))
    }
    for tag in 1...3 as ClosedRange<UInt64> {
      #expect(pair.submit(tag))
      try pair.run()
      #expect(pair.clientHeard.words[tag] == [.response(status: 502, body: String(repeating: "z", count: 1000))])
    }
  }

  @Test func bodiesOverTheLimitAreDeliveredCutAtTheServer() throws {
    var small = HTTP2Limits()
    small.bodySize = 100
    let pair = try SessionPair(server: small)
    try pair.run()
    #expect(pair.submit(1, body: String(repeating: "z", count: 5000)))
    try pair.run()
    #expect(pair.serverHeard.seen.first?.body.utf8.count == 100)
    #expect(pair.serverHeard.seen.first?.bodyLength == 5000)
  }

  @Test func headerFloodsResetOnlyTheirStream() throws {
    var small = HTTP2Limits()
    small.headerListSize = 2000
    let pair = try SessionPair(client: small)
    try pair.run()
    #expect(pair.submit(1))
    #expect(pair.submit(2))
    try pair.run()
    var flood = HeaderList()
    for number in 0..<100 { flood.append(customName: "x-\(number)", value: "some value of some length") }
    let slot = pair.serverHeard.seen[0].stream.slot
    #expect(pair.server.submitResponse(slot: slot, status: 200, fields: flood, body: Bytes([])))
    pair.answer(pair.serverHeard.seen[1].stream, 200, "fine")
    try pair.run()
    #expect(
      pair.clientHeard.words == [
        1: [.failed(.reset(code: HTTP2Code.internalError))], 2: [.response(status: 200, body: "fine")],
      ])
  }

  @Test func pingsAreAnsweredAndCounted() throws {
    let pair = try SessionPair()
    try pair.run()
    pair.client.ping()
    pair.client.ping()
    try pair.run()
    #expect(pair.clientHeard.pings == 2)
    // An acknowledgement that nobody asked for is ignored.
    try pair.feed([0, 0, 8, 6, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8], to: pair.client) {
      pair.client.handEvents(toClient: pair.clientHeard)
    }
    #expect(pair.clientHeard.pings == 2)
  }

  @Test func floodOfPingsWithoutReadingEndsTheConnection() throws {
    let pair = try SessionPair()
    try pair.run()
    let ping: [UInt8] = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    let flood = (0..<400).flatMap { _ in ping }
    #expect(throws: HTTP2SessionError.self) { try pair.feed(flood, to: pair.client) {} }
  }

  @Test func outputStopsAtTheLimitAndGoesOn() throws {
    let pair = try SessionPair()
    try pair.run()
    for tag in 0..<200 as Range<UInt64> { #expect(pair.submit(tag, body: String(repeating: "b", count: 1000))) }
    try pair.client.produce(limit: 10_000)
    #expect(pair.client.output.count >= 10_000)
    #expect(pair.client.output.count < 10_000 + 17_000)
    #expect(pair.client.wantsToSend)
    pair.serverHeard.onRequest = { [unowned pair] in pair.answer($0.stream, 200) }
    try pair.run()
    #expect(pair.clientHeard.words.count == 200)
  }

  /// HPACK's table holds what comes again; what differs each time must not push it out.
  @Test func fieldsThatDifferEachTimeLeaveTheTableAlone() throws {
    let pair = try SessionPair()
    try pair.run()
    pair.serverHeard.onRequest = { [unowned pair] in pair.answer($0.stream, 200) }
    var sizes: [Int] = []
    for tag in 1000..<1300 as Range<UInt64> {
      #expect(pair.submit(tag))
      try pair.client.produce(limit: 1 << 20)
      sizes.append(pair.client.output.count)
      try pair.run()
    }
    #expect(sizes[0] > sizes[1])
    // Digits differ a little in length in Huffman's code.
    let rest = sizes.dropFirst()
    #expect((rest.max() ?? 0) - (rest.min() ?? 0) <= 4)
  }

  @Test func slotsAndTheirBuffersAreUsedAgain() throws {
    let pair = try SessionPair()
    try pair.run()
    pair.serverHeard.onRequest = { [unowned pair] in pair.answer($0.stream, 200) }
    for tag in 0..<1000 as Range<UInt64> {
      #expect(pair.submit(tag))
      try pair.run()
    }
    #expect(pair.client.streams.slots.count == 1)
    #expect(pair.server.streams.slots.count == 1)
  }

  @Test func contractOfTheServersStreams() throws {
    let pair = try SessionPair()
    try pair.run()
    #expect(pair.submit(1))
    try pair.run()
    let stream = try #require(pair.serverHeard.seen.first).stream
    #expect(pair.server.knows(stream))
    #expect(pair.answer(stream, 200))
    #expect(!pair.answer(stream, 200))
    try pair.run()
    #expect(!pair.server.knows(stream))
    #expect(pair.serverHeard.closed.map(\.answered) == [true])
    #expect(pair.submit(2))
    try pair.run()
    #expect(pair.client.cancel(tag: 2))
    try pair.run()
    #expect(pair.serverHeard.closed.map(\.answered) == [true, false])
  }
}
