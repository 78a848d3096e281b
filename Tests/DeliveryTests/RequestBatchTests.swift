import APNs
import Delivery
import Testing
import Wire

@Suite struct RequestBatchTests {
  private static func batch(_ tokens: String, _ more: String = "") -> String {
    #"{"app":"shop","payload":{"aps":{}},"tokens":\#(tokens)\#(more)}"#
  }

  private static func tokens(_ count: Int) -> String {
    "[" + (0..<count).map { "\"ab\(String(1000 + $0))\"" }.joined(separator: ",") + "]"
  }

  @Test(arguments: [1, 2, 1000])
  func `a batch has its tokens in order`(_ count: Int) throws {
    let bench = DecoderBench()
    let request = try #require(bench.request(Self.batch(Self.tokens(count))))
    #expect(request.tokens.map { request.text($0) } == (0..<count).map { "ab\(1000 + $0)" })
    #expect(request.text(request.notification.token) == "ab1000")
    #expect(request.invalidItems.isEmpty)
  }

  @Test func `a batch after a batch starts anew`() throws {
    let bench = DecoderBench()
    #expect(bench.request(Self.batch(Self.tokens(3)))?.tokens.count == 3)
    #expect(bench.invalid(Self.batch(Self.tokens(5), #","priority":7"#))?.rule == .badPriority)
    #expect(bench.invalid(Self.batch(Self.tokens(5)) + "x")?.rule == .malformedJSON)
    #expect(bench.request(Self.batch(Self.tokens(2)))?.tokens.count == 2)
    #expect(bench.request(RequestSample().record(.json))?.tokens.isEmpty == true)
  }

  @Test(arguments: [
    ("[]", InvalidRule.badToken), (tokens(1001), .tooManyTokens), ("\"ab\"", .wrongType), ("{}", .wrongType),
    ("1", .wrongType), ("[1]", .wrongType), ("[null]", .wrongType), ("[\"abc\"]", .badToken),
    ("[\"abc\",\"\"]", .badToken), ("[\"ab\",]", .malformedJSON), ("null", .missingField),
  ])
  func `a batch without one good token is invalid`(_ tokens: String, _ rule: InvalidRule) {
    let bench = DecoderBench()
    #expect(bench.invalid(Self.batch(tokens))?.rule == rule)
  }

  @Test func `token and tokens exclude each other`() {
    let bench = DecoderBench()
    #expect(bench.invalid(Self.batch(#"["ab"]"#, #","token":"ab""#))?.rule == .badToken)
    #expect(bench.request(Self.batch(#"["ab"]"#, #","token":null"#)) != nil)
  }

  @Test func `a malformed item spoils only itself`() throws {
    let bench = DecoderBench()
    let request = try #require(bench.request(Self.batch(#"["abc","ab12",7,"\u0061b","\ud800",null,["ab"]]"#)))
    #expect(request.tokens.map { request.text($0) } == ["", "ab12", "", "ab", "", "", ""])
    #expect(request.invalidItems.map(\.item) == [0, 2, 4, 5, 6])
    #expect(request.invalidItems.map(\.violation.rule) == [.badToken, .wrongType, .badToken, .wrongType, .wrongType])
    #expect(request.text(request.invalidItems[0].token) == "abc")
    #expect(request.invalidItems[1].token == nil)
    #expect(request.invalidItems[0].violation.message.hasPrefix("tokens[0]: must be an even number of hex digits"))
  }

  // MARK: Ids

  @Test func `a UUID is the apns-id itself, in either case`() throws {
    let bench = DecoderBench()
    for id in ["5F0C21AB-1111-4222-8333-ABCDEFABCDEF", "5f0c21ab-1111-4222-8333-abcdefabcdef"] {
      for form in RequestSample.Form.allCases {
        let request = try #require(bench.request(RequestSample().with("id", .text(id)).record(form)))
        #expect(request.notification.apnsID.description == "5f0c21ab-1111-4222-8333-abcdefabcdef")
        #expect(request.text(request.id) == id)
      }
    }
  }

  @Test func `any other id gives version 5 of the published namespace`() throws {
    let bench = DecoderBench()
    let request = try #require(bench.request(RequestSample().with("id", .text("order-42")).record(.json)))
    // uuid.uuid5(uuid.UUID("055f73ac-fedb-4a3f-b165-5c5c28805568"), "order-42") in Python.
    #expect(request.notification.apnsID.description == "2ceb88de-92b1-5372-9a74-d14d3403e60c")
  }

  @Test func `without an id it is derived from topic, partition and offset`() throws {
    let bench = DecoderBench()
    let request = try #require(bench.request(RequestSample().record(.json)))
    // uuid.uuid5(uuid.UUID("7cc80b77-1554-4eab-85db-48ef1962c23e"), "push.requests/3/42")
    #expect(request.notification.apnsID.description == "cf0154db-0be4-519c-b42b-b5dbc8be4454")
    let value = "{\"app\":\"shop\",\"token\":\"ab\",\"payload\":{}}"
    let other = try #require(bench.request(.sample(value, offset: 43)))
    #expect(other.notification.apnsID != request.notification.apnsID)
  }

  @Test func `each item of a batch has an id of its own, the first one that of the request`() throws {
    let bench = DecoderBench()
    let id = "5f0c21ab-1111-4222-8333-abcdefabcdef"
    let request = try #require(bench.request(Self.batch(Self.tokens(1000), ",\"id\":\"\(id)\"")))
    #expect(request.apnsID(item: 0).description == id)
    // uuid.uuid5(uuid.UUID(id), "12")
    #expect(request.apnsID(item: 12).description == "a79c8e8d-6c83-5e05-bfb6-9a90441b63d3")
    #expect(Set((0..<1000).map { request.apnsID(item: $0) }).count == 1000)
  }
}
