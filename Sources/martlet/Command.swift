/// An option of a command.
struct Option: Sendable {
  /// Without the two hyphens.
  var name: String
  /// What stands for its value in the help, such as `FILE`; `nil`: a flag, which takes none.
  var value: String?
  var help: String
  /// Whether it may be given more than once.
  var isRepeated = false
  var isRequired = false

  /// An option with a value.
  init(_ name: String, value: String, _ help: String, isRepeated: Bool = false, isRequired: Bool = false) {
    self.name = name
    self.value = value
    self.help = help
    self.isRepeated = isRepeated
    self.isRequired = isRequired
  }

  /// A flag.
  init(flag name: String, _ help: String) {
    self.name = name
    self.help = help
  }

  /// As the help shows it.
  var usage: String { value.map { "--\(name) \($0)" } ?? "--\(name)" }
}

/// Something that the program can do.
struct Command: Sendable {
  var name: String
  /// One line for the list of commands.
  var summary: String
  var options: [Option]
  /// Complete command lines, each with what it does.
  var examples: [(line: String, does: String)]
  /// What stands for arguments that are no options; `nil`: there are none.
  var operands: String?
  var run: @Sendable (Arguments) async throws -> ExitCode

  init(
    _ name: String, _ summary: String, options: [Option], examples: [(line: String, does: String)],
    operands: String? = nil, run: @escaping @Sendable (Arguments) async throws -> ExitCode
  ) {
    self.name = name
    self.summary = summary
    self.options = options
    self.examples = examples
    self.operands = operands
    self.run = run
  }
}
