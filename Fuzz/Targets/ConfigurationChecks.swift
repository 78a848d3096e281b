import Service

/// A configuration is accepted, or there is something to say about it that a person can find in the text.
enum ConfigurationChecks {
  static func check(_ text: [UInt8]) throws {
    // A place where nothing is: relative paths lead nowhere.
    let file = "/nowhere/martlet.json5"
    do {
      let loaded = try SettingsLoader.load(file: file, text: text) { $0 == "A" ? "b:9092" : nil }
      try hold(loaded.warnings.allSatisfy { $0.severity == .warning }, "accepted with errors")
      try hold(!loaded.settings.kafka.brokers.isEmpty && !loaded.settings.apps.isEmpty, "accepted without substance")
      try check(loaded.warnings, text)
    } catch let error as ConfigurationError {
      try hold(error.problems.contains { $0.severity == .error }, "refused without an error")
      try check(error.problems, text)
    }
  }

  private static func check(_ problems: [ConfigurationProblem], _ text: [UInt8]) throws {
    let lines = text.count { $0 == 0x0a } + text.count { $0 == 0x0d } + 1
    for problem in problems {
      try hold(!problem.message.isEmpty, "a problem without words")
      try hold(problem.text.utf8.count < 20_000, "a problem of \(problem.text.utf8.count) bytes")
      if let line = problem.line { try hold((1...lines).contains(line), "line \(line) of \(lines)") }
      if let column = problem.column { try hold((1...text.count + 1).contains(column), "column \(column)") }
    }
  }
}
