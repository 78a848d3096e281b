import Delivery
import Wire

/// What producers send: mostly good requests, in bursts, for apps drawn at random.
final class Workload {
  private let world: World
  private let broker: Broker
  private let scenario: Scenario
  private let largestBatch: Int
  private var left: Int

  init(world: World, broker: Broker, scenario: Scenario, largestBatch: Int) {
    self.world = world
    self.broker = broker
    self.scenario = scenario
    self.largestBatch = largestBatch
    left = scenario.requests
  }

  var isOver: Bool { left == 0 }

  func begin() {
    let bursts = max(1, scenario.requests / 12)
    sendBurst(pause: scenario.duration / (2 * bursts))
  }

  private func sendBurst(pause: Duration) {
    for _ in 0..<min(left, 1 + world.random.uniform(below: 24)) {
      left -= 1
      sendOne()
    }
    if left > 0 { world.after(world.between(.zero, pause * 2)) { self.sendBurst(pause: pause) } }
  }

  private func sendOne() {
    let partition = PartitionID(
      topic: Broker.requests, partition: Int32(world.random.uniform(below: broker.requestPartitions)))
    let source = Source(partition: partition, offset: broker.nextOffset(partition))
    if world.strikes(.badRecords) {
      sendBad(source)
    } else {
      // A batch whose app is gone is refused as a whole, which is no matter of its items.
      let isBatch = scenario.faults.weights[.reload] == nil && world.strikes(.batches)
      let count = isBatch ? 2 + world.random.uniform(below: largestBatch - 1) : 1
      sendGood(source, count: count)
    }
  }

  private func sendBad(_ source: Source) {
    let kind = world.random.uniform(below: 4)
    if kind == 0 {
      broker.append(source.partition, RecordBody(key: [1], value: nil), items: [])
      return
    }
    var item = Oracle.Item(app: -1, isWellFormed: false, source: source, createdAt: world.now)
    item.needsResult = kind == 1
    item.needsDeadLetter = true
    let number = broker.oracle.add(item)
    let value =
      switch kind {
      case 1: #"{"id":"bad\#(number)","app":"nobody","token":"aabb","payload":{"aps":{}}}"#
      case 2: #"{"app":"app-0","n":\#(number),"token":"aabb","payload":"#
      default: "[1,\(number)]"
      }
    broker.oracle[number].value = Array(value.utf8)
    broker.append(source.partition, RecordBody(key: nil, value: Array(value.utf8)), items: [number])
  }

  private func sendGood(_ source: Source, count: Int) {
    let app = world.random.uniform(below: scenario.apps)
    let isTooLarge = world.strikes(.tooLarge)
    let isNeverStorable = world.strikes(.neverStorable)
    var expiration: Int64?
    if world.strikes(.expirations) {
      expiration = world.random.chance(0.3) ? 0 : world.time.seconds + Int64(world.random.uniform(below: 30))
    }
    // Few keys in order, so that they meet; as many as requests otherwise.
    let key =
      scenario.isOrderedByKey
      ? (world.random.chance(0.1) ? nil : "\(keyPrefix(app))k\(world.random.uniform(below: 8))") : "k\(source.offset)"
    var numbers: [Int] = []
    var tokens: [String] = []
    for index in 0..<count {
      var source = source
      source.item = Int32(index)
      var item = Oracle.Item(
        app: app, isWellFormed: true, source: source, expiration: expiration, createdAt: world.now)
      item.isTooLarge = isTooLarge
      item.isNeverStorable = isNeverStorable
      if scenario.isOrderedByKey { item.key = key }
      if count > 1, index > 0, world.random.chance(0.1) { item.isWellFormed = false }
      numbers.append(broker.oracle.add(item))
      tokens.append(item.isWellFormed ? Oracle.token(numbers[index]) : "zz")
    }
    if count == 1, world.random.chance(0.3) {
      sendHeaderForm(
        source, app: app, number: numbers[0], key: key, expiration: expiration, isTooLarge: isTooLarge)
      return
    }
    let target =
      count == 1
      ? #""token":"\#(tokens[0])""# : "\"tokens\":[\(tokens.map { "\"\($0)\"" }.joined(separator: ","))]"
    let until = expiration.map { #","expiration":\#($0)"# } ?? ""
    let id = world.random.chance(0.5) ? "\"id\":\"r\(numbers[0])\"," : ""
    let value = #"{\#(id)"app":"app-\#(app)",\#(target)\#(until),"payload":{"aps":{"alert":"x"}}}"#
    for number in numbers { broker.oracle[number].value = Array(value.utf8) }
    broker.append(
      source.partition,
      RecordBody(
        key: key.map { Array($0.utf8) }, value: Array(value.utf8),
        headers: isTooLarge ? [("traceparent", Array("00-0af7".utf8))] : []),
      items: numbers)
  }

  /// Requests of one key wait for each other, also those of different apps.
  private func keyPrefix(_ app: Int) -> String { scenario.kind == .isolation ? "a\(app)" : "" }

  private func sendHeaderForm(
    _ source: Source, app: Int, number: Int, key: String?, expiration: Int64?, isTooLarge: Bool
  ) {
    var headers: [(name: String, value: [UInt8]?)] = [
      ("app", Array("app-\(app)".utf8)), ("token", Array(Oracle.token(number).utf8)),
    ]
    if let expiration { headers.append(("apns-expiration", Array(String(expiration).utf8))) }
    if isTooLarge { headers.append(("traceparent", Array("00-0af7".utf8))) }
    let value = Array(#"{"aps":{"alert":"x\#(number)"}}"#.utf8)
    broker.oracle[number].value = value
    broker.append(
      source.partition,
      RecordBody(
        key: key.map { Array($0.utf8) }, value: value, headers: headers),
      items: [number])
  }
}
