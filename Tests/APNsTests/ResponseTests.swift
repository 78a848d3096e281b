import APNs
import Testing
import Wire

@Suite struct ResponseTests {
  private func parse(
    _ status: UInt16, _ body: String = "", apnsID: String? = nil, uniqueID: String? = nil, retryAfter: String? = nil
  ) -> Response {
    let body = Array(body.utf8)
    let apnsID = apnsID.map { Array($0.utf8) }
    let uniqueID = uniqueID.map { Array($0.utf8) }
    let retryAfter = retryAfter.map { Array($0.utf8) }
    return Response.parse(
      status: status, body: body.span, apnsID: apnsID?.span, uniqueID: uniqueID?.span, retryAfter: retryAfter?.span)
  }

  @Test func aPlainSuccessHasNothingButItsID() {
    let response = parse(200, apnsID: "5f0c2a4e-0000-4000-8000-00000000000a")
    #expect(response.verdict == .delivered)
    #expect(response.apnsID == UUID(high: 0x5f0c_2a4e_0000_4000, low: 0x8000_0000_0000_000a))
    #expect(response.reason == nil && response.timestamp == nil && response.unknownReason == nil)
  }

  @Test func theIDMayComeInUpperCase() {
    let response = parse(200, apnsID: " 5F0C2A4E-0000-4000-8000-00000000000A ")
    #expect(response.apnsID == UUID(high: 0x5f0c_2a4e_0000_4000, low: 0x8000_0000_0000_000a))
    #expect(parse(200, apnsID: "not-a-uuid").apnsID == nil)
    #expect(parse(200, apnsID: "").apnsID == nil)
  }

  @Test func everyReasonIsReadFromItsBody() {
    for row in ReasonTests.rows {
      let response = parse(row.status, #"{"reason":"\#(row.text)"}"#)
      #expect(response.reason == row.reason)
      #expect(response.unknownReason == nil)
      #expect(response.verdict == row.verdict)
      #expect(response.namesDeadToken == (row.verdict == .invalidToken))
    }
  }

  @Test(
    arguments: [
      (#"{"reason":"Unregistered","timestamp":1783245053444}"#, 1_783_245_053_444),
      (#"{ "timestamp" : 1783245053444 , "reason" : "Unregistered" }"#, 1_783_245_053_444),
      (#"{"reason":"Unregistered","timestamp":1783245053}"#, 1_783_245_053_000),
      (#"{"reason":"Unregistered","timestamp":"1783245053444"}"#, 1_783_245_053_444),
      (#"{"reason":"Unregistered","timestamp":99999999999}"#, 99_999_999_999_000),
      (#"{"reason":"Unregistered","timestamp":100000000000}"#, 100_000_000_000),
    ] as [(String, Int64)])
  func timestampsAreMilliseconds(body: String, milliseconds: Int64) {
    let response = parse(410, body)
    #expect(response.reason == .unregistered)
    #expect(response.timestamp == UnixTime(milliseconds: milliseconds))
  }

  @Test(arguments: ["0", "-5", "null", "true", "1.5", "1e3", "99999999999999999999999", "9223372036854775807", "[]"])
  func whatIsNoTimestampIsNone(text: String) {
    let response = parse(410, #"{"reason":"ExpiredToken","timestamp":\#(text)}"#)
    #expect(response.reason == .expiredToken)
    #expect(response.timestamp == nil)
  }

  @Test(arguments: [
    "", "<html>502</html>", "[]", "\"Unregistered\"", "{}", #"{"reason":5}"#, "\u{0}\u{1}", #"{"reason":"  "}"#,
  ])
  func aBodyWithoutAReasonLeavesTheStatus(body: String) {
    let response = parse(502, body)
    #expect(response.status == 502)
    #expect(response.reason == nil && response.unknownReason == nil)
    #expect(response.verdict == .retry)
    #expect(parse(410, body).verdict == .rejected)
  }

  @Test func whatIsNoReasonKeepsItsTextInBounds() {
    #expect(parse(502, "<html>\r\n<b>Bad Gateway</b>\u{1}é").bodyText == "<html>  <b>Bad Gateway</b>???")
    #expect(parse(500, #"{"error":"upstream"}"#).bodyText == #"{"error":"upstream"}"#)
    #expect(parse(502, String(repeating: "x", count: 5000)).bodyText?.utf8.count == Response.longestBodyText)
    #expect(parse(502, " \n").bodyText == nil && parse(502, "").bodyText == nil)
    #expect(parse(410, #"{"reason":"Unregistered"}"#).bodyText == nil)
    #expect(parse(400, #"{"reason":"BrandNew"}"#).bodyText == nil)
  }

  @Test func aBodyThatBreaksOffCountsAsFarAsItGoes() {
    #expect(parse(410, #"{"reason":"Unregistered","timest"#).reason == .unregistered)
    #expect(parse(410, #"{"reason":"Unregis"#).reason == nil)
  }

  @Test func unknownReasonsKeepTheirTextInBounds() {
    let response = parse(400, #"{"reason":" SomethingNew "}"#)
    #expect(response.reason == .unknown)
    #expect(response.unknownReason == "SomethingNew")
    #expect(response.verdict == .rejected)
    let long = parse(503, #"{"reason":"\#(String(repeating: "x", count: 5000))"}"#)
    #expect(long.unknownReason == String(repeating: "x", count: Response.longestText))
    #expect(long.verdict == .retry)
    #expect(parse(400, #"{"reason":"a\u0007b\u00e9"}"#).unknownReason == "a?b??")
  }

  @Test func escapesAndDuplicatesAreReadAsJSONHasIt() {
    #expect(parse(400, #"{"re\u0061son":"Bad\u0054opic"}"#).reason == .badTopic)
    let twice = parse(400, #"{"reason":"New","reason":"BadTopic","other":{"reason":"PayloadEmpty"}}"#)
    #expect(twice.reason == .badTopic)
    #expect(twice.unknownReason == nil)
    #expect(parse(400, #"{"reason":"\ud800"}"#).reason == nil)
  }

  @Test func theUniqueIDIsBoundedText() {
    #expect(parse(200, uniqueID: " a1b2 ").uniqueID == "a1b2")
    #expect(parse(200, uniqueID: "").uniqueID == nil)
    #expect(parse(200, uniqueID: String(repeating: "y", count: 300)).uniqueID?.utf8.count == Response.longestText)
  }

  @Test func retryAfterIsSecondsInBounds() {
    #expect(parse(503, retryAfter: "30").retryAfter == .seconds(30))
    #expect(parse(503, retryAfter: "0").retryAfter == .zero)
    #expect(parse(503, retryAfter: "999999999").retryAfter == Response.longestRetryAfter)
    for text in ["", "-1", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", "1.5", "99999999999999999999"] {
      #expect(parse(503, retryAfter: text).retryAfter == nil)
    }
  }

  @Test(
    arguments: [
      ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
      ("Tue, 29 Feb 2028 23:59:59 GMT", 1_835_481_599), ("Wed, 31 Dec 2098 00:00:00 GMT", 4_070_822_400),
      (" Wed, 21 Oct 2026 07:28:00 GMT ", 1_792_567_680), ("Wed, 21 Okt 2026 07:28:00 GMT", nil),
      ("Wed, 21 Oct 2026 24:00:00 GMT", nil), ("Wed, 2x Oct 2026 07:28:00 GMT", nil),
      ("Wed, 21 Oct 2026 07:28:00 UTC", nil), ("Sunday, 06-Nov-94 08:49:37 GMT", nil), ("", nil),
    ] as [(String, Int64?)])
  func retryAfterMayBeADate(text: String, seconds: Int64?) {
    let response = parse(503, retryAfter: text)
    #expect(response.retryAt == seconds.map { UnixTime(seconds: $0) })
    #expect(response.retryAfter == nil)
    guard let seconds else { return }
    #expect(response.askedWait(at: UnixTime(seconds: seconds - 90)) == .seconds(90))
    #expect(response.askedWait(at: UnixTime(seconds: seconds + 90)) == .zero)
    #expect(response.askedWait(at: UnixTime(seconds: seconds - 100_000)) == Response.longestRetryAfter)
  }

  @Test func theReasonOfAGoAwayIsReadWhereThereIsOne() {
    func reason(_ data: [UInt8]) -> Reason? { Reason(goAwayData: data.span) }
    #expect(reason(Array(#"{"reason":"Shutdown"}"#.utf8)) == .shutdown)
    #expect(reason(Array(#"{"reason":"Sunset"}"#.utf8)) == .unknown)
    #expect(reason([]) == nil)
    var random = SeededRandom(seed: 8)
    #expect(reason((0..<8192).map { _ in UInt8.random(in: 0...255, using: &random) }) == nil)
  }
}
