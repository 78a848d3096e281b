import APNs
import Delivery
import Wire

/// The delivery thread's own work, without Kafka and without connections.
enum DeliveryWork {
  private static let start = Moment(
    instant: Instant(nanoseconds: 1_000_000_000), time: UnixTime(seconds: 1_790_000_000))

  private static func table(_ options: Options) -> AppTable {
    AppTable(
      (0..<options.apps).map {
        AppRules(name: "app-\($0)", bundleID: "com.example.app\($0)", environment: .production)
      })
  }

  /// Requests as `bench.py` writes them, one for each app, and more of them where there are few apps.
  private static func bodies(_ options: Options) -> [RecordBody] {
    let text = String(repeating: "x", count: options.payload - 20)
    let token = String(repeating: "ab12", count: 16)
    return (0..<max(options.apps, 64)).map { number in
      let id = "0f8fad5b-d9cb-469f-a165-7086\(String(10_000_000 + number))"
      let value =
        #"{"id":"\#(id)","app":"app-\#(number % options.apps)","token":"\#(token)","push_type":"alert","#
        + #""priority":10,"expiration":1800000000,"payload":{"aps":{"alert":"\#(text)"}}}"#
      return RecordBody(key: Array(token.utf8), value: Array(value.utf8))
    }
  }

  /// A record becomes a request.
  static func decode(_ options: Options) -> (Int) -> Int {
    let apps = table(options)
    let bodies = bodies(options)
    return { count in
      var decoder = RequestDecoder(topics: ["push.requests"], deferredTopic: nil)
      var digest = 0
      for number in 0..<count {
        let record = Record(
          source: PartitionID(topic: 0, partition: 0), offset: Int64(number), timestamp: start.time,
          body: bodies[number % bodies.count])
        if case .request(let request) = decoder.decode(record, apps: apps, now: start) {
          digest &+= request.notification.payload.count
        }
      }
      return digest
    }
  }

  /// From the polled record to the committed offset, in turns of a few hundred, as under load.
  static func deliver(_ options: Options) -> (Int) -> Int {
    let bodies = bodies(options)
    let batch = 512
    return { count in
      var cycle = Cycle(apps: table(options), partitions: options.partitions, start: start)
      var next = 0
      while next < count {
        let size = min(batch, count - next)
        cycle.turn(
          (next..<next + size).map { number in
            Record(
              source: PartitionID(topic: 0, partition: Int32(number * options.partitions / batch % options.partitions)),
              offset: Int64(number), timestamp: start.time, body: bodies[number % bodies.count])
          })
        next += size
      }
      cycle.turn([])
      cycle.turn([])
      return cycle.digest
    }
  }

  /// Records that settle out of order, and their commits.
  static func ledger(_ options: Options) -> (Int) -> Int {
    { count in
      var ledger = PartitionLedger()
      var digest = 0
      var sequences: [Int] = []
      for offset in 0..<count {
        if case .admitted(let sequence) = ledger.admit(offset: Int64(offset), items: 1) { sequences.append(sequence) }
        guard sequences.count == 512 else { continue }
        // Every seventh waits for the next round.
        let late = sequences.enumerated().filter { $0.offset % 7 == 3 }.map(\.element)
        for (place, sequence) in sequences.enumerated() where place % 7 != 3 { ledger.settle(sequence: sequence) }
        sequences = late
        if offset % 4096 < 512, let commit = ledger.takeCommit() { digest &+= Int(commit.offset) }
      }
      return digest &+ ledger.trackedCount
    }
  }
}

/// The machine, and the world around it: each turn answers what the turn before submitted, and acknowledges what it
/// published.
private struct Cycle {
  private var machine: DeliveryMachine
  private var moment: Moment
  private var outcomes: [LaneOutcome] = []
  private var receipts: [Receipt] = []
  private var turns = 0
  var digest = 0

  init(apps: AppTable, partitions: Int, start: Moment) {
    machine = DeliveryMachine(
      limits: DeliveryMachine.Limits(), retryPolicy: RetryPolicy(), apps: apps, topics: ["push.requests"],
      deferredTopic: nil, seed: 1)
    machine.assign((0..<partitions).map { (PartitionID(topic: 0, partition: Int32($0)), nil) })
    moment = start
  }

  mutating func turn(_ records: [Record]) {
    moment.instant = moment.instant + .milliseconds(5)
    turns += 1
    machine.take(outcomes: outcomes, at: moment)
    machine.take(receipts: receipts, at: moment)
    if machine.recordRoom() > 0 { machine.take(records, at: moment) }
    machine.advance(to: moment)
    outcomes.removeAll(keepingCapacity: true)
    receipts.removeAll(keepingCapacity: true)
    for lane in machine.submissions.indices {
      for submission in machine.submissions[lane] {
        digest &+= submission.notification.payload.count
        outcomes.append(
          LaneOutcome(
            slot: submission.slot, result: .answered(Response(status: 200)), sentAt: moment.instant,
            completedAt: moment.instant))
      }
      machine.submissions[lane].removeAll(keepingCapacity: true)
    }
    digest &+= machine.outbox.arena.count
    for item in machine.outbox.items { receipts.append(Receipt(ticket: item.ticket, outcome: .acknowledged)) }
    machine.outbox.removeAll()
    machine.events.removeAll(keepingCapacity: true)
    if turns % 8 == 0 { for commit in machine.takeCommits() { digest &+= Int(commit.offset) } }
    _ = machine.nextDeadline
  }
}
