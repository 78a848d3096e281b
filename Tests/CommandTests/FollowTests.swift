import Service
import Testing
import Wire

@testable import martlet

struct FollowTests {
  private let result = """
    {"id":"order-42","app":"shop-ios","token":"ab12","status":"rejected","http_status":410,"reason":"Unregistered",\
    "apns_id":"0f31","apns_unique_id":null,"topic":"com.example.shop","environment":"production","push_type":"alert",\
    "attempts":2,"requested_at":1769860800000,"completed_at":1769860800333,"later":{"a":[1]},\
    "source":{"topic":"push.requests","partition":3,"offset":42,"index":0}}
    """
  private let event = """
    {"token":"ab12","app":"shop-ios","topic":"com.example.shop","environment":"sandbox","reason":"BadDeviceToken",\
    "suspect":true,"unregistered_at":1769860700000,"requested_at":1,"detected_at":1769860800333,"id":null,\
    "source":{"topic":"push.requests","partition":0,"offset":1,"index":0}}
    """

  private func record(_ text: String, _ kind: FollowedKind = .results) throws -> FollowedRecord {
    try FollowedRecord(Bytes(text), as: kind)
  }

  private func written(_ text: String, _ kind: FollowedKind, _ format: FollowFormat) throws -> String {
    var output: [UInt8] = []
    FollowWriter(kind, format).write(try record(text, kind), to: &output)
    return String(decoding: output, as: UTF8.self)
  }

  @Test func aReadableLineTellsWhatMatters() throws {
    #expect(
      try written(result, .results, .readable)
        == "2026-01-31T12:00:00.333Z  rejected 410 Unregistered  shop-ios  ab12  id order-42  2 attempts  after 333 ms\n"
    )
    #expect(
      try written(event, .invalidTokens, .readable)
        == "2026-01-31T12:00:00.333Z  BadDeviceToken  shop-ios  ab12  since 2026-01-31T11:58:20.000Z  "
        + "suspect: check the app's environment\n")
    let invalid = #"{"id":"a","app":"x","status":"invalid","message":"token: is required","completed_at":0}"#
    #expect(
      try written(invalid, .results, .readable)
        == "1970-01-01T00:00:00.000Z  invalid     x  (no token)  id a  token: is required\n")
  }

  @Test func aTerminalIsNotLedAstray() throws {
    let line = try written(#"{"app":"a\u001b[2Jb","status":"delivered","id":"x\ny"}"#, .results, .readable)
    #expect(line.contains("a\u{FFFD}[2Jb") && line.contains("x\u{FFFD}y"))
    #expect(line.utf8.count { $0 == 0x0A } == 1 && !line.contains("\u{1B}"))
  }

  @Test func jsonLinesAreTheRecordsThemselves() throws {
    #expect(try written(result, .results, .json) == result + "\n")
    #expect(try written("{\n \"id\": \"a\\nb\"\n}", .results, .json) == "{ \"id\": \"a\\nb\"}\n")
  }

  @Test func aTableHasAColumnForEachField() throws {
    let header = String(decoding: FollowWriter(.results, .csv).header, as: UTF8.self)
    let line = try written(result, .results, .csv)
    #expect(header.hasPrefix("id,app,token,channel,status,") && header.hasSuffix("source_offset,source_index\r\n"))
    #expect(
      line == "order-42,shop-ios,ab12,,rejected,410,Unregistered,,0f31,,com.example.shop,production,alert,2,"
        + "1769860800000,1769860800333,push.requests,3,42,0\r\n")
    #expect(header.split(separator: ",").count == line.split(separator: ",", omittingEmptySubsequences: false).count)
    let odd = #"{"id":"a,\"b\"","message":"two\r\nlines"}"#
    #expect(try written(odd, .results, .csv).hasPrefix(#""a,""b""",,,,,,,"two"#))
    #expect(FollowWriter(.results, .json).header.isEmpty)
  }

  @Test func filtersAreJoined() throws {
    let read = try record(result)
    func admits(_ change: (inout FollowFilter) -> Void) -> Bool {
      var filter = FollowFilter()
      change(&filter)
      return filter.admits(read, of: .results)
    }
    #expect(admits { _ in })
    #expect(admits { $0.apps = ["other", "shop-ios"] })
    #expect(!admits { $0.apps = ["shop"] })
    #expect(admits { ($0.statuses, $0.reasons) = (["rejected"], ["Unregistered"]) })
    #expect(!admits { ($0.statuses, $0.reasons) = (["delivered"], ["Unregistered"]) })
    var filter = FollowFilter()
    filter.reasons = ["Unregistered"]
    #expect(!filter.admits(try record("{}"), of: .results))
    // The kind has no status, so nothing is asked of it.
    filter = FollowFilter()
    filter.statuses = ["rejected"]
    #expect(filter.admits(try record(event, .invalidTokens), of: .invalidTokens))
  }

  @Test func whatIsNoObjectIsRefused() {
    for text in ["", "[]", "{", "{} {}", "\u{0}\u{0}\u{0}\u{1}"] {
      #expect(throws: JSONError.self) { try record(text) }
    }
  }

  private func options(_ words: String...) throws -> FollowOptions {
    let arguments = try Arguments((["--config", "x"] + words)[...], for: FollowCommand.results)
    return try FollowOptions(arguments, now: UnixTime(seconds: 10_000))
  }

  @Test func theStartIsRead() throws {
    #expect(try options().start == .now)
    #expect(try options("--since", "beginning").start == .beginning)
    #expect(try options("--since", "1h").start == .time(UnixTime(seconds: 6400)))
    #expect(try options("--since", "1970-01-01T00:00:05Z").start == .time(UnixTime(seconds: 5)))
    #expect(throws: UsageError.self) { try options("--since", "soon") }
    #expect { try options("--since", "begining") } throws: {
      ($0 as? UsageError)?.message.contains("did you mean 'beginning'?") == true
    }
  }

  @Test func optionsThatMakeNoSenseAreExplained() {
    #expect { try options("--status", "deliverd") } throws: {
      ($0 as? UsageError)?.message.contains("did you mean 'delivered'?") == true
    }
    #expect(throws: UsageError.self) { try options("--export", "xml") }
    #expect(throws: UsageError.self) { try options("--export", "csv", "--json") }
    #expect(throws: UsageError.self) { try options("--limit", "0") }
  }

  private func json(_ value: [UInt8]?, contentType: String? = nil) throws -> String? {
    let headers = contentType.map { [("Content-Type", Array($0.utf8) as [UInt8]?)] } ?? []
    return try FollowedForms.json(RecordBody(key: nil, value: value, headers: headers), of: .results)?.text
  }

  @Test func everyFormOfTheServiceIsRead() throws {
    // PushResult { id: "a", status: "delivered", http_status: 200, completed_at: 300, source: { topic: "t", offset: 5 } }
    let message: [UInt8] = [
      0x0A, 1, 0x61, 0x2A, 9, 0x64, 0x65, 0x6C, 0x69, 0x76, 0x65, 0x72, 0x65, 0x64, 0x30, 0xC8, 1, 0x80, 1, 0xAC, 2,
      0x8A, 1, 5, 0x0A, 1, 0x74, 0x18, 5,
    ]
    let read =
      #"{"id":"a","status":"delivered","http_status":200,"completed_at":300,"#
      + #""source":{"topic":"t","offset":5},"attempts":0,"requested_at":0}"#
    #expect(try json(message, contentType: "application/x-protobuf") == read)
    let encoded: String = Base64.encode(message.span)
    let event = #"{"specversion":"1.0","data_base64":"\#(encoded)"}"#
    #expect(try json(Array(event.utf8), contentType: "application/cloudevents+json; charset=utf-8") == read)
    let plain = #"{"specversion":"1.0","data":{"id":"b"}}"#
    #expect(try json(Array(plain.utf8), contentType: "application/cloudevents+json") == #"{"id":"b"}"#)
    #expect(try json(Array(#"{"id":"c"}"#.utf8)) == #"{"id":"c"}"#)
    #expect(try json(nil) == nil)
    #expect(throws: FollowedFault.self) { try json([0xFF], contentType: "application/x-protobuf") }
    #expect(throws: FollowedFault.self) { try json([0x7B], contentType: "application/cloudevents+json") }
    #expect(throws: FollowedFault.self) { try json([0x7B, 0x7D], contentType: "application/cloudevents+json") }
  }
}
