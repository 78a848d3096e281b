package import Delivery
internal import Synchronization
internal import Wire

/// One thread's own numbers.
///
/// A shard has one writer, the thread it was made for; scrapes read it at any time. So an update is a plain addition,
/// stored atomically but without a lock or a locked instruction. Rows of apps are allocated when the first number of
/// their block is touched and stay for the shard's life: a block that a scrape has seen never moves.
@safe
package final class MetricShard: Sendable {
  /// Apps in a block.
  static let blockLength = 32
  /// More apps than this share the row of unknown apps.
  package static let mostApps = 65_535

  // `nonisolated(unsafe)` holds because the pointers never change, and what they point to is atomic.

  /// `blocks[n]` holds the address of the rows of apps `n * blockLength` and on, 0 while there are none.
  private nonisolated(unsafe) let blocks: UnsafeMutablePointer<Atomic<UInt>>
  private nonisolated(unsafe) let service: UnsafeMutablePointer<Atomic<UInt64>>

  private static let blockCount = (mostApps + 1) / blockLength
  private static let blockSize = blockLength * AppSeries.rowLength

  package init() {
    unsafe blocks = .allocate(capacity: Self.blockCount)
    for index in 0..<Self.blockCount { unsafe (blocks + index).initialize(to: Atomic(0)) }
    unsafe service = Self.zeros(ServiceSeries.rowLength)
  }

  deinit {
    for index in 0..<Self.blockCount {
      if let block = unsafe Self.pointer(blocks[index].load(ordering: .acquiring)) {
        unsafe block.deinitialize(count: Self.blockSize).deallocate()
      }
    }
    unsafe blocks.deinitialize(count: Self.blockCount).deallocate()
    unsafe service.deinitialize(count: ServiceSeries.rowLength).deallocate()
  }

  /// Adds to a number of an app; `nil` stands for requests of no known app. A gauge goes down by a negative amount.
  package func add(_ series: AppSeries, app: AppIndex?, _ amount: Int = 1) {
    let row = Self.row(of: app)
    precondition(series.index < AppSeries.rowLength)
    let block = unsafe self.block(row / Self.blockLength)
    unsafe Self.add(amount, to: block + (row % Self.blockLength * AppSeries.rowLength + series.index))
  }

  /// Adds to a number of the service.
  package func add(_ series: ServiceSeries, _ amount: Int = 1) {
    precondition(series.index < ServiceSeries.rowLength)
    unsafe Self.add(amount, to: service + series.index)
  }

  /// Sets a gauge of an app, which no other thread's shard may touch.
  package func set(_ series: AppSeries, app: AppIndex?, to value: Int) {
    let row = Self.row(of: app)
    precondition(series.index < AppSeries.rowLength)
    let block = unsafe self.block(row / Self.blockLength)
    unsafe block[row % Self.blockLength * AppSeries.rowLength + series.index]
      .store(UInt64(bitPattern: Int64(value)), ordering: .relaxed)
  }

  /// Sets a gauge of the service, which no other thread's shard may touch.
  package func set(_ series: ServiceSeries, to value: Int) {
    precondition(series.index < ServiceSeries.rowLength)
    unsafe service[series.index].store(UInt64(bitPattern: Int64(value)), ordering: .relaxed)
  }

  /// Records one span. One that is negative, because two clocks differ, counts as none. In the sum, which has
  /// microseconds, one of more than a day counts as a day, so that wrong timestamps of records do not have it overflow.
  package func observe(_ latency: Latency, _ span: Duration) {
    unsafe Self.observe(span.nanoseconds, at: service + ServiceSeries.histogram(latency).index)
  }

  /// Records one span of an app.
  package func observe(_ latency: AppLatency, app: AppIndex?, _ span: Duration) {
    let row = Self.row(of: app)
    let block = unsafe self.block(row / Self.blockLength)
    let place = row % Self.blockLength * AppSeries.rowLength + AppSeries.histogram(latency).index
    unsafe Self.observe(span.nanoseconds, at: block + place)
  }

  /// Adds this shard's numbers to `totals`: row after row, the first for unknown apps.
  func addApps(to totals: inout [UInt64], rows: Int) {
    for row in 0..<min(rows, Self.mostApps + 1) {
      guard let block = unsafe Self.pointer(blocks[row / Self.blockLength].load(ordering: .acquiring)) else { continue }
      let source = unsafe block + row % Self.blockLength * AppSeries.rowLength
      let target = row * AppSeries.rowLength
      for index in 0..<AppSeries.rowLength { unsafe totals[target + index] &+= source[index].load(ordering: .relaxed) }
    }
  }

  func addService(to totals: inout [UInt64]) {
    for index in 0..<ServiceSeries.rowLength {
      unsafe totals[index] &+= service[index].load(ordering: .relaxed)
    }
  }

  /// The row of an app: 0 is for unknown ones.
  static func row(of app: AppIndex?) -> Int {
    guard let app, app.value >= 0, app.value < mostApps else { return 0 }
    return Int(app.value) + 1
  }

  private func block(_ index: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
    if let block = unsafe Self.pointer(blocks[index].load(ordering: .relaxed)) { return unsafe block }
    let block = unsafe Self.zeros(Self.blockSize)
    // Releasing: whoever sees the address sees the zeros too.
    unsafe blocks[index].store(UInt(bitPattern: block), ordering: .releasing)
    return unsafe block
  }

  private static func observe(_ nanoseconds: Int64, at buckets: UnsafeMutablePointer<Atomic<UInt64>>) {
    let nanoseconds = max(0, nanoseconds)
    unsafe add(1, to: buckets + HistogramBuckets.index(nanoseconds: nanoseconds))
    let microseconds = min((nanoseconds / 100 + 5) / 10, longestMicroseconds)
    unsafe add(Int(microseconds), to: buckets + HistogramBuckets.count)
  }

  private static let longestMicroseconds: Int64 = 86_400_000_000

  /// The one writer may read and write back in two steps.
  private static func add(_ amount: Int, to number: UnsafeMutablePointer<Atomic<UInt64>>) {
    let sum = unsafe number.pointee.load(ordering: .relaxed) &+ UInt64(bitPattern: Int64(amount))
    unsafe number.pointee.store(sum, ordering: .relaxed)
  }

  private static func pointer(_ address: UInt) -> UnsafeMutablePointer<Atomic<UInt64>>? {
    unsafe UnsafeMutablePointer(bitPattern: address)
  }

  private static func zeros(_ count: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
    let numbers = UnsafeMutablePointer<Atomic<UInt64>>.allocate(capacity: count)
    for index in 0..<count { unsafe (numbers + index).initialize(to: Atomic(0)) }
    return unsafe numbers
  }
}
