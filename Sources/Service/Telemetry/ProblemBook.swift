internal import Synchronization
package import Wire

/// The last warnings and errors, one entry for each kind and app, for people who look at the status page. Any thread.
///
/// It hears every line of these levels, also those that the log leaves out as repeats or for their level.
package final class ProblemBook: Sendable {
  /// A kind of problem, of one app where it has to do with one.
  package struct Problem: Sendable, Equatable {
    package var code: String
    package var app: String?
    package var level: LogLevel
    package var message: String
    /// The cause that was told last.
    package var cause: String?
    /// How often it happened.
    package var count: Int
    package var first: UnixTime
    package var last: UnixTime
  }

  private struct Key: Hashable {
    var code: String
    var app: String?
  }

  /// More kinds than this are not kept: the one that was heard of longest ago goes.
  package static let most = 100

  private let problems = Mutex<[Key: Problem]>([:])

  package init() {}

  /// Notes one line.
  package func note(_ level: LogLevel, code: String, message: String, _ fields: [LogField], at time: UnixTime) {
    var app: String?
    var cause: String?
    for field in fields {
      switch field {
      case .app(let name): app = name
      case .cause(let text): cause = text.description
      default: break
      }
    }
    let key = Key(code: code, app: app)
    problems.withLock { problems in
      if var known = problems[key] {
        known.count += 1
        known.last = time
        known.level = max(known.level, level)
        if let cause { known.cause = cause }
        problems[key] = known
        return
      }
      if problems.count >= Self.most, let oldest = problems.min(by: { $0.value.last < $1.value.last }) {
        problems[oldest.key] = nil
      }
      problems[key] = Problem(
        code: code, app: app, level: level, message: message, cause: cause, count: 1, first: time, last: time)
    }
  }

  /// All that are kept, the latest first.
  package func recent() -> [Problem] {
    problems.withLock { Array($0.values) }.sorted {
      ($1.last, $0.code, $0.app ?? "") < ($0.last, $1.code, $1.app ?? "")
    }
  }
}
