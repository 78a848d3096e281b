/// The texts of `--help`, at most 80 columns wide.
enum HelpText {
  static let width = 80

  /// The program's own.
  static func of(_ program: Program) -> String {
    var lines = [
      "Delivers push notifications from Kafka to APNs.", "", "usage: martlet COMMAND [OPTION]...", "", "commands:",
    ]
    let column = max("--version".count, program.commands.map(\.name.count).max() ?? 0) + 4
    for command in program.commands { lines += entry(command.name, command.summary, column: column) }
    lines += ["", "options:"]
    lines += entry("--help", "this text; after a command, that command's", column: column)
    lines += entry("--version", "the versions of martlet and its libraries", column: column)
    lines += ["", "exit status:"]
    lines += wrapped(
      "0 success, 64 wrong usage, 65 wrong data, 69 something needed is unavailable, 78 wrong configuration",
      first: "  ", others: "  ")
    return lines.joined(separator: "\n")
  }

  /// A command's.
  static func of(_ command: Command) -> String {
    var usage = ["martlet \(command.name)"]
    for option in command.options {
      usage.append((option.isRequired ? option.usage : "[\(option.usage)]") + (option.isRepeated ? "..." : ""))
    }
    if let operands = command.operands { usage.append(operands) }
    var lines = wrapped(command.summary, first: "", others: "") + [""]
    lines += packed(usage, first: "usage: ", others: "         ")
    if !command.options.isEmpty {
      lines += ["", "options:"]
      let column = min(28, (command.options.map(\.usage.count).max() ?? 0) + 4)
      for option in command.options {
        lines += entry(option.usage, option.help + (option.isRepeated ? " (may be repeated)" : ""), column: column)
      }
    }
    if !command.examples.isEmpty {
      lines += ["", "examples:"]
      for example in command.examples {
        lines += wrapped("# \(example.does)", first: "  ", others: "  # ")
        lines.append("  \(example.line)")
      }
    }
    if let notes = command.notes { lines += [""] + wrapped(notes, first: "", others: "") }
    return lines.joined(separator: "\n")
  }

  /// A name and, from a column on, what it means.
  private static func entry(_ name: String, _ meaning: String, column: Int) -> [String] {
    let indent = String(repeating: " ", count: column)
    let start = "  \(name)"
    guard start.count < column else { return [start] + wrapped(meaning, first: indent, others: indent) }
    return wrapped(meaning, first: start + String(repeating: " ", count: column - start.count), others: indent)
  }

  static func wrapped(_ text: String, first: String, others: String) -> [String] {
    packed(text.split(separator: " ").map(String.init), first: first, others: others)
  }

  /// Puts as many pieces on each line as fit.
  private static func packed(_ pieces: [String], first: String, others: String) -> [String] {
    var lines: [String] = []
    var line = first
    var isEmpty = true
    for piece in pieces {
      if !isEmpty, line.count + 1 + piece.count > width {
        lines.append(line)
        line = others
        isEmpty = true
      }
      line += isEmpty ? piece : " \(piece)"
      isEmpty = false
    }
    return lines + [line]
  }
}
