import Testing
import Wire

@testable import Kafka

struct RoundTripTests {
  private struct Sample: Sendable {
    var name: String
    var key: [UInt8]?
    var value: [UInt8]?
    var headers: [(name: String, value: [UInt8]?)] = []
  }

  private static let samples = [
    Sample(name: "plain", key: Array("k".utf8), value: Array("v".utf8)),
    Sample(name: "no key", key: nil, value: Array("v".utf8)),
    Sample(name: "empty key", key: [], value: Array("v".utf8)),
    Sample(name: "tombstone", key: Array("k".utf8), value: nil),
    Sample(name: "empty value", key: Array("k".utf8), value: []),
    Sample(name: "nothing at all", key: nil, value: nil),
    Sample(name: "binary", key: [0, 255, 0], value: [0, 1, 2, 0, 255]),
    Sample(
      name: "headers", key: nil, value: Array("v".utf8),
      headers: [("a", Array("1".utf8)), ("null", nil), ("empty", []), ("a", Array("2".utf8)), ("z", [0, 0])]),
    Sample(name: "headers alone", key: nil, value: nil, headers: [("only", Array("x".utf8))]),
  ]

  @Test func bringsBackExactlyWhatWasWritten() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 1)
    let writer = try Writer(cluster.bootstrapServers)
    let topic = try writer.producer.topic("t")
    for (number, sample) in Self.samples.enumerated() {
      let body = RecordBody(key: sample.key, value: sample.value, headers: sample.headers)
      let result = try writer.producer.produce(
        topic: topic, key: body.key.map { Bytes(body.storage, $0) }, value: body.value.map { Bytes(body.storage, $0) },
        headerStorage: body.storage, headers: body.headers, timestamp: UnixTime(milliseconds: 1_000 + Int64(number)),
        ticket: UInt64(number))
      #expect(result == .queued)
    }
    #expect(writer.run { writer.reports.count == Self.samples.count })

    let reader = try Reader(cluster, group: "g", topics: ["other", "t"], membership: .manual)
    try reader.assign([partition(0, topic: 1)])
    #expect(try reader.run { reader.records.count >= Self.samples.count })
    for (number, (sample, record)) in zip(Self.samples, reader.records).enumerated() {
      #expect(record.source == partition(0, topic: 1), "\(sample.name)")
      #expect(record.offset == Int64(number), "\(sample.name)")
      #expect(record.timestamp == UnixTime(milliseconds: 1_000 + Int64(number)), "\(sample.name)")
      func bytes(_ range: ByteRange?) -> [UInt8]? { range.map { Array(record.body.storage[$0.indices]) } }
      #expect(bytes(record.body.key) == sample.key, "\(sample.name)")
      #expect(bytes(record.body.value) == sample.value, "\(sample.name)")
      #expect(record.body.headers.map { bytes($0.name) } == sample.headers.map { Array($0.name.utf8) })
      #expect(record.body.headers.map { bytes($0.value) } == sample.headers.map(\.value), "\(sample.name)")
    }
  }

  @Test func ownHeadersFollowTheCopiedOnes() throws {
    let cluster = try MockCluster()
    let writer = try Writer(cluster.bootstrapServers)
    let body = RecordBody(key: nil, value: nil, headers: [("traceparent", Array("00-1".utf8))])
    _ = try writer.producer.produce(
      topic: try writer.producer.topic("t"), key: nil, value: Bytes("v"), headerStorage: body.storage,
      headers: body.headers, extraHeaders: [("reason", "no app"), ("empty", "")], partition: 0, ticket: 1)
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    try reader.assign([partition(0)])
    #expect(try reader.run { reader.records.count == 1 })
    let record = try #require(reader.records.first)
    let headers = record.body.headers.map { header in
      [header.name, header.value ?? .empty].map { Bytes(record.body.storage, $0).text }
    }
    #expect(headers == [["traceparent", "00-1"], ["reason", "no app"], ["empty", ""]])
    #expect(record.timestamp != nil)
  }

  @Test func theLimitOfAPollIsKeptAndNothingIsLost() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 2)
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", partition: 0, count: 300))
    #expect(try writer.fill("t", partition: 1, count: 300))
    let reader = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    try reader.assign([partition(0), partition(1)])
    var batch: [Record] = []
    while batch.count < 600 {
      let before = batch.count
      _ = reader.consumer.poll(into: &batch, limit: 7)
      #expect(batch.count - before <= 7)
      if !reader.consumer.hasRecords, batch.count < 600 {
        guard reader.wakeup.wait(milliseconds: 30_000) else { break }
        reader.wakeup.reset()
      }
    }
    for number in [Int32(0), 1] {
      let offsets = batch.filter { $0.source.partition == number }.map(\.offset).sorted()
      #expect(offsets == Array(0..<300))
    }
  }
}
