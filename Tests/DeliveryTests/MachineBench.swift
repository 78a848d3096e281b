import APNs
import Testing
import Wire

@testable import Delivery

/// A delivery machine with a clock that moves by hand, and the world around it played by the test.
struct MachineBench {
  static let requests: UInt32 = 0
  static let deferred: UInt32 = 1

  var machine: DeliveryMachine
  var moment = Moment(instant: Instant(nanoseconds: 1_000_000_000), time: UnixTime(seconds: 1_790_000_000))
  /// Everything that was submitted and not answered, oldest first.
  var submitted: [Submission] = []
  /// Everything that was published and has no receipt, oldest first.
  var published: [(item: Publication, key: String?, value: String?)] = []
  /// Every record that Kafka has acknowledged.
  var stored: [(topic: OutputTopic, key: String?, value: String?, headers: [Publication.ExtraHeader])] = []
  var events: [DeliveryEvent] = []

  /// - Parameter startup: how long the first connections may take. None by default: the apps have them long since.
  /// - Parameter change: what is unlike the defaults of the limits; `maxInFlight` and `perApp` most often are.
  init(
    maxInFlight: Int? = nil, perApp: Int? = nil, policy: RetryPolicy = RetryPolicy(), apps: Int = 2,
    startup: Duration = .zero, seed: UInt64 = 1, _ change: (inout DeliveryMachine.Limits) -> Void = { _ in }
  ) {
    var limits = DeliveryMachine.Limits()
    limits.startup = startup
    if let maxInFlight { limits.maxInFlight = maxInFlight }
    if let perApp { limits.maxInFlightPerApp = perApp }
    change(&limits)
    let table = AppTable(
      (0..<apps).map { AppRules(name: "app-\($0)", bundleID: "com.example.app\($0)", environment: .production) })
    machine = DeliveryMachine(
      limits: limits, retryPolicy: policy, apps: table, topics: ["push.requests", "push.deferred"],
      deferredTopic: "push.deferred", seed: seed)
  }

  mutating func pass(_ duration: Duration) {
    moment.instant = moment.instant + duration
    moment.time = UnixTime(milliseconds: moment.time.milliseconds + duration.milliseconds)
    machine.advance(to: moment)
    collect()
  }

  mutating func assign(_ partitions: Range<Int32> = 0..<1, topic: UInt32 = MachineBench.requests) {
    machine.assign(partitions.map { (PartitionID(topic: topic, partition: $0), nil) })
  }

  static func request(_ app: Int, id: Int, extra: String = "") -> String {
    #"{"id":"r\#(id)","app":"app-\#(app)","token":"ab\#(String(id + 4096, radix: 16))"\#(extra),"payload":{"aps":{}}}"#
      .replacingOddToken()
  }

  static func record(
    _ value: String?, offset: Int64, partition: Int32 = 0, topic: UInt32 = MachineBench.requests,
    headers: [(name: String, value: [UInt8]?)] = [], time: UnixTime = UnixTime(seconds: 1_790_000_000)
  ) -> Record {
    Record(
      source: PartitionID(topic: topic, partition: partition), offset: offset, timestamp: time,
      body: RecordBody(key: Array("k\(offset)".utf8), value: value.map { Array($0.utf8) }, headers: headers))
  }

  /// What was parked, as it comes back from the deferred topic.
  ///
  /// - Parameter changed: headers that have another value.
  static func back(
    _ value: String?, _ headers: [Publication.ExtraHeader], at offset: Int64, changed: [String: String] = [:]
  ) -> Record {
    record(
      value, offset: offset, topic: deferred,
      headers: headers.map { ($0.name, Array((changed[$0.name] ?? $0.value).utf8)) })
  }

  mutating func poll(_ records: [Record]) {
    machine.take(records, at: moment)
    collect()
  }

  /// Polls `count` requests of one app, offsets from `first` on.
  mutating func poll(app: Int, _ count: Int, from first: Int64 = 0, partition: Int32 = 0, extra: String = "") {
    poll(
      (0..<count).map {
        MachineBench.record(
          MachineBench.request(app, id: Int(first) + $0, extra: extra), offset: first + Int64($0), partition: partition)
      })
  }

  /// Answers the submission at a place, oldest by default.
  mutating func answer(_ result: SendResult, at place: Int = 0) {
    let submission = submitted.remove(at: place)
    machine.take(
      outcomes: [
        LaneOutcome(slot: submission.slot, result: result, sentAt: moment.instant, completedAt: moment.instant)
      ], at: moment)
    collect()
  }

  mutating func answerAll(_ result: SendResult = .answered(Response(status: 200))) {
    let outcomes = submitted.map {
      LaneOutcome(slot: $0.slot, result: result, sentAt: moment.instant, completedAt: moment.instant)
    }
    submitted = []
    machine.take(outcomes: outcomes, at: moment)
    collect()
  }

  /// Kafka acknowledges all that was published, or says something else of it.
  mutating func acknowledge(_ outcome: Receipt.Outcome = .acknowledged) {
    let all = published
    published = []
    if case .acknowledged = outcome {
      stored += all.map { ($0.item.topic, $0.key, $0.value, $0.item.extraHeaders) }
    }
    machine.take(receipts: all.map { Receipt(ticket: $0.item.ticket, outcome: outcome) }, at: moment)
    collect()
  }

  mutating func collect() {
    for lane in machine.submissions.indices {
      submitted += machine.submissions[lane]
      machine.submissions[lane] = []
    }
    let outbox = machine.outbox
    published += outbox.items.map { ($0, outbox.key(of: $0)?.text, outbox.value(of: $0)?.text) }
    machine.outbox.removeAll()
    events += machine.events
    machine.events = []
  }

  func count(_ topic: OutputTopic) -> Int { stored.count { $0.topic == topic } }

  func stored(_ topic: OutputTopic) -> [String] { stored.filter { $0.topic == topic }.compactMap(\.value) }
}

extension String {
  /// Test tokens are made of numbers; an odd number of digits gets one more.
  fileprivate func replacingOddToken() -> String {
    guard let start = firstRange(of: "\"token\":\"")?.upperBound, let end = self[start...].firstIndex(of: "\"") else {
      return self
    }
    guard self[start..<end].utf8.count % 2 == 1 else { return self }
    return String(self[..<end]) + "0" + self[end...]
  }
}
