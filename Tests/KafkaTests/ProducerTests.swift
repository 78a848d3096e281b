import Testing
import Wire

@testable import Kafka

struct ProducerTests {
  @Test func everyRecordGetsItsReportWithItsTicketOnce() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 4)
    let writer = try Writer(cluster.bootstrapServers)
    let topic = try writer.producer.topic("t")
    let tickets = (0..<2_000).map { UInt64($0) << 33 | UInt64($0) }
    for ticket in tickets {
      let result = try writer.producer.produce(
        topic: topic, key: Bytes("\(ticket)"), value: Bytes("v"), ticket: ticket)
      #expect(result == .queued)
    }
    #expect(writer.producer.outstanding == tickets.count)
    #expect(writer.run { writer.reports.count >= tickets.count })
    #expect(writer.reports.map(\.ticket).sorted() == tickets)
    #expect(writer.producer.outstanding == 0)
    var places: Set<PartitionID> = []
    for report in writer.reports {
      guard case .acknowledged(let partition, _) = report.outcome else {
        Issue.record("not acknowledged: \(report)")
        continue
      }
      places.insert(PartitionID(topic: 0, partition: partition))
    }
    #expect(places.count == 4)
  }

  @Test func reportsAreHandedOutUpToTheLimit() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    let topic = try writer.producer.topic("t")
    for ticket in 0..<100 {
      _ = try writer.producer.produce(topic: topic, key: nil, value: Bytes("v"), partition: 0, ticket: UInt64(ticket))
    }
    #expect(writer.wakeup.wait(milliseconds: 30_000))
    var reports: [DeliveryReport] = []
    while reports.count < 100 {
      let before = reports.count
      _ = writer.producer.takeReports(into: &reports, limit: 3)
      #expect(reports.count - before <= 3)
      if !writer.producer.hasReports, reports.count < 100 {
        guard writer.wakeup.wait(milliseconds: 30_000) else { break }
        writer.wakeup.reset()
      }
    }
    #expect(reports.map(\.ticket) == Array(0..<100))
  }

  @Test func aFullQueueIsBackPressureAndEndsWithTheReports() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 1)
    let writer = try Writer(cluster.bootstrapServers, settings: [("queue.buffering.max.messages", "10")])
    let topic = try writer.producer.topic("t")
    func produce(_ ticket: Int) throws -> ProduceResult {
      try writer.producer.produce(
        topic: topic, key: nil, value: Bytes("v"), extraHeaders: [("h", "1")], ticket: UInt64(ticket))
    }
    var queued = 0
    while try produce(queued) == .queued { queued += 1 }
    #expect(queued == 10)
    // The place is only free again when the report is taken.
    #expect(try produce(queued) == .full)
    #expect(writer.run { writer.reports.count == 10 })
    #expect(try produce(10) == .queued)
    #expect(writer.run { writer.reports.count == 11 })
  }

  @Test func aRecordThatIsTooLargeIsRefusedAtOnce() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers, settings: [("message.max.bytes", "2000")])
    let topic = try writer.producer.topic("t")
    #expect {
      try writer.producer.produce(topic: topic, key: nil, value: Bytes([UInt8](repeating: 0, count: 3_000)), ticket: 1)
    } throws: { error in
      guard let error = error as? KafkaError else { return false }
      return error.code == .messageTooLarge && error.subject == .topic("t") && !error.isRetriable
    }
  }

  @Test(arguments: [
    (KafkaError.Code.topicAuthorizationFailed, "TOPIC_AUTHORIZATION_FAILED"),
    (KafkaError.Code.messageTooLarge, "MSG_SIZE_TOO_LARGE"),
  ])
  func aRefusalOfTheBrokerIsATypedFailure(code: KafkaError.Code, name: String) throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", count: 1))
    cluster.pushErrors([code], for: .produce)
    #expect(try writer.fill("t", count: 1, from: 7))
    let report = try #require(writer.reports.last)
    #expect(report.ticket == 7)
    guard case .failed(let error, let mayBeStored) = report.outcome else {
      Issue.record("it was acknowledged")
      return
    }
    #expect(error.code == code)
    #expect(error.name == name)
    #expect(error.origin == .broker)
    #expect(error.subject == .topic("t"))
    #expect(!mayBeStored)
  }

  @Test func aPassingErrorOfTheBrokerIsRetriedByTheLibrary() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers, settings: [("retry.backoff.ms", "10")])
    #expect(try writer.fill("t", count: 1))
    cluster.pushErrors([.init(rawValue: 19), .init(rawValue: 7)], for: .produce)
    #expect(try writer.fill("t", count: 5, from: 1))
    for report in writer.reports {
      guard case .acknowledged = report.outcome else {
        Issue.record("\(report)")
        continue
      }
    }
  }

  @Test func aRecordThatNoBrokerTakesTimesOutAndIsReported() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 1)
    let writer = try Writer(cluster.bootstrapServers, settings: [("message.timeout.ms", "300")])
    try cluster.setBroker(1, isUp: false)
    #expect(try writer.fill("t", count: 3))
    for report in writer.reports {
      guard case .failed(let error, _) = report.outcome else {
        Issue.record("\(report)")
        continue
      }
      #expect(error.code == .messageTimedOut)
      #expect(error.isRetriable)
    }
    #expect(writer.run { writer.errors.contains { $0.code == .allBrokersDown || $0.code == .transport } })
    #expect(writer.errors.allSatisfy { !$0.isFatal })
    #expect(writer.producer.fatalError == nil)
  }

  /// Whatever puts a producer out of use, each of its records comes back, so that another one can take them over.
  @Test(arguments: [true, false])
  func aFailedProducerGivesBackWhatItHadNotStored(provoked: Bool) throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", count: 3))
    let topic = try writer.producer.topic("t")
    if provoked {
      try cluster.setBroker(1, isUp: false)
    } else {
      // The broker says that records are missing before these.
      cluster.pushErrors(Array(repeating: KafkaError.Code(rawValue: 45), count: 10), for: .produce)
    }
    for ticket in 10..<15 {
      _ = try writer.producer.produce(topic: topic, key: nil, value: Bytes("v"), partition: 0, ticket: UInt64(ticket))
    }
    if provoked { writer.producer.provokeFatalError() }
    #expect(writer.run { writer.producer.fatalError != nil })
    let fatal = try #require(writer.producer.fatalError)
    #expect(fatal.isFatal && fatal.name == "OUT_OF_ORDER_SEQUENCE_NUMBER")
    writer.producer.purge()
    #expect(writer.run { writer.producer.outstanding == 0 })
    #expect(Set(writer.reports.map(\.ticket)) == Set((0..<3).map { UInt64($0) } + (10..<15).map { UInt64($0) }))
    for report in writer.reports where report.ticket >= 10 {
      guard case .failed = report.outcome else {
        Issue.record("acknowledged: \(report)")
        continue
      }
    }
    #expect { try writer.producer.produce(topic: topic, key: nil, value: Bytes("v"), ticket: 20) } throws: {
      ($0 as? KafkaError)?.isFatal ?? false
    }
  }

  @Test func recordsThatAreToGoAloneAreJudgedAlone() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 1)
    let producer = try Producer(
      properties: KafkaProperties(brokers: cluster.bootstrapServers), isOneByOne: true, log: { _ in })
    cluster.pushErrors([.messageTooLarge], for: .produce)
    let topic = try producer.topic("t")
    for ticket in 0..<5 { _ = try producer.produce(topic: topic, key: nil, value: Bytes("v"), ticket: UInt64(ticket)) }
    var reports: [DeliveryReport] = []
    #expect(producer.flush(into: &reports, timeout: .seconds(30)))
    let failed = reports.filter { if case .failed = $0.outcome { true } else { false } }
    #expect(failed.count == 1 && reports.count == 5)
  }

  @Test(arguments: [
    (10 as Int32, PublishingFault.record), (87, .record), (29, .topic), (3, .topic), (31, .topic), (32, .topic),
    (19, .passing), (7, .passing), (56, .passing), (45, .passing), (-192, .passing), (-188, .topic),
  ])
  func errorsAreOfTheRecordOrOfItsTopicOrPass(code: Int32, fault: PublishingFault) {
    let error = KafkaError(
      origin: .broker, code: .init(rawValue: code), name: "", text: "", isRetriable: false, isFatal: false)
    #expect(error.publishingFault == fault)
  }

  @Test func errorsAreFoundByNameAndNumber() {
    #expect(KafkaError.Code("not_leader_for_partition")?.rawValue == 6)
    #expect(KafkaError.Code("45")?.rawValue == 45)
    #expect(KafkaError.Code("NO_SUCH_ERROR") == nil)
  }

  @Test func purgedRecordsAreReportedAsFailed() throws {
    let cluster = try MockCluster()
    try cluster.setBroker(1, isUp: false)
    let writer = try Writer(cluster.bootstrapServers)
    let topic = try writer.producer.topic("t")
    for ticket in 0..<5 {
      #expect(try writer.producer.produce(topic: topic, key: nil, value: Bytes("v"), ticket: UInt64(ticket)) == .queued)
    }
    writer.producer.purge()
    #expect(writer.run { writer.reports.count == 5 })
    for report in writer.reports {
      guard case .failed(let error, let mayBeStored) = report.outcome else {
        Issue.record("\(report)")
        continue
      }
      #expect(error.code == .purgedFromQueue)
      #expect(!mayBeStored)
    }
  }

  @Test func flushWaitsForAllReports() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    let topic = try writer.producer.topic("t")
    for ticket in 0..<500 {
      _ = try writer.producer.produce(topic: topic, key: nil, value: Bytes("v"), ticket: UInt64(ticket))
    }
    #expect(writer.producer.flush(into: &writer.reports, timeout: .seconds(60)))
    #expect(writer.reports.count == 500)
    #expect(writer.producer.outstanding == 0)
  }

  @Test func flushGivesUpAtItsTimeout() throws {
    let cluster = try MockCluster()
    try cluster.setBroker(1, isUp: false)
    let writer = try Writer(cluster.bootstrapServers)
    _ = try writer.producer.produce(topic: try writer.producer.topic("t"), key: nil, value: Bytes("v"), ticket: 1)
    #expect(!writer.producer.flush(into: &writer.reports, timeout: .milliseconds(20)))
    #expect(writer.reports.isEmpty)
    #expect(writer.producer.outstanding == 1)
    // Closing with records outstanding neither hangs nor crashes, twice no more than once.
    writer.producer.close()
    writer.producer.close()
  }

  @Test func theSameTopicHasOneHandle() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    let first = try writer.producer.topic("a")
    #expect(try writer.producer.topic("b") != first)
    #expect(try writer.producer.topic("a") == first)
  }

  @Test func reportsAreAnnounced() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", count: 1))
    writer.turn()
    writer.wakeup.reset()
    writer.turn()
    _ = try writer.producer.produce(topic: try writer.producer.topic("t"), key: nil, value: Bytes("v"), ticket: 9)
    #expect(writer.wakeup.wait(milliseconds: 30_000))
    writer.wakeup.reset()
    writer.turn()
    #expect(writer.reports.last?.ticket == 9)
  }
}
