import Kafka
import Service
import Wire

/// Makes the requests of the demo, the same ones for the same seed, at a steady rate.
///
/// Most are sound; a few have tokens that APNs calls dead, have expired already, or break the contract, so that every
/// status shows.
struct DemoTraffic {
  private static let idPrefix = "demo-"
  /// More than this many without a result yet: the producer waits, as real ones do not. (The embedded broker keeps only
  /// so much.)
  private static let mostUnanswered = 100_000

  private let producer: Producer
  private let topic: TopicHandle
  private let apps: [DemoWorld.App]
  private let rate: Int
  private var random: SeededRandom
  private var reports: [DeliveryReport] = []
  private(set) var produced = 0
  /// Records that Kafka did not take; they are no requests.
  private(set) var refused = 0

  init(_ options: DemoOptions, world: DemoWorld, log: @escaping LogSink) throws {
    producer = try Producer(properties: try world.settings.kafka.producer(), log: log)
    topic = try producer.topic(world.settings.kafka.topics.requests[0])
    apps = world.apps
    rate = options.rate
    random = SeededRandom(seed: options.seed)
  }

  /// Produces what is due after so much time.
  mutating func produce(after elapsed: Duration, answered: Int, now: UnixTime) throws {
    takeReports()
    let due = Int(Double(rate) * Double(elapsed.nanoseconds) / 1e9)
    while produced < due, produced - answered < Self.mostUnanswered {
      let value = request(produced, now: now)
      let key = "device-\(produced % 10_000)"
      guard
        case .queued = try producer.produce(
          topic: topic, key: Bytes(key), value: Bytes(value), headerStorage: [], headers: [],
          extraHeaders: [], ticket: UInt64(produced + 1))
      else { return }
      produced += 1
    }
  }

  /// Takes Kafka's word on what was produced. True when all of it is stored.
  @discardableResult
  mutating func takeReports() -> Bool {
    _ = producer.takeReports(into: &reports, limit: .max)
    for report in reports { if case .failed = report.outcome { refused += 1 } }
    reports.removeAll(keepingCapacity: true)
    return producer.outstanding == 0
  }

  /// The number of the request whose id this is.
  static func number(of id: Span<UInt8>) -> Int? {
    let prefix = idPrefix.utf8.count
    guard id.count > prefix else { return nil }
    return JSONText.int64(of: ByteRange(prefix, id.count), in: id).map(Int.init)
  }

  private mutating func request(_ number: Int, now: UnixTime) -> [UInt8] {
    let roll = random.uniform(below: 1000)
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("id")
    writer.string("\(Self.idPrefix)\(number)")
    writer.key("app")
    writer.string(apps[number % apps.count].name)
    writer.key("token")
    writer.string(token(roll))
    writer.key("push_type")
    let kind = random.uniform(below: 10)
    writer.string(kind < 7 ? "alert" : kind < 9 ? "background" : "voip")
    if roll == 20 {
      writer.key("priority")
      writer.integer(7)
    }
    writer.key("expiration")
    writer.integer(now.seconds + (roll < 25 && roll > 20 ? -60 : 3600))
    writer.key("payload")
    let text = "Order \(number) has shipped"
    writer.raw(Array(#"{"aps":{"alert":"\#(text)","sound":"default"},"order":\#(number)}"#.utf8).span)
    writer.endObject()
    return writer.take()
  }

  private mutating func token(_ roll: Int) -> String {
    let start =
      switch roll {
      case 0..<8: "dead0410"
      case 8..<10: "dead0400"
      default: "5eed0000"
      }
    var digits = Array(start.utf8)
    for _ in 0..<7 {
      let word = UInt32(truncatingIfNeeded: random.next())
      for shift in stride(from: 28, through: 0, by: -4) {
        digits.append(Hex.digit(of: UInt8(truncatingIfNeeded: word >> UInt32(shift)) & 15))
      }
    }
    return String(decoding: digits, as: UTF8.self)
  }
}
