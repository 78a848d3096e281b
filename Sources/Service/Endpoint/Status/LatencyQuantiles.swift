/// Quantiles of spans of time that are known only by bucket.
enum LatencyQuantiles {
  /// The quantile in microseconds, as Prometheus' `histogram_quantile` reckons it: spans lie evenly in their bucket, and
  /// those above the last bound count as it. `nil` where there are none.
  static func microseconds(_ quantile: Double, of buckets: some Collection<UInt64>) -> Int? {
    let total = buckets.reduce(0, &+)
    guard total > 0 else { return nil }
    let rank = quantile * Double(total)
    var below: UInt64 = 0
    for (index, count) in buckets.enumerated() {
      guard Double(below + count) >= rank, count > 0 else {
        below += count
        continue
      }
      guard index < HistogramBuckets.bounds.count else { break }
      let lower = index == 0 ? 0 : HistogramBuckets.bounds[index - 1]
      let share = (rank - Double(below)) / Double(count)
      return Int((Double(lower) + Double(HistogramBuckets.bounds[index] - lower) * max(0, share)) / 1000)
    }
    return Int((HistogramBuckets.bounds.last ?? 0) / 1000)
  }
}
