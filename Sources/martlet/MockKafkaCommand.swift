import Kafka
import Service
import Wire

/// `martlet mock-kafka`: librdkafka's mock brokers in a process of their own.
enum MockKafkaCommand {
  static let command = Command(
    "mock-kafka", "Run the embedded Kafka broker on its own, for trials and tests.",
    options: [
      Option(
        "topic", value: "NAME:PARTITIONS",
        "A topic to create (default: the five that martlet uses); others come into being with 4 partitions.",
        isRepeated: true),
      Option("brokers", value: "N", "How many brokers (default 1). Their ports are chosen by the system."),
      Option(flag: "control", "Take orders from standard input, a line each: \(MockKafkaControl.help)."),
    ],
    examples: [
      (
        "martlet mock-kafka --topic push.requests:8",
        "Prints {\"bootstrap_servers\":\"127.0.0.1:PORT\"} and runs until SIGTERM. Nothing is kept on disk."
      ),
      (
        "echo 'fail produce TOPIC_AUTHORIZATION_FAILED 100' | martlet mock-kafka --control",
        "Refuses the next hundred requests to produce, whoever makes them."
      ),
    ],
    run: run)

  @Sendable
  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    guard let signals = Signals.install() else {
      Console.error("martlet mock-kafka: signal handlers could not be installed")
      return .unavailable
    }
    var topics = try arguments.all("topic").map { text throws(UsageError) in try TopicWishes.topic(text) }
    if topics.isEmpty { topics = TopicPlan.all(of: Settings()).map { ($0.name, $0.partitions) } }
    let cluster = try MockCluster(brokers: try arguments.integer("brokers", in: 1...16, default: 1))
    for topic in topics { try cluster.createTopic(topic.name, partitions: topic.partitions) }
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("bootstrap_servers")
    writer.string(cluster.bootstrapServers)
    writer.endObject()
    Console.announce(writer.take())
    if arguments.has("control") { try MockKafkaControl.start(cluster) }
    for await request in signals where request != .reload { break }
    // The brokers live until here.
    withExtendedLifetime(cluster) {}
    return .ok
  }
}
