internal import Kafka

/// Whether librdkafka accepts the properties of Kafka's clients together: what it says of each alone is known when they
/// are read.
package enum KafkaFitCheck {
  /// - Parameter file: the configuration that the settings were read from.
  package static func problems(of kafka: KafkaSettings, file: String) -> [ConfigurationProblem] {
    var faults: [(client: String, text: String)] = []
    func check(_ client: String, _ attempt: () throws -> Void) {
      do {
        try attempt()
      } catch {
        faults.append((client, (error as? KafkaError)?.text ?? "\(error)"))
      }
    }
    check("consumer") { try kafka.consumer().checkConsumer(group: kafka.group) }
    check("producer") { try kafka.producer().checkProducer() }
    // What is wrong with both is said once.
    if faults.count == 2, faults[0].text == faults[1].text { faults = [("clients", faults[0].text)] }
    return faults.map { fault in
      ConfigurationProblem(
        severity: .error, file: file, path: "kafka",
        message: "librdkafka refuses the properties of the \(fault.client): \(fault.text)")
    }
  }
}
