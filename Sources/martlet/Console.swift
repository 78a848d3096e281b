import Service

/// What the program says to the person at the terminal.
enum Console {
  /// To standard output, with a line end.
  static func out(_ text: String) { print(text) }

  /// To standard error, with a line end.
  static func error(_ text: String) { StandardError.write(Array("\(text)\n".utf8)) }
}
