import Kafka
import Transport
import Wire

/// Trouble on demand for `martlet mock-kafka --control`: a line of standard input is one order, and is answered by one
/// line of standard output, `{"ok":true}` or `{"ok":false,"error":…}`.
enum MockKafkaControl {
  static let help = """
    orders: broker N up|down · delay N MILLISECONDS · fail REQUEST ERROR [TIMES] · pass REQUEST · \
    topic NAME:PARTITIONS · topic-error NAME ERROR|none · leader TOPIC PARTITION N · coordinator GROUP N
    """

  /// An order that cannot be carried out, in words.
  struct Failure: Error {
    var message: String
  }

  /// Carries out what standard input says, on a thread of its own, until its end.
  static func start(_ cluster: MockCluster) throws {
    // Reading waits, and this loop does nothing else.
    try EventLoop.start(name: "control").execute {
      while let line = readLine() {
        guard line.contains(where: { $0 != " " }) else { continue }
        var fault: String?
        do {
          try carryOut(line.split(separator: " ").map(String.init), on: cluster)
        } catch {
          fault = (error as? Failure)?.message ?? "\(error)"
        }
        Console.announce(answer(fault))
      }
    }
  }

  private static func answer(_ fault: String?) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("ok")
    writer.bool(fault == nil)
    if let fault {
      writer.key("error")
      writer.string(fault)
    }
    writer.endObject()
    return writer.take()
  }

  static func carryOut(_ words: [String], on cluster: MockCluster) throws {
    switch (words.first, words.count) {
    case ("broker", 3) where ["up", "down"].contains(words[2]):
      try cluster.setBroker(try number(words[1], in: 1...cluster.brokerCount), isUp: words[2] == "up")
    case ("delay", 3):
      try cluster.setRoundTripTime(
        .milliseconds(try number(words[2], in: 0...600_000)),
        broker: try number(words[1], in: 1...cluster.brokerCount))
    case ("fail", 3...4):
      let times = words.count == 4 ? try number(words[3], in: 1...100_000) : 1
      cluster.pushErrors(Array(repeating: try error(words[2]), count: times), for: try request(words[1]))
    case ("pass", 2): cluster.clearErrors(for: try request(words[1]))
    case ("topic", 2):
      let topic = try TopicWishes.topic(words[1])
      try cluster.createTopic(topic.name, partitions: topic.partitions)
    case ("topic-error", 3): cluster.setError(words[2] == "none" ? nil : try error(words[2]), topic: words[1])
    case ("leader", 4):
      try cluster.setLeader(
        topic: words[1], partition: Int32(try number(words[2], in: 0...999)),
        broker: try number(words[3], in: 1...cluster.brokerCount))
    case ("coordinator", 3):
      try cluster.setCoordinator(group: words[1], broker: try number(words[2], in: 1...cluster.brokerCount))
    default: throw Failure(message: "'\(words.joined(separator: " "))' is no order; \(help)")
    }
  }

  private static func number(_ text: String, in range: ClosedRange<Int>) throws -> Int {
    guard let number = Int(text), range.contains(number) else {
      throw Failure(message: "'\(text)' is not a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  private static func error(_ text: String) throws -> KafkaError.Code {
    guard let code = KafkaError.Code(text), code.rawValue > 0 else {
      throw Failure(message: "'\(text)' is no error of a broker, such as NOT_LEADER_FOR_PARTITION")
    }
    return code
  }

  private static func request(_ text: String) throws -> MockCluster.Request {
    guard let request = MockCluster.Request.allCases.first(where: { "\($0)" == text }) else {
      let names = MockCluster.Request.allCases.map { "\($0)" }.joined(separator: ", ")
      throw Failure(message: "'\(text)' is no request that can fail; they are \(names)")
    }
    return request
  }
}
