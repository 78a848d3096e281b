/// The settings that the service starts from, with their reasons, and those that it keeps to itself.
///
/// Left at the library's own default, though it matters: `allow.auto.create.topics`, false for consumers, so that a
/// misspelt topic is an error and not a new topic.
///
/// The aim: low latency at a trickle, full batches at full load, and a bound on what the library holds in memory.
package enum KafkaDefaults {
  /// A property of librdkafka, its value, and why it has that one.
  package struct Setting: Sendable {
    package var name: String
    package var value: String
    package var reason: String

    init(_ name: String, _ value: String, _ reason: String) {
      self.name = name
      self.value = value
      self.reason = reason
    }
  }

  /// Defaults; each may be overridden. Those that the loaded version does not know are left out.
  package static let table: [Setting] = [
    // Both
    Setting("client.id", "martlet", "what broker logs and quotas see"),
    Setting("socket.nagle.disable", "true", "small requests (commits, produce at low load) must not wait for an ACK"),
    Setting("socket.keepalive.enable", "true", "a peer that vanished behind a firewall is noticed"),
    Setting("log.connection.close", "false", "brokers close idle connections as a matter of course"),
    Setting(
      "topic.metadata.refresh.interval.ms", "60000",
      "a topic that was made late, or has more partitions now, is found within a minute"),
    Setting("reconnect.backoff.ms", "100", "the first retry after a lost broker"),
    Setting("reconnect.backoff.max.ms", "5000", "a broker that is back is found within seconds"),

    // Consumer
    Setting(
      "partition.assignment.strategy", "roundrobin,range",
      "eager assignors: the sticky cooperative one can loop for ever in versions before 2.6.1 when there are more "
        + "members than partitions; set `cooperative-sticky` on all replicas at once to use it"),
    Setting("auto.offset.reset", "earliest", "a new group, or one whose offsets were lost, must not skip requests"),
    Setting("fetch.wait.max.ms", "100", "an empty fetch is answered soon, so that a rebalance is not held up"),
    Setting("fetch.min.bytes", "1", "a single record is delivered at once"),
    Setting("fetch.error.backoff.ms", "100", "a moved leader costs little"),
    Setting("fetch.message.max.bytes", "1048576", "one partition's share of a fetch; raised for larger records"),
    Setting(
      "queued.max.messages.kbytes", "20480",
      "bounds what is fetched ahead, over all partitions; `fetch.max.bytes` follows it. With small records the library "
        + "takes about two and a half times this"),
    Setting(
      "queued.min.messages", "65000",
      "bounds the number fetched ahead, as each costs the library some hundred bytes beside its content. Versions "
        + "before 2.2 look again only after a second when the bound was reached, so it must hold a second's records"),
    Setting("fetch.queue.backoff.ms", "10", "how soon a full fetch-ahead queue is looked at again (2.2 and later)"),
    Setting("max.poll.interval.ms", "300000", "the service polls while it is paused, so this only catches a hang"),
    Setting("session.timeout.ms", "45000", "a broker restart must not cost the membership"),
    Setting("isolation.level", "read_committed", "aborted transactions of producers are not sent"),
    Setting("check.crcs", "true", "a broken record is refused before it is sent to a device"),

    // Producer
    Setting("linger.ms", "5", "results are batched; nobody waits for them within 5 ms"),
    Setting("batch.num.messages", "10000", "one batch holds what 5 ms bring at full load"),
    Setting("batch.size", "262144", "bytes a batch; larger ones gain nothing and hold more memory"),
    Setting(
      "message.max.bytes", "2097152",
      "a dead letter is the original record, as large as brokers allow, and some headers; the broker has the last word"),
    Setting("queue.buffering.max.messages", "100000", "bounds the producer's queue; beyond it, back-pressure"),
    Setting("queue.buffering.max.kbytes", "32768", "bounds the producer's bytes; beyond it, back-pressure"),
    Setting("compression.type", "lz4", "results are repetitive JSON; lz4 costs less than the bytes it saves"),
    Setting("partitioner", "murmur2_random", "the same key goes to the same partition as from Java producers"),
    Setting("message.timeout.ms", "300000", "a record not acknowledged by then is reported as failed"),
  ]

  /// Properties that cannot be set, with the reason that the error names.
  package static let owned: [String: String] = [
    "bootstrap.servers": "it is the setting kafka.brokers",
    "metadata.broker.list": "it is the setting kafka.brokers",
    "group.id": "it is the setting kafka.group",
    "enable.auto.commit": atLeastOnce,
    "auto.commit.enable": atLeastOnce,
    "auto.commit.interval.ms": atLeastOnce,
    "enable.auto.offset.store": atLeastOnce,
    "offset.store.method": atLeastOnce,
    "enable.idempotence": "the service always produces idempotently",
    "acks": "the service always waits for all in-sync replicas",
    "request.required.acks": "the service always waits for all in-sync replicas",
    "transactional.id": "the service uses no transactions",
    "delivery.report.only.error": "the service needs every delivery report",
    "queuing.strategy": "the service keeps the order of results",
    "enable.partition.eof": "the service needs it to know where a partition ends",
    "statistics.interval.ms": "the service has metrics of its own",
    "enabled_events": "it belongs to the event loop",
    "log.queue": "it belongs to the event loop",
    "internal.termination.signal": "signals belong to the service",
    "test.mock.num.brokers": "the mock cluster is a command of its own",
  ]

  private static let atLeastOnce = "the service commits an offset itself, once the record is settled"
}
