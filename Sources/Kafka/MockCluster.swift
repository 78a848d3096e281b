import CRdKafka

/// A Kafka cluster inside the process: librdkafka's own mock brokers, on real TCP ports of 127.0.0.1.
///
/// It speaks produce, fetch, groups and offsets, and any client can use it. It keeps at most 5 MiB or 100,000 records
/// a partition and drops the oldest beyond that, and the first member of a group waits three seconds for others. The
/// ports are chosen by the kernel.
///
/// It may be used from any thread: the library guards the cluster with a lock of its own. That, and that both pointers
/// never change between `init` and `deinit`, is what makes `@unchecked Sendable` true.
@safe
package final class MockCluster: @unchecked Sendable {
  /// Requests that an error can be put in the way of; the numbers are the protocol's.
  package enum Request: Int16, CaseIterable, Sendable {
    case produce = 0
    case fetch = 1
    case listOffsets = 2
    case metadata = 3
    case offsetCommit = 8
    case offsetFetch = 9
    case findCoordinator = 10
    case joinGroup = 11
    case heartbeat = 12
    case leaveGroup = 13
    case syncGroup = 14
    case apiVersions = 18
    case initProducerID = 22
  }

  /// Where clients connect to: host:port pairs, separated by commas.
  package let bootstrapServers: String
  /// Brokers are numbered from 1 to this.
  package let brokerCount: Int
  /// The library hangs a cluster on a client instance, which has no other use.
  private let host: OpaquePointer
  private let cluster: OpaquePointer

  /// - Parameter brokers: how many; one is enough for most purposes. Topics that no one has created come into being,
  ///   with four partitions, when a client first names them.
  package init(brokers: Int = 1) throws(KafkaError) {
    let configuration = Configuration()
    configuration.silence()
    let host = try unsafe configuration.makeClient(RD_KAFKA_PRODUCER)
    guard
      let cluster = unsafe rd_kafka_mock_cluster_new(host, Int32(clamping: brokers)),
      let servers = unsafe text(rd_kafka_mock_cluster_bootstraps(cluster))
    else {
      unsafe rd_kafka_destroy(host)
      throw .configuration("brokers", "the mock cluster could not be started")
    }
    unsafe self.host = host
    unsafe self.cluster = cluster
    bootstrapServers = servers
    brokerCount = brokers
  }

  deinit {
    unsafe rd_kafka_mock_cluster_destroy(cluster)
    unsafe rd_kafka_destroy(host)
  }

  /// Creates a topic; replicas are on as many brokers as there are, three at most.
  package func createTopic(_ name: String, partitions: Int) throws(KafkaError) {
    try check(
      unsafe rd_kafka_mock_topic_create(
        cluster, name, Int32(clamping: partitions), Int32(clamping: min(brokerCount, 3))),
      .topic(name))
  }

  /// Has the next requests of this kind answered with these errors, one each, whoever asks. Errors of the broker only.
  package func pushErrors(_ codes: [KafkaError.Code], for request: Request) {
    let errors = codes.map { rd_kafka_resp_err_t(rawValue: $0.rawValue) }
    unsafe errors.withUnsafeBufferPointer {
      unsafe rd_kafka_mock_push_request_errors_array(cluster, request.rawValue, $0.count, $0.baseAddress)
    }
  }

  /// Forgets the errors that were pushed and not yet used.
  package func clearErrors(for request: Request) {
    unsafe rd_kafka_mock_clear_request_errors(cluster, request.rawValue)
  }

  /// Has every request for a topic's metadata answered with an error; `nil` ends it.
  package func setError(_ code: KafkaError.Code?, topic: String) {
    unsafe rd_kafka_mock_topic_set_error(
      cluster, topic, rd_kafka_resp_err_t(rawValue: code?.rawValue ?? 0))
  }

  /// Closes a broker's port and its connections, or opens it again.
  package func setBroker(_ broker: Int, isUp: Bool) throws(KafkaError) {
    let number = Int32(clamping: broker)
    let code =
      unsafe isUp ? rd_kafka_mock_broker_set_up(cluster, number) : rd_kafka_mock_broker_set_down(cluster, number)
    try check(code, nil)
  }

  /// Delays every answer of a broker.
  package func setRoundTripTime(_ time: Duration, broker: Int) throws(KafkaError) {
    try check(
      unsafe rd_kafka_mock_broker_set_rtt(cluster, Int32(clamping: broker), time.clampedMilliseconds), nil)
  }

  /// Moves a partition's leader.
  package func setLeader(topic: String, partition: Int32, broker: Int) throws(KafkaError) {
    try check(
      unsafe rd_kafka_mock_partition_set_leader(cluster, topic, partition, Int32(clamping: broker)),
      .partition(topic: topic, partition: partition))
  }

  /// Moves a group's coordinator.
  package func setCoordinator(group: String, broker: Int) throws(KafkaError) {
    try check(
      unsafe rd_kafka_mock_coordinator_set(cluster, "group", group, Int32(clamping: broker)), .group(group))
  }

  private func check(_ code: rd_kafka_resp_err_t, _ subject: KafkaError.Subject?) throws(KafkaError) {
    if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(code, subject: subject) }
  }
}
