/// One thing that is wrong with a configuration, told so that it can be mended without reading any manual.
package struct ConfigurationProblem: Error, Sendable, Equatable, CustomStringConvertible {
  /// Whether the service starts all the same.
  package enum Severity: String, Sendable {
    /// The service does not start with it.
    case error
    /// Odd, but it may be meant.
    case warning
  }

  package var severity: Severity
  /// The file that is at fault.
  package var file: String
  /// Counted from 1; `nil` where the file as a whole is at fault.
  package var line: Int?
  package var column: Int?
  /// The setting, such as `delivery.attempts`; empty for the file as a whole.
  package var path: String
  /// What is wrong, in one clause.
  package var message: String
  /// What stands there.
  package var found: String?
  /// What could stand there.
  package var allowed: String?
  /// The known name that was probably meant.
  package var nearest: String?

  /// All of it in one line.
  package var text: String {
    var place = file
    if let line { place += ":\(line)" }
    if let column { place += ":\(column)" }
    var text = "\(place): \(path.isEmpty ? "" : "\(path): ")\(message)"
    if let found { text += ", found \(found)" }
    if let allowed { text += ", allowed: \(allowed)" }
    if let nearest { text += " (did you mean \(nearest)?)" }
    return text
  }

  package var description: String { text }
}

/// All problems of a configuration that cannot be used, warnings among them.
package struct ConfigurationError: Error, Sendable, CustomStringConvertible {
  package var problems: [ConfigurationProblem]
  /// Every file and directory that was read or named before that was found: what may have to change.
  package var files: [String] = []

  /// One line for each.
  package var description: String { problems.map(\.text).joined(separator: "\n") }
}

/// What is gathered while a configuration is read: every problem, not only the first, and the files it names.
package struct ReadingContext {
  /// The file that is being read.
  package var source: ConfigurationSource
  package var problems: [ConfigurationProblem] = []
  /// Every file and directory that the configuration names, in the order met.
  package var namedFiles: [String] = []
  /// Whether a file of an app that cannot be read is a warning: the app cannot be served, and the others can.
  var toleratesUnreadableApps = false

  package init(source: ConfigurationSource) { self.source = source }

  /// Notes a problem at a byte offset of the current file; `nil` stands for the file as a whole.
  mutating func report(
    _ message: String, at path: String, offset: Int?, found: String? = nil, allowed: String? = nil,
    nearest: String? = nil, severity: ConfigurationProblem.Severity = .error
  ) {
    let position = offset.map { source.position(of: $0) }
    problems.append(
      ConfigurationProblem(
        severity: severity, file: source.file, line: position?.line, column: position?.column, path: path,
        message: message, found: found, allowed: allowed, nearest: nearest))
  }

  /// Notes that a value is not of the kind or within the bounds that its setting needs.
  mutating func mismatch(_ message: String, _ value: ConfigurationValue, at path: String, allowed: String) {
    guard value.content != .unresolved else { return }
    report(message, at: path, offset: value.offset, found: value.summary, allowed: allowed)
  }
}
