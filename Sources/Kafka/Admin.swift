import CRdKafka

/// A topic as the brokers describe it.
package struct TopicDescription: Hashable, Sendable {
  package var name: String
  /// `nil` when there is no such topic.
  package var partitionCount: Int?
  /// Of the partition that has the fewest; `nil` when it is not told.
  package var replicationFactor: Int?
}

/// A topic to create.
package struct NewTopic: Sendable {
  package var name: String
  package var partitionCount: Int
  /// `nil` for the brokers' default.
  package var replicationFactor: Int?
  /// Topic-level settings, as `cleanup.policy`.
  package var settings: [(name: String, value: String)]

  package init(
    name: String, partitionCount: Int, replicationFactor: Int? = nil, settings: [(name: String, value: String)] = []
  ) {
    self.name = name
    self.partitionCount = partitionCount
    self.replicationFactor = replicationFactor
    self.settings = settings
  }
}

/// Looks at topics and creates them. Every call blocks, for `timeout` at most: for start-up and commands only.
package final class Admin {
  let client: KafkaClient
  /// Of the last description of all topics.
  private(set) var brokers: Set<Int32> = []

  /// - Parameters:
  ///   - properties: of librdkafka's client.
  ///   - log: called during the calls.
  package init(properties: KafkaProperties, log: @escaping LogSink) throws(KafkaError) {
    let configuration = try Configuration(properties, for: .producer)
    client = try KafkaClient(RD_KAFKA_PRODUCER, configuration, properties, events: 0, log: log)
  }

  /// Asks for one topic. An unknown topic is an answer (`partitionCount` is `nil`) and not an error.
  ///
  /// The library lets the brokers create the topic, if they are set up to; `describeAll` never does.
  ///
  /// - Throws: when no broker answers in time, or the answer is an error (no permission).
  package func describe(_ topic: String, timeout: Duration) throws(KafkaError) -> TopicDescription {
    defer { serveLog() }
    guard let handle = unsafe rd_kafka_topic_new(client.handle, topic, nil) else {
      throw KafkaError(rd_kafka_last_error(), subject: .topic(topic))
    }
    defer { unsafe rd_kafka_topic_destroy(handle) }
    var answer: UnsafePointer<rd_kafka_metadata>?
    let code = unsafe rd_kafka_metadata(client.handle, 0, handle, &answer, timeout.clampedMilliseconds)
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let answer = unsafe answer else {
      throw KafkaError(code, subject: .topic(topic))
    }
    defer { unsafe rd_kafka_metadata_destroy(answer) }
    for index in 0..<Int(unsafe answer.pointee.topic_cnt) {
      let found = unsafe answer.pointee.topics[index]
      if unsafe text(found.topic) == topic { return try unsafe Self.description(of: found, topic) }
    }
    return TopicDescription(name: topic, partitionCount: nil)
  }

  /// Asks for all topics that this client may see, by name. Unlike the question for one topic, it creates none.
  ///
  /// - Returns: an error in place of a topic that the brokers can say nothing else of.
  /// - Throws: when no broker answers in time.
  package func describeAll(timeout: Duration) throws(KafkaError) -> [String: Result<TopicDescription, KafkaError>] {
    defer { serveLog() }
    var answer: UnsafePointer<rd_kafka_metadata>?
    let code = unsafe rd_kafka_metadata(client.handle, 1, nil, &answer, timeout.clampedMilliseconds)
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let answer = unsafe answer else { throw KafkaError(code) }
    defer { unsafe rd_kafka_metadata_destroy(answer) }
    brokers = []
    for index in 0..<Int(unsafe answer.pointee.broker_cnt) { brokers.insert(unsafe answer.pointee.brokers[index].id) }
    var topics: [String: Result<TopicDescription, KafkaError>] = [:]
    for index in 0..<Int(unsafe answer.pointee.topic_cnt) {
      let found = unsafe answer.pointee.topics[index]
      guard let name = unsafe text(found.topic) else { continue }
      topics[name] = Result { () throws(KafkaError) in try unsafe Self.description(of: found, name) }
    }
    return topics
  }

  private static func description(
    of found: rd_kafka_metadata_topic, _ name: String
  ) throws(KafkaError) -> TopicDescription {
    switch unsafe found.err {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      let count = Int(unsafe found.partition_cnt)
      let replicas = (0..<count).map { unsafe Int(found.partitions[$0].replica_cnt) }.min()
      return TopicDescription(name: name, partitionCount: count, replicationFactor: replicas)
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
      return TopicDescription(name: name, partitionCount: nil)
    case let code: throw KafkaError(code, subject: .topic(name))
    }
  }

  /// Creates topics.
  ///
  /// - Returns: the topics that could not be created, each error with its topic as the subject; one that exists already
  ///   has the code `topicAlreadyExists`.
  /// - Throws: when the request as a whole failed.
  package func create(_ topics: [NewTopic], timeout: Duration) throws(KafkaError) -> [KafkaError] {
    defer { serveLog() }
    var requests: [OpaquePointer?] = unsafe []
    defer { unsafe requests.forEach { unsafe rd_kafka_NewTopic_destroy($0) } }
    for topic in topics { try unsafe requests.append(newTopic(topic)) }
    let event = try unsafe ask(RD_KAFKA_ADMIN_OP_CREATETOPICS, timeout: timeout) { options, queue in
      unsafe requests.withUnsafeMutableBufferPointer { buffer in
        unsafe rd_kafka_CreateTopics(client.handle, buffer.baseAddress, buffer.count, options, queue)
      }
    }
    return failures(in: event)
  }

  private func newTopic(_ topic: NewTopic) throws(KafkaError) -> OpaquePointer? {
    var request: OpaquePointer?
    let problem = unsafe withErrorText { buffer, size in
      unsafe request = rd_kafka_NewTopic_new(
        topic.name, Int32(clamping: topic.partitionCount), Int32(clamping: topic.replicationFactor ?? -1), buffer, size)
      return unsafe request != nil
    }
    if let problem {
      throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG, text: problem, subject: .topic(topic.name))
    }
    for (name, value) in topic.settings {
      let code = unsafe rd_kafka_NewTopic_set_config(request, name, value)
      guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
        unsafe rd_kafka_NewTopic_destroy(request)
        throw KafkaError(code, subject: .topic(topic.name))
      }
    }
    return unsafe request
  }

  /// Makes one request of the admin API and waits for its answer.
  ///
  /// - Throws: when no answer came in time, or the answer is an error as a whole.
  func ask(
    _ operation: rd_kafka_admin_op_t, timeout: Duration, _ request: (OpaquePointer?, OpaquePointer?) -> Void
  ) throws(KafkaError) -> Event {
    let options = unsafe rd_kafka_AdminOptions_new(client.handle, operation)
    defer { unsafe rd_kafka_AdminOptions_destroy(options) }
    let milliseconds = timeout.clampedMilliseconds
    _ = unsafe withErrorText {
      unsafe rd_kafka_AdminOptions_set_request_timeout(options, milliseconds, $0, $1) == RD_KAFKA_RESP_ERR_NO_ERROR
    }
    let queue = unsafe rd_kafka_queue_new(client.handle)
    defer { unsafe rd_kafka_queue_destroy(queue) }
    unsafe request(options, queue)
    // The library answers by itself when its own time-out has passed; a little later it surely has.
    guard let pointer = unsafe rd_kafka_queue_poll(queue, milliseconds &+ 1000) else {
      throw KafkaError(RD_KAFKA_RESP_ERR__TIMED_OUT)
    }
    let event = unsafe Event(pointer)
    let code = unsafe rd_kafka_event_error(event.pointer)
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
      throw KafkaError(code, text: unsafe text(rd_kafka_event_error_string(event.pointer)))
    }
    return event
  }

  private func failures(in event: borrowing Event) -> [KafkaError] {
    var count = 0
    let result = unsafe rd_kafka_event_CreateTopics_result(event.pointer)
    guard let topics = unsafe rd_kafka_CreateTopics_result_topics(result, &count) else { return [] }
    var failures: [KafkaError] = []
    for index in 0..<count {
      let topic = unsafe topics[index]
      let code = unsafe rd_kafka_topic_result_error(topic)
      guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { continue }
      unsafe failures.append(
        KafkaError(
          code, text: text(rd_kafka_topic_result_error_string(topic)),
          subject: .topic(text(rd_kafka_topic_result_name(topic)) ?? "")))
    }
    return failures
  }

  /// Hands on what was logged meanwhile; errors of the client show in the calls' own results.
  func serveLog() {
    while client.nextEvent() != nil {}
  }
}
