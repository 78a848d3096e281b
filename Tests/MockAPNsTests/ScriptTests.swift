import APNs
import Testing
import Wire

@testable import MockAPNs

struct ScriptTests {
  private func actions(
    _ script: Script, _ tokens: [String], topic: String = "com.example.shop", connection: Int = 1,
    time: Duration = .zero, seed: UInt64 = 1
  ) -> [[Script.Action]] {
    var runner = ScriptRunner(script, seed: seed)
    var found: [Script.Action] = []
    return tokens.map { token in
      runner.findActions(
        token: token.utf8.span, topic: topic.utf8.span, connection: connection, time: time, into: &found)
      return found
    }
  }

  private func hits(_ condition: Script.Condition, _ tokens: [String], seed: UInt64 = 1) -> [Bool] {
    actions(Script([Script.Rule(condition, .silence)]), tokens, seed: seed).map { !$0.isEmpty }
  }

  @Test func `tokens are met whole or by their beginning, in any case`() {
    let tokens = ["aabb", "AABB", "aabbcc", "aabc", "aa"]
    #expect(hits(Script.Condition(token: "aaBB"), tokens) == [true, true, false, false, false])
    #expect(hits(Script.Condition(tokenPrefix: "aabb"), tokens) == [true, true, true, false, false])
  }

  @Test func `counts and bounds`() {
    let tokens = Array(repeating: "aa", count: 6)
    #expect(hits(Script.Condition(every: 3), tokens) == [false, false, true, false, false, true])
    #expect(hits(Script.Condition(times: 2), tokens) == [true, true, false, false, false, false])
    #expect(
      hits(Script.Condition(afterRequests: 2, beforeRequests: 4), tokens) == [false, false, true, true, false, false])
  }

  @Test func `topic, connection and time`() {
    let script = Script([
      Script.Rule(
        Script.Condition(topic: "com.example.shop", connection: 1, from: .seconds(5), until: .seconds(6)), .silence)
    ])
    #expect(actions(script, ["aa"], time: .seconds(5)) == [[.silence]])
    #expect(actions(script, ["aa"], time: .seconds(6)) == [[]])
    #expect(actions(script, ["aa"], time: .milliseconds(4999)) == [[]])
    #expect(actions(script, ["aa"], topic: "x", time: .seconds(5)) == [[]])
    #expect(actions(script, ["aa"], connection: 2, time: .seconds(5)) == [[]])
  }

  @Test func `chances come from the seed`() {
    let tokens = (0..<4000).map { "aa\($0)" }
    let condition = Script.Condition(share: 0.25)
    let first = hits(condition, tokens, seed: 7)
    #expect(first == hits(condition, tokens, seed: 7))
    #expect(first != hits(condition, tokens, seed: 8))
    #expect((800...1200).contains(first.count { $0 }))
  }

  @Test func `a share of the tokens is always the same one`() {
    let tokens = (0..<4000).map { "aa\($0)" }
    let condition = Script.Condition(tokenShare: 0.1)
    let twice = hits(condition, tokens + tokens, seed: 7)
    #expect(Array(twice[..<4000]) == Array(twice[4000...]))
    #expect((300...500).contains(twice[..<4000].count { $0 }))
  }

  @Test func `rules that leave the request alone let later ones decide`() {
    let script = Script([
      Script.Rule(.delay(.zero, upTo: .zero)), Script.Rule(.maxConcurrentStreams(3)), Script.Rule(.silence),
      Script.Rule(.close),
    ])
    #expect(actions(script, ["aa"]) == [[.delay(.zero, upTo: .zero), .maxConcurrentStreams(3), .silence]])
  }

  @Test func `well-known tokens are device tokens`() {
    for known in Script.wellKnownTokens {
      let isToken = DeviceToken.isWellFormed(known.prefix.utf8.span)
      #expect(isToken, "\(known.prefix)")
      #expect(known.prefix.utf8.count == 8)
      #expect(actions(.wellKnown, [known.prefix + "00"]) == [[known.action]])
    }
  }

  @Test func `faults of strength 0 do nothing`() {
    let tokens = (0..<2000).map { "aa\($0)" }
    #expect(actions(.faults(strength: 0), tokens).allSatisfy { $0.isEmpty })
    #expect(actions(.faults(strength: 5), tokens).contains { !$0.isEmpty })
  }

  @Test func `reads a script file`() throws {
    let json = """
      {"rules": [
        {"token_prefix": "dead", "status": 410, "reason": "Unregistered", "timestamp": 1783245053444},
        {"share": 0.5, "every": 2, "times": 3, "from": 1.5, "until": 2, "status": 503, "retry_after": 7},
        {"delay_ms": 20, "delay_max_ms": 30}, {"reset": 7}, {"silent": "connection"}, {"disconnect": "abort"},
        {"goaway": 2, "last_stream": "previous", "debug": "{\\"reason\\":\\"Shutdown\\"}", "close": true},
        {"goaway": 0, "last_stream": 5}, {"max_concurrent_streams": 4}
      ]}
      """
    let script = try Script(json: Array(json.utf8))
    #expect(
      script.rules == [
        Script.Rule(
          Script.Condition(tokenPrefix: "dead"),
          .answer(Answer(.unregistered, timestamp: UnixTime(milliseconds: 1_783_245_053_444)))),
        Script.Rule(
          Script.Condition(from: .milliseconds(1500), until: .seconds(2), every: 2, share: 0.5, times: 3),
          .answer(Answer(status: 503, retryAfter: 7))),
        Script.Rule(.delay(.milliseconds(20), upTo: .milliseconds(30))), Script.Rule(.reset(code: 7)),
        Script.Rule(.silentConnection), Script.Rule(.abort),
        Script.Rule(.goAway(code: 2, last: .previous, debugData: #"{"reason":"Shutdown"}"#, closes: true)),
        Script.Rule(.goAway(code: 0, last: .number(5), debugData: "", closes: false)),
        Script.Rule(.maxConcurrentStreams(4)),
      ])
  }

  @Test(arguments: [
    "", "[]", #"{"rule": []}"#, #"{"rules": [{}]}"#, #"{"rules": [{"reset": 7, "goaway": 0}]}"#,
    #"{"rules": [{"status": "410"}]}"#, #"{"rules": [{"status": 99}]}"#, #"{"rules": [{"silent": "both"}]}"#,
    #"{"rules": [{"every": 0, "reset": 1}]}"#, #"{"rules": [{"colour": 1, "reset": 1}]}"#,
  ])
  func `refuses a script that says nothing clear`(json: String) {
    #expect(throws: ScriptError.self) { try Script(json: Array(json.utf8)) }
  }

  @Test func `answers as Apple writes them`() {
    func text(_ answer: Answer) -> String { String(decoding: answer.content(at: UnixTime(seconds: 5)), as: UTF8.self) }
    #expect(text(.accepted) == "")
    #expect(text(Answer(.badDeviceToken)) == #"{"reason":"BadDeviceToken"}"#)
    #expect(text(Answer(.unregistered)) == #"{"reason":"Unregistered","timestamp":5000}"#)
    #expect(text(Answer(status: 502, body: Array("x".utf8))) == "x")
  }
}

struct JournalTests {
  @Test func `ids are counted one by one`() {
    let journal = Journal(limits: Journal.Limits(identifiers: 5000))
    for round in 1...3 {
      for number in 1...2000 where number % round == 0 {
        let id = UUID(high: 0, low: UInt64(number))
        journal.received(id, topic: -1, openStreams: round, providerTokens: 1)
        if round != 2 { journal.answered(.accepted, id, place: nil) }
      }
    }
    let six = journal.tally(of: UUID(high: 0, low: 6))
    #expect(six.requests == 3 && six.accepted == 2)
    let five = journal.tally(of: UUID(high: 0, low: 5))
    #expect(five.requests == 1 && five.accepted == 1)
    #expect(journal.tally(of: UUID(high: 1, low: 6)).requests == 0)
    let counts = journal.counts
    #expect(counts.identifiers == 2000)
    #expect(counts.repeatedIdentifiers == 1333, "those that 2 or 3 divides")
    #expect(counts.identifiersAcceptedRepeatedly == 666)
    #expect(counts.requests == 2000 + 1000 + 666)
    #expect(counts.mostOpenStreams == 3)
    #expect(counts.uncountedIdentifiers == 0)
  }

  @Test func `ids beyond the limit are told`() {
    let journal = Journal(limits: Journal.Limits(identifiers: 10))
    for number in 0..<15 {
      journal.received(UUID(high: 1, low: UInt64(number)), topic: -1, openStreams: 1, providerTokens: 0)
    }
    #expect(journal.counts.identifiers == 10)
    #expect(journal.counts.uncountedIdentifiers == 5)
    #expect(journal.tally(of: UUID(high: 1, low: 9)).requests == 1)
    #expect(journal.tally(of: UUID(high: 1, low: 12)).requests == 0)
  }

  @Test func `topics are counted by name`() {
    let journal = Journal(limits: Journal.Limits(topics: 1))
    let first = journal.number(ofTopic: "a")
    #expect(journal.number(ofTopic: "a") == first)
    #expect(journal.number(ofTopic: "b") == -1)
    journal.received(nil, topic: first, openStreams: 1, providerTokens: 0)
    journal.answered(Answer(.badDeviceToken), nil, place: nil)
    #expect(journal.counts.byTopic == ["a": 1])
    #expect(journal.counts.byStatus == [400: 1])
    #expect(journal.counts.byReason == ["BadDeviceToken": 1])
    let json = String(decoding: journal.json(), as: UTF8.self)
    #expect(json.contains(#""by_reason":{"BadDeviceToken":1}"#))
  }
}
