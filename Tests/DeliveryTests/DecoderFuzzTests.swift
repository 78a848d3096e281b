import APNs
import Delivery
import TestSupport
import Testing
import Wire

/// Whatever comes in, the decoder answers; and what it lets through keeps the contract.
@Suite struct DecoderFuzzTests {
  private static let seeds = [
    #"{"id":"5f0c","app":"shop","token":"ab12","push_type":"alert","priority":10,"expiration":1790000000,"#
      + #""collapse_id":"order-42","payload":{"aps":{"alert":"Sh\u0069pped 😀"}}}"#,
    #"{"app":"bank","tokens":["ab","cd12","\u0061b"],"topic":"com.example.x","push_type":"brandnew","payload":{}}"#,
    #"{"app":"shop","token":"ab","priority":5.0,"expiration":1e3,"\u0069d":"x\n","payload":{"a":[1,{"b":[]}]}}"#,
  ]

  @Test(arguments: [1, 2, 3])
  func `no mutation of a request traps`(_ seed: UInt64) {
    let bench = DecoderBench()
    var documents = JSONDocuments(seed: seed)
    let encoder = ResultEncoder(topics: DecoderBench.topics)
    var outbox = Outbox()
    var requests = 0
    for round in 0..<6000 {
      let value = documents.mutated(Array(Self.seeds[round % Self.seeds.count].utf8))
      let record = Record.sample(bytes: value, key: "k")
      switch bench.decode(record) {
      case .request(let request):
        requests += 1
        Self.check(request)
      case .invalid(let invalid):
        let subject = ResultSubject(invalid, source: Source(partition: record.source, offset: 1), requestedAt: .zero)
        encoder.deadLetter(
          of: subject, rule: invalid.rule, message: invalid.message, failedAt: .zero,
          slot: PushSlot(index: 0, generation: 1), into: &outbox)
        let ending = Ending.invalid(invalid.rule, message: invalid.message)
        encoder.result(
          of: subject, ending: ending, completedAt: .zero, apps: bench.apps,
          slot: PushSlot(index: 0, generation: 1), into: &outbox)
        let result = outbox.value(of: outbox.items[1]) ?? Bytes([])
        let isJSON = (try? JSONScanner.document(result.span)) != nil
        #expect(isJSON)
        #expect(outbox.value(of: outbox.items[0])?.array == value)
        outbox.removeAll()
      case .tombstone: Issue.record("a tombstone")
      }
    }
    // Some mutations are harmless, or the generator would prove nothing.
    #expect(requests > 100)
  }

  @Test(arguments: [4, 5])
  func `no header traps`(_ seed: UInt64) {
    let bench = DecoderBench()
    var documents = JSONDocuments(seed: seed)
    let names = [
      "app", "token", "id", "apns-push-type", "apns-priority", "apns-expiration", "apns-collapse-id", "apns-topic",
      "content-type", "martlet-not-before", "martlet-item", "martlet-attempts", "apns-", "",
    ]
    let values = ["shop", "ab12", "5", "0", "alert", "application/json", "x", "1790000000"]
    for round in 0..<3000 {
      let headers: [(name: String, value: [UInt8]?)] = names.map { name in
        let value = Array(values[documents.random.uniform(below: values.count)].utf8)
        return (name, round % 3 == 0 ? documents.mutated(value) : value)
      }
      let topic = UInt32(documents.random.uniform(below: 4))
      let record = Record.sample(
        bytes: documents.mutated(Array(#"{"aps":{"alert":1}}"#.utf8)), headers: headers,
        source: PartitionID(topic: topic, partition: -1), offset: .min, timestamp: UnixTime(milliseconds: .min))
      if case .request(let request) = bench.decode(record) { Self.check(request) }
    }
  }

  /// What APNs and the rest of the program rely on.
  private static func check(_ request: Request) {
    let notification = request.notification
    for token in request.tokens.isEmpty ? [notification.token] : request.tokens.filter({ !$0.isEmpty }) {
      #expect(token.count >= 2 && token.count <= 200 && token.count % 2 == 0)
      let isHex = Hex.isDigits(Bytes(notification.storage, token).span)
      #expect(isHex)
    }
    let payload = Bytes(notification.storage, notification.payload)
    let kind = try? JSONScanner.document(payload.span).kind
    #expect(kind == .object)
    #expect(payload.count <= notification.pushType.maximumPayload)
    #expect(notification.pushType.allows(priority: notification.priority))
    #expect((0...9_999_999_999).contains(notification.expiration ?? 0))
    for text in [notification.collapseID, notification.topic, request.id ?? .empty] {
      let bytes = Bytes(notification.storage, text)
      let isText = UTF8Text.isValid(bytes.span)
      #expect(isText)
      #expect(bytes.array.allSatisfy { $0 >= 0x20 && $0 != 0x7f })
    }
  }
}

extension UnixTime {
  fileprivate static let zero = UnixTime(milliseconds: 0)
}
