internal import Wire

/// The fixed buckets of all latency histograms: 1 ms to 60 s.
package enum HistogramBuckets {
  /// The upper bounds in nanoseconds; one more bucket takes what is above.
  package static let bounds: [Int64] = [
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000, 250_000_000, 500_000_000,
    1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000, 30_000_000_000, 60_000_000_000,
  ]

  /// The bounds in seconds, as OpenMetrics wants them written. The older format has the same, so that a server that
  /// changes from one format to the other finds the same series.
  static let labels = [
    "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "30.0",
    "60.0", "+Inf",
  ]

  /// The bucket that a span falls into: the first whose bound is not below it.
  package static func index(nanoseconds: Int64) -> Int {
    // A switch of ranges compiles to comparisons of constants: no array is touched on the hot path.
    switch nanoseconds {
    case ...1_000_000: 0
    case ...2_500_000: 1
    case ...5_000_000: 2
    case ...10_000_000: 3
    case ...25_000_000: 4
    case ...50_000_000: 5
    case ...100_000_000: 6
    case ...250_000_000: 7
    case ...500_000_000: 8
    case ...1_000_000_000: 9
    case ...2_500_000_000: 10
    case ...5_000_000_000: 11
    case ...10_000_000_000: 12
    case ...30_000_000_000: 13
    case ...60_000_000_000: 14
    default: 15
    }
  }

  /// Buckets, the open one included; the sum (in nanoseconds) lies behind them.
  static let count = 16
  /// Buckets and sum.
  static let numbers = count + 1
  /// Buckets, sum and count.
  static let series = count + 2
}
