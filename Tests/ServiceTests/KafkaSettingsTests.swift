import TestSupport
import Testing

@testable import Service

/// The section `kafka` of a configuration.
struct KafkaSettingsTests {
  private let fixture: SettingsFixture

  init() throws { fixture = try SettingsFixture() }

  @Test(arguments: [
    ("topics: { results: 'push.requests' }", "kafka.topics", "the same"),
    ("topics: { requests: [] }", "kafka.topics.requests", "out of range"),
    ("topics: { results: 'no/slash' }", "kafka.topics.results", "not allowed"),
    ("properties: { 'bootstrap.servers': 'x' }", #"kafka.properties."bootstrap.servers""#, "kafka.brokers"),
    ("properties: { 'enable.auto.commit': true }", #"kafka.properties."enable.auto.commit""#, "cannot be set"),
    ("properties: { 'sasl.password': '\(Planted.password)' }", #"kafka.properties."sasl.password""#, "secret"),
    ("properties: { 'sasl.password': { file: 'gone/x' } }", #"kafka.properties."sasl.password".file"#, "no such file"),
    ("properties: { 'ssl.ca.location': 'gone/ca.pem' }", #"kafka.properties."ssl.ca.location""#, "no such file"),
    ("properties: { 'ssl.key.location': '.' }", #"kafka.properties."ssl.key.location""#, "a directory"),
    ("properties: { debug: [1] }", "kafka.properties.debug", "wrong type"),
    ("properties: { debgu: 'all' }", "kafka.properties.debgu", "does not know"),
    ("properties: { debug: 'nonsense' }", "kafka.properties.debug", "nonsense"),
    ("properties: { 'group.instance.id': 'x' }", #"kafka.properties."group.instance.id""#, "groupInstanceId"),
  ])
  func wrongKafkaSettingsAreNamed(members: String, path: String, message: String) {
    let problems = fixture.problems("{ kafka: { brokers: 'b', \(members) }, apps: { \(SettingsFixture.app) } }")
    #expect(problems.map(\.path) == [path], "\(problems)")
    #expect(problems.first?.message.contains(message) == true, "\(problems)")
  }

  @Test
  func placesOfFilesStartFromTheConfiguration() throws {
    let loaded = try fixture.load(
      """
      { kafka: { brokers: 'b', properties: { 'ssl.ca.location': '.', 'ssl.certificate.location': 'apns.pem' },
          producerProperties: { 'ssl.ca.location': 'probe', 'ssl.crl.location': '' } }, apps: { \(SettingsFixture.app) } }
      """)
    let directory = fixture.files.path
    #expect(
      loaded.settings.kafka.properties.map(\.value) == [.path("\(directory)/."), .path("\(directory)/apns.pem")])
    #expect(loaded.settings.kafka.producerProperties.map(\.value) == [.text("probe"), .text("")])
    #expect(loaded.files.contains("\(directory)/apns.pem"))
  }

  @Test(arguments: ["'kafka:x'", "'kafka:0'", "''", "'a:1,,b:2'", "[]", "3"])
  func brokersMustBeAddresses(brokers: String) {
    let problems = fixture.problems("{ kafka: { brokers: \(brokers) }, apps: { \(SettingsFixture.app) } }")
    #expect(problems.count == 1 && problems[0].path.hasPrefix("kafka.brokers"), "\(problems)")
  }
}
