import Synchronization

/// Runs one piece of the service's work a fixed number of times and prints what it took.
///
/// The work is the same in every run: no clock, randomness or I/O decides anything. So instructions counted by Callgrind
/// differ between two builds only where the code does; `Benchmarks/instructions.py` counts them.
///
///     microbench decode|deliver|ledger|token|metrics|headers|leg [--count N] [--apps N] [--partitions N] [--payload BYTES]
@main
struct Micro {
  static func main() throws {
    let options = Options(Array(CommandLine.arguments.dropFirst()))
    if let options, options.workload == "leg" { return try Leg.run(options) }
    guard let options, let workload = workloads[options.workload] else {
      print("usage: microbench \(workloads.keys.sorted().joined(separator: "|"))")
      print("         [--count N] [--apps N] [--partitions N] [--payload BYTES]")
      return
    }
    let run = workload(options)
    let clock = ContinuousClock()
    let start = clock.now
    let digest = run(options.count)
    let span = clock.now - start
    let nanoseconds = span.components.seconds * 1_000_000_000 + span.components.attoseconds / 1_000_000_000
    let each = nanoseconds / Int64(max(options.count, 1))
    let thousandths = String(1_000 + each / 1_000 % 1_000).dropFirst()
    let text = each < 100_000 ? "\(each) ns" : "\(each / 1_000_000).\(thousandths) ms"
    print("\(options.workload): \(options.count) times, \(text) each, digest \(digest)")
  }

  /// Each makes its preparations and gives back what runs it `count` times. That returns a number which depends on all
  /// that was done, so that nothing can be left out.
  static var workloads: [String: (Options) -> (Int) -> Int] {
    [
      "decode": DeliveryWork.decode,
      "deliver": DeliveryWork.deliver,
      "ledger": DeliveryWork.ledger,
      "token": SmallWork.token,
      "metrics": SmallWork.metrics,
      "headers": SmallWork.headers,
    ]
  }
}

/// What the command line asks for.
struct Options {
  var workload: String
  /// How often the work is done.
  var count = 100_000
  var apps = 1
  var partitions = 8
  /// Bytes of each payload.
  var payload = 217
  // Of the APNs leg alone.
  var port = 0
  var caFile: String?
  var connections = 4
  var streams = 500

  init?(_ arguments: [String]) {
    guard let first = arguments.first else { return nil }
    workload = first
    var rest = arguments.dropFirst()
    while let name = rest.popFirst() {
      guard let text = rest.popFirst() else { return nil }
      if name == "--ca-file" {
        caFile = text
        continue
      }
      guard let value = Int(text), value >= 0 else { return nil }
      switch name {
      case "--count": count = value
      case "--apps": apps = max(value, 1)
      case "--partitions": partitions = max(value, 1)
      case "--payload": payload = max(value, 30)
      case "--port": port = value
      case "--connections": connections = max(value, 1)
      case "--streams": streams = max(value, 1)
      default: return nil
      }
    }
  }
}
