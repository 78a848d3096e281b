import CRdKafka

extension Configuration {
  /// Of a consumer whose offsets the service commits.
  ///
  /// - Parameter isReachable: whether the client is to reach the brokers.
  static func consumer(
    _ properties: KafkaProperties, group: String, isReachable: Bool = true
  ) throws(KafkaError) -> Configuration {
    let configuration = try Configuration(properties, for: .consumer, isReachable: isReachable)
    try configuration.set("group.id", group)
    try configuration.set("enable.auto.commit", "false")
    try configuration.set("enable.auto.offset.store", "false")
    return configuration
  }

  /// Of a producer that stores each record once, on all in-sync replicas.
  static func producer(_ properties: KafkaProperties, isReachable: Bool = true) throws(KafkaError) -> Configuration {
    let configuration = try Configuration(properties, for: .producer, isReachable: isReachable)
    try configuration.set("enable.idempotence", "true")
    try configuration.set("acks", "all")
    return configuration
  }
}

extension KafkaProperties {
  /// Whether the properties go together for a consumer: what the library finds out only when a client is made, such as
  /// a certificate that cannot be used. Such a client is made and freed; it knows no brokers and connects to nothing.
  ///
  /// - Throws: `KafkaError` of origin `configuration`, with the library's words.
  package func checkConsumer(group: String) throws(KafkaError) {
    let configuration = try Configuration.consumer(self, group: group, isReachable: false)
    unsafe Self.free(try configuration.makeClient(RD_KAFKA_CONSUMER))
  }

  /// The same for a producer.
  package func checkProducer() throws(KafkaError) {
    unsafe Self.free(try Configuration.producer(self, isReachable: false).makeClient(RD_KAFKA_PRODUCER))
  }

  private static func free(_ client: OpaquePointer) {
    unsafe rd_kafka_destroy_flags(client, Int32(RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE))
  }
}
