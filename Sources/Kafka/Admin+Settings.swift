import CRdKafka

extension Admin {
  /// Whether one of the brokers is the controller, which alone answers questions about settings. Of librdkafka's mock
  /// cluster none is. Asks nobody: call it after `describeAll`.
  package var hasController: Bool { brokers.contains(unsafe rd_kafka_controllerid(client.handle, 0)) }

  /// The settings in force for topics, the brokers' defaults among them; those that hold secrets are left out.
  ///
  /// - Returns: an error in place of a topic whose settings may not be seen.
  /// - Throws: when no broker answers in time.
  package func settings(
    of topics: [String], timeout: Duration
  ) throws(KafkaError) -> [String: Result<[String: String], KafkaError>] {
    guard !topics.isEmpty else { return [:] }
    defer { serveLog() }
    var resources: [OpaquePointer?] = unsafe topics.map {
      unsafe rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, $0)
    }
    defer { unsafe resources.forEach { unsafe rd_kafka_ConfigResource_destroy($0) } }
    let event = try unsafe ask(RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, timeout: timeout) { options, queue in
      unsafe resources.withUnsafeMutableBufferPointer { buffer in
        unsafe rd_kafka_DescribeConfigs(client.handle, buffer.baseAddress, buffer.count, options, queue)
      }
    }
    var count = 0
    let result = unsafe rd_kafka_event_DescribeConfigs_result(event.pointer)
    guard let answers = unsafe rd_kafka_DescribeConfigs_result_resources(result, &count) else { return [:] }
    var settings: [String: Result<[String: String], KafkaError>] = [:]
    for index in 0..<count {
      let answer = unsafe answers[index]
      guard let topic = unsafe text(rd_kafka_ConfigResource_name(answer)) else { continue }
      let code = unsafe rd_kafka_ConfigResource_error(answer)
      if code == RD_KAFKA_RESP_ERR_NO_ERROR {
        settings[topic] = .success(unsafe Self.entries(of: answer))
      } else {
        let words = unsafe text(rd_kafka_ConfigResource_error_string(answer))
        settings[topic] = .failure(KafkaError(code, text: words, subject: .topic(topic)))
      }
    }
    return settings
  }

  private static func entries(of resource: OpaquePointer?) -> [String: String] {
    var count = 0
    guard let entries = unsafe rd_kafka_ConfigResource_configs(resource, &count) else { return [:] }
    var settings: [String: String] = [:]
    for index in 0..<count {
      let entry = unsafe entries[index]
      guard unsafe rd_kafka_ConfigEntry_is_sensitive(entry) == 0 else { continue }
      if let name = unsafe text(rd_kafka_ConfigEntry_name(entry)) {
        settings[name] = unsafe text(rd_kafka_ConfigEntry_value(entry))
      }
    }
    return settings
  }
}
