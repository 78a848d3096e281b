import Testing

@testable import Kafka

struct PropertiesTests {
  private func refusal(_ name: String, _ value: String) throws -> KafkaError? {
    var properties = try KafkaProperties(brokers: "localhost:9092")
    do {
      try properties.set(name, to: value)
      return nil
    } catch { return error }
  }

  @Test(arguments: [
    ("no.such.property", "1", "no.such.property"),
    ("fetch.wait.max.ms", "soon", "fetch.wait.max.ms"),
    ("fetch.wait.max.ms", "99999999", "range 0..300000"),
    ("compression.type", "rar", "compression.type"),
    ("security.protocol", "carrier-pigeon", "security.protocol"),
    ("rebalance_cb", "x", "rebalance_cb"),
    ("client.id", "a\0b", "NUL"),
  ])
  func refusesUnknownPropertiesAndImpossibleValues(name: String, value: String, mention: String) throws {
    let error = try #require(try refusal(name, value))
    #expect(error.origin == .configuration)
    #expect(error.subject == .property(name))
    #expect(error.description.contains(mention))
    #expect(!error.isRetriable)
  }

  /// The library breaks when a consumer's watched configuration is freed after it was refused.
  @Test func aConsumerWhosePropertiesDoNotGoTogetherIsRefused() throws {
    var properties = try KafkaProperties(brokers: "localhost:1")
    try properties.set("security.protocol", to: "sasl_ssl")
    try properties.set("sasl.mechanism", to: "SCRAM-SHA-256")
    for _ in 0..<3 {
      let error = #expect(throws: KafkaError.self) {
        try Consumer(properties: properties, group: "g", topics: ["t"], log: { _ in })
      }
      #expect(error?.origin == .configuration && error?.text.contains("sasl.username") == true)
      #expect(throws: KafkaError.self) { try properties.checkConsumer(group: "g") }
      #expect(throws: KafkaError.self) { try properties.checkProducer() }
    }
  }

  @Test func propertiesThatFitPassWithoutABroker() throws {
    let properties = try KafkaProperties(brokers: "localhost:1")
    try properties.checkConsumer(group: "g")
    try properties.checkProducer()
  }

  @Test(arguments: KafkaDefaults.owned.keys.sorted())
  func refusesWhatTheServiceOwns(name: String) throws {
    let error = try #require(try refusal(name, "1"))
    #expect(error.subject == .property(name))
    #expect(error.text.hasPrefix("cannot be set: "))
  }

  @Test(arguments: [("DIGEST-MD5", "DIGEST-MD5"), ("", "use one of")])
  func refusesSASLMechanismsThatCannotWork(mechanism: String, mention: String) throws {
    for name in ["sasl.mechanism", "sasl.mechanisms"] {
      let error = try #require(try refusal(name, mechanism))
      #expect(error.subject == .property(name))
      #expect(error.text.contains(mention))
      #expect(error.text.contains("SCRAM-SHA-256"))
    }
  }

  @Test(arguments: [
    ("sasl.mechanism", "PLAIN"), ("sasl.mechanism", "OAUTHBEARER"),
    ("sasl.mechanisms", "SCRAM-SHA-512"), ("group.instance.id", "pod-1"),
    ("queue.buffering.max.ms", "0"), ("ssl.ca.location", "/etc/ssl/certs"), ("debug", "cgrp"),
  ])
  func takesEveryOtherProperty(name: String, value: String) throws {
    #expect(try refusal(name, value) == nil)
  }

  @Test func theLastValueStands() throws {
    var properties = try KafkaProperties(brokers: "localhost:9092")
    let defaults = properties.entries.count
    #expect(properties.value(of: "linger.ms") == "5")
    try properties.set("linger.ms", to: "20")
    #expect(properties.value(of: "linger.ms") == "20")
    #expect(properties.entries.count == defaults)
  }

  @Test(arguments: ["", " ", ",", " , "])
  func refusesAnEmptyListOfBrokers(brokers: String) {
    #expect(throws: KafkaError.self) { try KafkaProperties(brokers: brokers) }
  }

  @Test func theLibraryTellsWhoseAPropertyIs() {
    #expect(KafkaLibrary.sides["group.id"] == .consumer)
    #expect(KafkaLibrary.sides["linger.ms"] == .producer)
    #expect(KafkaLibrary.sides["client.id"] == .both)
    #expect(KafkaLibrary.sides["Property"] == nil)
    #expect(KafkaLibrary.version.split(separator: ".").count >= 3)
    #expect(KafkaLibrary.features.contains("ssl"))
  }

  @Test func everyDefaultIsValidAndHasItsReason() throws {
    for setting in KafkaDefaults.table {
      #expect(!setting.reason.isEmpty)
      #expect(KafkaDefaults.owned[setting.name] == nil)
      if KafkaLibrary.sides[setting.name] != nil {
        #expect(try refusal(setting.name, setting.value) == nil, "\(setting.name)")
      }
    }
    let names = KafkaDefaults.table.map(\.name)
    #expect(Set(names).count == names.count)
  }

  @Test func settingsOfTheOtherSideMakeNoWarnings() throws {
    let cluster = try MockCluster()
    let settings = [("session.timeout.ms", "20000"), ("batch.num.messages", "500"), ("auto.offset.reset", "latest")]
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual, settings: settings)
    let writer = try Writer(cluster.bootstrapServers, settings: settings)
    #expect(try writer.fill("t", count: 1))
    try reader.assign([partition(0)])
    #expect(try reader.run { reader.records.count == 1 })
    #expect(reader.log.lines.filter { $0.facility.hasPrefix("CONF") } == [])
    #expect(writer.log.lines.filter { $0.facility.hasPrefix("CONF") } == [])
  }

  @Test func settingsThatDoNotGoTogetherAreRefusedWhenTheClientIsMade() throws {
    var properties = try KafkaProperties(brokers: "localhost:9092")
    try properties.set("max.in.flight", to: "100")
    #expect {
      try Producer(properties: properties, log: { _ in })
    } throws: { error in
      guard let error = error as? KafkaError else { return false }
      return error.origin == .configuration && error.text.contains("max.in.flight")
    }
  }

  @Test(arguments: [[], [""], ["^push.*"], ["a", "a"]])
  func refusesTopicListsThatCannotBeMeant(topics: [String]) throws {
    let properties = try KafkaProperties(brokers: "localhost:9092")
    #expect(throws: KafkaError.self) {
      try Consumer(properties: properties, group: "g", topics: topics, log: { _ in })
    }
  }
}
