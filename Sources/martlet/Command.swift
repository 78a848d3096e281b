/// An option of a command.
struct Option: Sendable {
  /// Without the two hyphens.
  var name: String
  /// Its one-letter form, for a flag that people know by it.
  var short: Character?
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
  init(flag name: String, short: Character? = nil, _ help: String) {
    self.name = name
    self.short = short
    self.help = help
  }

  /// As the help shows it.
  var usage: String { (short.map { "-\($0), " } ?? "") + "--\(name)" + (value.map { " \($0)" } ?? "") }
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
  /// What else there is to know, at the end of the help.
  var notes: String?
  var run: @Sendable (Arguments) async throws -> ExitCode

  init(
    _ name: String, _ summary: String, options: [Option], examples: [(line: String, does: String)],
    operands: String? = nil, notes: String? = nil, run: @escaping @Sendable (Arguments) async throws -> ExitCode
  ) {
    self.name = name
    self.summary = summary
    self.options = options
    self.examples = examples
    self.operands = operands
    self.notes = notes
    self.run = run
  }
}
