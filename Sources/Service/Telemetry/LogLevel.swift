/// How much a log line matters.
package enum LogLevel: String, CaseIterable, Comparable, Sendable {
  case trace, debug, info, warning, error

  /// Its place in the order: 0 for the least important.
  package var rank: UInt8 {
    switch self {
    case .trace: 0
    case .debug: 1
    case .info: 2
    case .warning: 3
    case .error: 4
    }
  }

  package static func < (left: LogLevel, right: LogLevel) -> Bool { left.rank < right.rank }

  /// The level of a syslog severity (RFC 5424, section 6.2.1), as librdkafka reports it.
  package init(syslog severity: Int) {
    self =
      switch severity {
      case ...3: .error
      case 4: .warning
      case 5, 6: .info
      default: .debug
      }
  }
}
