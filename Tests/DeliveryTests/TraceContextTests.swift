import APNs
import Testing
import Wire

@testable import Delivery

struct TraceContextTests {
  private static let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

  @Test(arguments: [
    (parent, true), ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-is-new", true), ("", false),
    ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false), (parent + "-x", false), (parent + "x", false),
    ("00-00000000000000000000000000000000-b7ad6b7169203331-01", false),
    ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false),
    ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false), ("00-1-2-01", false),
    ("00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false), (String(parent.dropLast()), false),
  ])
  func traceparentsAreReadAsTheRulesHaveIt(text: String, isOne: Bool) {
    let bytes = Array(text.utf8)
    let id = TraceContext.traceID(ByteRange(0, bytes.count), in: bytes.span)
    #expect(id.map(\.hexText) == (isOne ? "0af7651916cd43dd8448eb211c80319c" : nil))
  }

  /// The headers that the request's records have, by decoding a record with this value and these headers.
  private func headers(_ value: String, _ headers: [(String, [UInt8]?)] = []) throws -> (request: Request, [String]) {
    try self.headers(Array(value.utf8), headers)
  }

  private func headers(_ value: [UInt8], _ headers: [(String, [UInt8]?)]) throws -> (request: Request, [String]) {
    let apps = AppTable([AppRules(name: "shop", bundleID: "com.example.shop", environment: .production)])
    var decoder = RequestDecoder(topics: ["push.requests"], deferredTopic: nil)
    let record = Record(
      source: PartitionID(topic: 0, partition: 0), offset: 1, timestamp: nil,
      body: RecordBody(key: nil, value: value, headers: headers))
    guard
      case .request(let request) = decoder.decode(
        record, apps: apps,
        now: Moment(
          instant: Instant(nanoseconds: 0), time: UnixTime(seconds: 1_790_000_000)))
    else {
      Issue.record("no request")
      throw TestError()
    }
    let storage = request.notification.storage
    return (
      request,
      request.headers.map { header in
        Bytes(storage, header.name).text + "=" + (header.value.map { Bytes(storage, $0).text } ?? "")
      }
    )
  }

  private struct TestError: Error {}
  private static let start = #"{"app":"shop","token":"ab12","payload":{"aps":{}}"#

  @Test
  func theFieldBecomesAHeader() throws {
    let (request, headers) = try headers(Self.start + #","traceparent":"\#(Self.parent)"}"#)
    #expect(headers == ["traceparent=\(Self.parent)"])
    #expect(request.unknownFields == 0)
  }

  @Test
  func aHeaderCountsMoreThanTheField() throws {
    let other = "00-11111111111111111111111111111111-2222222222222222-00"
    let (_, headers) = try headers(
      Self.start + #","traceparent":"\#(Self.parent)"}"#, [("Traceparent", Array(other.utf8))])
    #expect(headers == ["Traceparent=\(other)"])
  }

  @Test
  func whatIsNoTraceparentIsAnUnknownField() throws {
    for value in ["\"00-1-2-3\"", "7", "\"\\u0030\(Self.parent.dropFirst())\""] {
      let (request, headers) = try headers(Self.start + #","traceparent":\#(value)}"#)
      #expect(headers.isEmpty && request.unknownFields == 1, "\(value)")
    }
  }

  @Test
  func nullIsNoFieldAtAll() throws {
    let (request, headers) = try headers(Self.start + #","traceparent":null}"#)
    #expect(headers.isEmpty && request.unknownFields == 0)
  }

  @Test
  func theFieldOfAMessageBecomesAHeaderToo() throws {
    for (value, isOne) in [(Self.parent, true), ("00-1-2-3", false), ("", false)] {
      var writer = ProtobufWriter()
      writer.string(1, "shop")
      writer.string(2, "ab12")
      writer.string(12, value)
      writer.string(4, #"{"aps":{}}"#)
      let message = writer.take()
      let type: [(String, [UInt8]?)] = [("content-type", Array("application/x-protobuf".utf8))]
      let (request, headers) = try headers(message, type)
      #expect(headers.dropFirst() == (isOne ? ["traceparent=\(Self.parent)"] : []))
      #expect(request.unknownFields == (isOne ? 0 : 1))
      let other = "00-11111111111111111111111111111111-2222222222222222-00"
      let (_, both) = try self.headers(message, type + [("traceparent", Array(other.utf8))])
      #expect(both.dropFirst() == ["traceparent=\(other)"])
    }
  }

  @Test
  func theAttributeOfAnEventIsHandedOn() throws {
    let binary: [(String, [UInt8]?)] = [
      ("ce_specversion", "1.0"), ("ce_id", "1"), ("ce_source", "/x"), ("ce_type", "t"), ("ce_traceparent", Self.parent),
    ].map { ($0.0, Array($0.1.utf8)) }
    let (_, headers) = try headers(Self.start + "}", binary)
    #expect(headers.last == "traceparent=\(Self.parent)")
    let attributes = #""specversion":"1.0","id":"1","source":"/x","type":"t""#
    for value in [
      "{\(attributes),\"traceparent\":\"\(Self.parent)\",\"data\":\(Self.start)}}",
      "{\(attributes),\"data\":\(Self.start)},\"traceparent\":\"\(Self.parent)\"}",
    ] {
      let (_, headers) = try self.headers(value, [("content-type", Array("application/cloudevents+json".utf8))])
      #expect(headers.last == "traceparent=\(Self.parent)")
    }
  }

  @Test
  func theEndOfANotificationNamesItsTraceWhenAsked() throws {
    for asked in [false, true] {
      var bench = MachineBench()
      bench.machine.namesTraces = asked
      bench.assign()
      bench.poll([
        MachineBench.record(
          MachineBench.request(0, id: 1), offset: 0, headers: [("traceparent", Array(Self.parent.utf8))])
      ])
      bench.answerAll()
      let traces = bench.events.compactMap { event -> UUID?? in
        if case .finished(let finished) = event { .some(finished.trace) } else { nil }
      }
      #expect(traces.map { $0?.hexText } == [asked ? "0af7651916cd43dd8448eb211c80319c" : nil])
    }
  }
}
