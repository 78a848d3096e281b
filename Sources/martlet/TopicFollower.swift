import Kafka
import Service
import Wire

/// A topic cannot be followed, in words.
struct FollowError: Error, CustomStringConvertible {
  var description: String
}

/// Reads a topic from a point on. It joins no group and commits nothing, so that it disturbs nobody.
///
/// One thread owns it; making it blocks while it asks the brokers.
final class TopicFollower {
  private let consumer: Consumer
  private let wakeUp: ConsumerWait
  private let places: [PartitionID]
  /// What is older is passed over: timestamps need not be in the order of the offsets.
  private let since: UnixTime?
  /// Where each partition ended when reading began.
  private var ends: [Int64] = []
  /// The next offset of each partition.
  private var next: [Int64] = []
  private var lastRecord: Instant

  var partitionCount: Int { places.count }

  /// - Parameter timeout: for each question to the brokers.
  init(_ topic: String, of kafka: KafkaSettings, from start: FollowOptions.Start, timeout: Duration) throws {
    let desk = try TopicDesk(properties: try kafka.consumer())
    let brokers = kafka.brokers.joined(separator: ",")
    let state: TopicDesk.State
    do {
      state = try desk.look(at: [topic], timeout: timeout, withSettings: false)[topic] ?? .missing
    } catch {
      throw FollowError(description: "\(brokers): \(desk.explain(error))")
    }
    let count: Int
    switch state {
    case .exists(let facts): count = facts.partitions
    case .refused(let error): throw FollowError(description: "topic \(topic): \(error.text)")
    case .missing:
      throw FollowError(
        description: "there is no topic \(topic) at \(brokers), or it may not be described; "
          + "'martlet topics create' makes it")
    }
    places = (0..<Int32(clamping: count)).map { PartitionID(topic: 0, partition: $0) }
    consumer = try Consumer(
      properties: try kafka.consumer(), group: kafka.group, topics: [topic], membership: .manual, log: { _ in })
    wakeUp = try ConsumerWait(for: consumer)
    lastRecord = ServiceClock.now().instant
    var starts: [StartingPoint] = []
    if case .time(let time) = start {
      since = time
      // Brokers without a controller are the embedded ones, which find no times.
      if desk.hasController {
        starts = try consumer.startingPoints(at: time, of: places, timeout: timeout)
      }
    } else {
      since = nil
    }
    for place in places {
      let found = try consumer.queryEnds(of: place, timeout: timeout)
      ends.append(found.high)
      let known = starts.first { $0.partition == place }?.offset
      next.append(start == .now ? found.high : known == StartingPoint.end ? found.high : known ?? found.low)
    }
    try consumer.assign(places.map { StartingPoint(partition: $0, offset: next[Int($0.partition)]) })
  }

  /// Takes what is there, without blocking.
  ///
  /// - Returns: an error of the client or of a partition; unless `isLasting` it goes on by itself.
  func poll(into batch: inout [Record], limit: Int) -> KafkaError? {
    let before = batch.count
    let event = consumer.poll(into: &batch, limit: limit)
    for record in batch[before...] {
      next[Int(record.source.partition)] = record.offset + 1
    }
    if batch.count > before { lastRecord = ServiceClock.now().instant }
    if let since { batch.removeAll { $0.timestamp.map { $0 < since } ?? false } }
    // Nothing is asked of the group, so whoever reads needs no rights on it.
    if case .error(let error) = event, error.code != .groupAuthorizationFailed { return error }
    return nil
  }

  /// Returns when there is more to take, or after `time`.
  func wait(atMost time: Duration) { wakeUp.wait(atMost: time) }

  /// Whether all is read that was there at the start.
  ///
  /// The last offsets of a partition may belong to no record (markers of transactions); then a quiet time decides.
  var isAtEnd: Bool {
    let isRead = places.indices.allSatisfy { next[$0] >= ends[$0] }
    return isRead || ServiceClock.now().instant - lastRecord > .seconds(10)
  }
}
