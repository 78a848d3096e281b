internal import Glibc
internal import Synchronization
internal import Transport
package import Wire

/// The service's log: one line for each thing that happened, as JSON or text.
///
/// Lines may come from any thread. A line is put together by its own thread and handed to the sink whole; lines that
/// are not written, because of their level, cost one load and build nothing.
package final class Log: Sendable {
  /// Takes whole lines, from any thread.
  package typealias Sink = @Sendable ([UInt8]) -> Void

  private let threshold: Atomic<UInt8>
  private let format: LogSettings.Format
  private let now: @Sendable () -> Moment
  private let sink: Sink
  private let limiter: Mutex<RepeatLimiter>
  /// The last warnings and errors, also those below the level.
  package let problems = ProblemBook()

  package init(
    level: LogLevel = .info, format: LogSettings.Format = .json, limiter: RepeatLimiter = RepeatLimiter(),
    now: @escaping @Sendable () -> Moment = ServiceClock.now, sink: @escaping Sink = StandardError.write
  ) {
    self.threshold = Atomic(level.rank)
    self.format = format == .auto && StandardError.isTerminal ? .text : format
    self.now = now
    self.sink = sink
    self.limiter = Mutex(limiter)
  }

  /// Takes effect at once, on all threads.
  package func setLevel(_ level: LogLevel) { threshold.store(level.rank, ordering: .relaxed) }

  /// Whether lines of that level are written.
  package func isOn(_ level: LogLevel) -> Bool { level.rank >= threshold.load(ordering: .relaxed) }

  /// For whoever looks for a fault in one notification.
  package func trace(_ code: StaticString, _ message: StaticString, _ fields: @autoclosure () -> [LogField] = []) {
    if isOn(.trace) { write(.trace, code, message, fields()) }
  }

  /// For whoever looks for a fault in the service.
  package func debug(_ code: StaticString, _ message: StaticString, _ fields: @autoclosure () -> [LogField] = []) {
    if isOn(.debug) { write(.debug, code, message, fields()) }
  }

  /// What happens in the ordinary life of the service, seldom; never a line for each notification.
  package func info(_ code: StaticString, _ message: StaticString, _ fields: @autoclosure () -> [LogField] = []) {
    if isOn(.info) { write(.info, code, message, fields()) }
  }

  /// Something that the service deals with by itself, as long as it does not last.
  package func warning(_ code: StaticString, _ message: StaticString, _ fields: @autoclosure () -> [LogField] = []) {
    write(.warning, code, message, fields())
  }

  /// Something that a person must look at.
  package func error(_ code: StaticString, _ message: StaticString, _ fields: @autoclosure () -> [LogField] = []) {
    write(.error, code, message, fields())
  }

  /// A line of librdkafka's own log.
  ///
  /// - Parameters:
  ///   - severity: syslog's, 0 (emergency) to 7 (debug).
  ///   - facility: librdkafka's word for the part that speaks, such as `FAIL`.
  ///   - message: its text, one line.
  package func kafka(severity: Int, facility: String, message: String) {
    let level = LogLevel(syslog: severity)
    guard isOn(level) || level >= .warning else { return }
    let code = "kafka." + String(facility.lowercased().prefix(40))
    write(level, code: code, message: "librdkafka reports", [.cause(CauseText(message))])
  }

  /// A problem of the configuration.
  package func problem(_ problem: ConfigurationProblem) {
    let level: LogLevel = problem.severity == .error ? .error : .warning
    let time = now().time
    problems.note(level, code: "configuration", message: problem.text, [], at: time)
    guard isOn(level) else { return }
    // The texts come from the loader, which shows no secret; they are not repeated, so they are not limited.
    emit(
      LogLine(
        time: time, level: level, code: "configuration", message: problem.text, fields: [], suppressed: 0))
  }

  /// Tells of all lines that were left out; for the end of the process.
  package func flush() {
    let moment = now()
    let left = limiter.withLock { $0.sweep(at: moment.instant, all: true) }
    tell(left, at: moment.time)
  }

  private func write(_ level: LogLevel, _ code: StaticString, _ message: StaticString, _ fields: [LogField]) {
    write(level, code: code.description, message: message.description, fields)
  }

  private func write(_ level: LogLevel, code: String, message: String, _ fields: [LogField]) {
    let moment = now()
    if level >= .warning { problems.note(level, code: code, message: message, fields, at: moment.time) }
    guard isOn(level) else { return }
    // Whoever asks for every notification gets every one.
    if level == .trace {
      emit(LogLine(time: moment.time, level: level, code: code, message: message, fields: fields, suppressed: 0))
      return
    }
    var app: String?
    for case .app(let name) in fields { app = name }
    let kind = RepeatLimiter.Kind(code: code, app: app)
    let (suppressed, left) = limiter.withLock { ($0.admit(kind, at: moment.instant), $0.sweep(at: moment.instant)) }
    tell(left, at: moment.time)
    guard let suppressed else { return }
    emit(
      LogLine(time: moment.time, level: level, code: code, message: message, fields: fields, suppressed: suppressed))
  }

  private func tell(_ left: [(kind: RepeatLimiter.Kind, suppressed: Int)], at time: UnixTime) {
    for (kind, suppressed) in left {
      emit(
        LogLine(
          time: time, level: .warning, code: kind.code, message: "repeated lines were left out",
          fields: kind.app.map { [.app($0)] } ?? [], suppressed: suppressed))
    }
  }

  private func emit(_ line: LogLine) { sink(line.bytes(as: format)) }
}

/// The process's standard error.
package enum StandardError {
  private static let gate = Mutex<Void>(())

  /// Whether people read it as it is written.
  static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  /// Writes all bytes as one piece; whoever writes at the same time waits. What cannot be written is given up: there
  /// is nowhere to tell of it.
  @Sendable
  package static func write(_ bytes: [UInt8]) {
    gate.withLock { _ in
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { return }
        rest = rest.dropFirst(count)
      }
    }
  }
}

/// The two clocks of the machine.
package enum ServiceClock {
  /// Both, read one right after the other.
  @Sendable
  package static func now() -> Moment { Clock.moment }
}
