import APNs
import FoundationEssentials
import Testing
import Wire

@testable import Delivery

/// How results and events look when they are not plain JSON.
@Suite struct OutputFormTests {
  private struct Envelope: Decodable {
    var specversion: String
    var id: String
    var source: String
    var type: String
    var subject: String
    var time: String
    var datacontenttype: String
    var data: Result?
    var dataBase64: String?

    struct Result: Decodable {
      var id: String?
      var token: String
      var reason: String?
    }
  }

  private static let slot = PushSlot(index: 7, generation: 9)
  private static let source = Source(partition: PartitionID(topic: 0, partition: 3), offset: 42, item: 5)
  private static let end = UnixTime(milliseconds: 1_790_000_000_456)
  private static let gone = Response(status: 410, reason: .unregistered)
  private let bench = DecoderBench()

  private static func output(_ format: OutputForm.Format, _ events: OutputForm.CloudEvents) -> OutputForm {
    var output = OutputForm()
    output.format = format
    output.cloudEvents = events
    output.source = "/push/eu"
    return output
  }

  private func subject(_ form: RequestSample.Form = .json) throws -> ResultSubject {
    let sample = RequestSample().with("id", .text("call-é"))
    return ResultSubject(
      try #require(bench.request(sample.record(form))), source: Self.source, attempts: 2,
      requestedAt: UnixTime(milliseconds: 1_790_000_000_123))
  }

  /// A result and an event of the same notification.
  private func written(_ output: OutputForm, _ form: RequestSample.Form = .json) throws -> Outbox {
    var outbox = Outbox()
    let encoder = ResultEncoder(topics: DecoderBench.topics, output: output)
    encoder.result(
      of: try subject(form), ending: .rejected(Self.gone), completedAt: Self.end, apps: bench.apps, slot: Self.slot,
      into: &outbox)
    encoder.invalidToken(
      of: try subject(form), response: Self.gone, isSuspect: false, detectedAt: Self.end, apps: bench.apps,
      slot: Self.slot, into: &outbox)
    return outbox
  }

  private static func headers(_ item: Publication) -> [String: String] {
    Dictionary(item.extraHeaders.map { ($0.name, $0.value) }, uniquingKeysWith: { _, last in last })
  }

  private static func envelope(_ outbox: Outbox, _ index: Int) throws -> Envelope {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let value = try #require(outbox.value(of: outbox.items[index]))
    return try decoder.decode(Envelope.self, from: Data(value.array))
  }

  @Test func `a structured event has the record as its data`() throws {
    let outbox = try written(Self.output(.json, .structured))
    for (index, kind) in ["result", "invalid-token"].enumerated() {
      let event = try Self.envelope(outbox, index)
      #expect(event.specversion == "1.0")
      #expect(event.id == "\(kind):push.requests/3/42/5")
      #expect(event.source == "/push/eu")
      #expect(event.type == "martlet.push.\(kind)")
      #expect(event.subject == (index == 0 ? "call-é" : "ab12"))
      #expect(event.time == "2026-09-21T14:13:20.456Z")
      #expect(event.datacontenttype == "application/json")
      #expect(event.data?.token == "ab12" && event.data?.reason == "Unregistered" && event.data?.id == "call-é")
      #expect(Self.headers(outbox.items[index]) == ["content-type": "application/cloudevents+json"])
    }
    let keys = outbox.items.map { outbox.key(of: $0)?.text ?? "" }
    #expect(keys == ["call-é", "ab12"])
  }

  @Test func `a binary event is the record, and its headers say the rest`() throws {
    let plain = try written(OutputForm())
    let outbox = try written(Self.output(.json, .binary))
    for (index, kind) in ["result", "invalid-token"].enumerated() {
      #expect(
        Self.headers(outbox.items[index]) == [
          "content-type": "application/json", "ce_specversion": "1.0", "ce_id": "\(kind):push.requests/3/42/5",
          "ce_source": "/push/eu", "ce_type": "martlet.push.\(kind)", "ce_subject": index == 0 ? "call-é" : "ab12",
          "ce_time": "2026-09-21T14:13:20.456Z",
        ])
      #expect(plain.items[index].extraHeaders.isEmpty)
      let values = [plain, outbox].map { $0.value(of: $0.items[index])?.text ?? "" }
      #expect(values[0] == values[1])
    }
  }

  @Test func `Protobuf has a field for each that is no null`() throws {
    let outbox = try written(Self.output(.protobuf, .off))
    var numbers: [[UInt32]] = []
    for item in outbox.items {
      let value = try #require(outbox.value(of: item))
      var reader = ProtobufReader(value.span)
      var fields: [UInt32] = []
      while let tag = try reader.nextTag() {
        fields.append(tag.field)
        try reader.skip(tag.wireType)
      }
      numbers.append(fields)
      #expect(Self.headers(item) == ["content-type": "application/x-protobuf"])
    }
    #expect(numbers == [[1, 2, 3, 5, 6, 7, 9, 11, 12, 13, 14, 15, 16, 17], [1, 2, 3, 4, 5, 8, 9, 10, 11]])
  }

  @Test func `a structured event of Protobuf has it in base64, a binary one as its value`() throws {
    let plain = try written(Self.output(.protobuf, .off))
    let structured = try written(Self.output(.protobuf, .structured))
    let binary = try written(Self.output(.protobuf, .binary))
    for index in 0..<2 {
      let message = try #require(plain.value(of: plain.items[index])).array
      let event = try Self.envelope(structured, index)
      #expect(event.datacontenttype == "application/x-protobuf")
      let data = try #require(event.dataBase64)
      #expect(Base64.decode(data.utf8.span) == message)
      #expect(try #require(binary.value(of: binary.items[index])).array == message)
      #expect(Self.headers(binary.items[index])["content-type"] == "application/x-protobuf")
    }
  }

  @Test(arguments: RequestSample.Form.allCases)
  func `what the request's value was is not said of another value`(_ form: RequestSample.Form) throws {
    let outbox = try written(OutputForm(), form)
    for item in outbox.items {
      let names = item.headers.map { Bytes(item.requestStorage, $0.name).text }
      #expect(names == (form == .headers ? ["app", "token", "id"] : []))
    }
  }

  @Test(arguments: RequestSample.Form.allCases, [false, true])
  func `a parked request comes back in its form`(_ form: RequestSample.Form, _ isShortened: Bool) throws {
    var outbox = Outbox()
    let subject = try subject(form)
    ResultEncoder(topics: DecoderBench.topics, output: Self.output(.protobuf, .structured)).deferred(
      of: subject, notBefore: Self.end, slot: Self.slot, isShortened: isShortened, into: &outbox)
    let item = try #require(outbox.items.last)
    let copied: [(name: String, value: [UInt8]?)] = item.headers.map { header in
      (Bytes(item.requestStorage, header.name).text, header.value.map { Bytes(item.requestStorage, $0).array })
    }
    let record = Record.sample(
      bytes: try #require(outbox.value(of: item)).array,
      headers: copied + item.extraHeaders.map { ($0.name, Array($0.value.utf8)) },
      source: PartitionID(topic: 1, partition: 0))
    let request = try #require(bench.request(record))
    #expect(request.text(request.id) == "call-é")
    #expect(request.deferral?.source == Self.source)
    #expect(request.notification.apnsID == subject.notification.apnsID)
  }
}
