internal import Delivery
internal import Wire

/// What the status page shows over time: the service's last five minutes, and of each app its last five.
///
/// A value without a clock: whoever owns it samples it each `step`. Its size is bounded by the number of apps.
struct StatusHistory: Sendable {
  /// Between two samples.
  static let step: Duration = .seconds(2)
  /// Samples that are kept of the service.
  static let samples = 150
  /// Samples that make one slot of an app.
  static let samplesPerSlot = 5
  /// Slots that are kept of an app's outcomes.
  static let slots = 30
  /// Slots that an app's latencies are taken from.
  static let latencySlots = 6

  /// Numbers of the service at one moment; those that count have counted since the start.
  struct Sample: Sendable {
    var at: Instant
    var totals: OutcomeTotals
    var inFlight: Int
    var lag: Int
    var connections: Int
    /// Processor time of the process.
    var processor: Duration
    /// Buckets since the start, by stage.
    var stages: [[UInt64]]
  }

  /// The spans of time that are shown of the service.
  enum Stage: Int, CaseIterable, Sendable {
    case recordToSend, sendToAnswer, answerToSettled, endToEnd, ping

    var name: String {
      switch self {
      case .recordToSend: "record_to_send"
      case .sendToAnswer: "send_to_answer"
      case .answerToSettled: "answer_to_settled"
      case .endToEnd: "end_to_end"
      case .ping: "ping"
      }
    }
  }

  private(set) var service: [Sample] = []
  private var apps: [AppHistory] = []
  private var sinceSlot = 0
  private var slotAt: Instant?

  /// Takes the numbers of this moment.
  ///
  /// - Parameter processor: how much processor time the process has had.
  mutating func sample(_ snapshot: MetricSnapshot, processor: Duration, at now: Instant) {
    if service.count == Self.samples { service.removeFirst() }
    service.append(Sample(snapshot, processor: processor, at: now))
    while apps.count < snapshot.apps.count { apps.append(AppHistory()) }
    guard sinceSlot == 0 || sinceSlot >= Self.samplesPerSlot else {
      sinceSlot += 1
      return
    }
    for index in snapshot.apps.indices { apps[index].closeSlot(snapshot, AppIndex(Int32(index))) }
    sinceSlot = 1
    slotAt = now
  }

  /// Processor time of the last ten seconds, in hundredths of one core.
  var processorPercent: Double {
    guard let last = service.last else { return 0 }
    let first = service[max(0, service.count - 1 - Self.samplesPerSlot)]
    guard last.at > first.at else { return 0 }
    return Double((last.processor - first.processor).nanoseconds) * 100 / Double((last.at - first.at).nanoseconds)
  }

  /// What happened between each two samples, oldest first.
  func steps<Value>(_ value: (_ from: Sample, _ to: Sample, _ seconds: Double) -> Value) -> [Value] {
    zip(service, service.dropFirst()).map { value($0, $1, max(1e-3, Double(($1.at - $0.at).nanoseconds) / 1e9)) }
  }

  /// A quantile over the last ten seconds at each sample but the first, in microseconds.
  func quantiles(_ quantile: Double, of stage: Stage) -> [Int?] {
    service.indices.dropFirst().map { index in
      let from = service[max(0, index - Self.samplesPerSlot)].stages[stage.rawValue]
      let buckets = zip(service[index].stages[stage.rawValue], from).map { $0 &- $1 }
      return LatencyQuantiles.microseconds(quantile, of: buckets)
    }
  }

  /// Quantiles over the last minute, in microseconds.
  func lastMinute(_ stage: Stage, _ quantiles: [Double]) -> [Int?] {
    guard let last = service.last else { return quantiles.map { _ in nil } }
    let from = service[max(0, service.count - 1 - 30)].stages[stage.rawValue]
    let buckets = zip(last.stages[stage.rawValue], from).map { $0 &- $1 }
    return quantiles.map { LatencyQuantiles.microseconds($0, of: buckets) }
  }

  /// An app's last minutes, up to now.
  func app(_ index: Int, _ snapshot: MetricSnapshot, at now: Instant) -> AppTrend {
    guard index < apps.count, let slotAt else { return AppTrend() }
    return apps[index].trend(snapshot, AppIndex(Int32(index)), sinceSlot: now - slotAt)
  }
}

extension StatusHistory.Sample {
  init(_ snapshot: MetricSnapshot, processor: Duration, at now: Instant) {
    var totals = OutcomeTotals(snapshot, app: nil)
    var inFlight = snapshot.value(.inFlight, app: nil)
    var connections = 0
    var answers = Array(repeating: UInt64(0), count: HistogramBuckets.count)
    for index in snapshot.apps.indices {
      let app = AppIndex(Int32(index))
      totals.add(OutcomeTotals(snapshot, app: app))
      inFlight += snapshot.value(.inFlight, app: app)
      connections += snapshot.value(.connections(.open), app: app)
      for (place, count) in snapshot.buckets(.sendToAnswer, app: app).enumerated() { answers[place] &+= count }
    }
    let stages = StatusHistory.Stage.allCases.map { stage in
      switch stage {
      case .recordToSend: snapshot.buckets(.recordToSend)
      case .sendToAnswer: answers
      case .answerToSettled: snapshot.buckets(.answerToSettled)
      case .endToEnd: snapshot.buckets(.endToEnd)
      case .ping: snapshot.buckets(.pingRoundTrip)
      }
    }
    self.init(
      at: now, totals: totals, inFlight: max(0, inFlight),
      lag: Int(snapshot.partitions.reduce(0) { $0 + max(0, $1.lag ?? 0) }), connections: max(0, connections),
      processor: processor, stages: stages)
  }
}

/// How notifications ended, since the start.
struct OutcomeTotals: Equatable, Sendable {
  var delivered = 0
  var rejected = 0
  var expired = 0
  var failed = 0
  var invalid = 0
  var retries = 0

  init() {}

  init(_ snapshot: MetricSnapshot, app: AppIndex?) {
    delivered = snapshot.ended(.delivered, app: app)
    rejected = snapshot.ended(.rejected, app: app)
    expired = snapshot.ended(.expired, app: app)
    failed = snapshot.ended(.failed, app: app)
    invalid = snapshot.ended(.invalid, app: app)
    retries = RetryPolicy.Cause.allCases.reduce(0) { $0 + snapshot.value(.retries($1), app: app) }
  }

  /// All that ended without being delivered.
  var bad: Int { rejected + expired + failed + invalid }

  mutating func add(_ other: OutcomeTotals) {
    delivered += other.delivered
    rejected += other.rejected
    expired += other.expired
    failed += other.failed
    invalid += other.invalid
    retries += other.retries
  }
}

/// What is shown of an app over time.
struct AppTrend: Equatable, Sendable {
  /// Notifications that ended each ten seconds, delivered and not, oldest first.
  var good: [UInt32] = []
  var bad: [UInt32] = []
  /// Ended a second now.
  var perSecond: Double = 0
  /// APNs' answers in the last minute, in microseconds.
  var median: Int?
  var p99: Int?
}

/// The last minutes of one app, as differences between slots.
private struct AppHistory: Sendable {
  private var good: [UInt32] = []
  private var bad: [UInt32] = []
  private var latencies: [[UInt32]] = []
  /// Since the start, when the last slot was closed.
  private var last: (good: Int, bad: Int, buckets: [UInt64])?

  mutating func closeSlot(_ snapshot: MetricSnapshot, _ app: AppIndex) {
    let totals = OutcomeTotals(snapshot, app: app)
    let buckets = snapshot.buckets(.sendToAnswer, app: app)
    defer { last = (totals.delivered, totals.bad, buckets) }
    guard let last else { return }
    Self.push(UInt32(clamping: totals.delivered - last.good), onto: &good, atMost: StatusHistory.slots)
    Self.push(UInt32(clamping: totals.bad - last.bad), onto: &bad, atMost: StatusHistory.slots)
    let spans = zip(buckets, last.buckets).map { UInt32(clamping: $0 &- $1) }
    Self.push(spans, onto: &latencies, atMost: StatusHistory.latencySlots)
  }

  func trend(_ snapshot: MetricSnapshot, _ app: AppIndex, sinceSlot: Duration) -> AppTrend {
    var trend = AppTrend()
    guard let last else { return trend }
    trend.good = good
    trend.bad = bad
    let totals = OutcomeTotals(snapshot, app: app)
    var ended = totals.delivered + totals.bad - last.good - last.bad
    var elapsed = sinceSlot
    if let good = good.last, let bad = bad.last {
      ended += Int(good) + Int(bad)
      elapsed += StatusHistory.step * StatusHistory.samplesPerSlot
    }
    if elapsed > .zero { trend.perSecond = Double(ended) * 1e9 / Double(elapsed.nanoseconds) }
    var buckets = zip(snapshot.buckets(.sendToAnswer, app: app), last.buckets).map { $0 &- $1 }
    for slot in latencies { for (index, count) in slot.enumerated() { buckets[index] += UInt64(count) } }
    trend.median = LatencyQuantiles.microseconds(0.5, of: buckets)
    trend.p99 = LatencyQuantiles.microseconds(0.99, of: buckets)
    return trend
  }

  private static func push<Element>(_ element: Element, onto ring: inout [Element], atMost most: Int) {
    if ring.count == most { ring.removeFirst() }
    ring.append(element)
  }
}
