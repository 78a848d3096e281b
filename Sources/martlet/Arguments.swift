import Service

/// A command line that cannot be understood, in words.
struct UsageError: Error, Equatable {
  var message: String
}

/// The options and operands that one command was given, checked against those it knows.
struct Arguments: Sendable {
  /// By option name, in the order given; a flag has one empty value.
  private var values: [String: [String]] = [:]
  /// What is no option.
  private(set) var operands: [String] = []

  /// Reads what follows the command's name.
  ///
  /// `--name value`, `--name=value`, `--flag`; after `--` nothing is an option any more.
  init(_ words: ArraySlice<String>, for command: Command) throws(UsageError) {
    var words = words
    var onlyOperands = false
    while let word = words.popFirst() {
      if onlyOperands || !word.hasPrefix("-") || word == "-" {
        guard command.operands != nil else { throw UsageError(message: "unexpected argument '\(word)'") }
        operands.append(word)
      } else if word == "--" {
        onlyOperands = true
      } else {
        try take(word, rest: &words, command)
      }
    }
    for option in command.options where option.isRequired && values[option.name] == nil {
      throw UsageError(message: "\(option.usage) is missing")
    }
  }

  private mutating func take(
    _ word: String, rest: inout ArraySlice<String>, _ command: Command
  ) throws(UsageError) {
    if word.count == 2, let flag = command.options.first(where: { $0.short == word.last }) {
      values[flag.name] = [""]
      return
    }
    guard word.hasPrefix("--") else {
      throw UsageError(message: "unknown option '\(word)'; options begin with two hyphens")
    }
    let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts[0])
    guard let option = command.options.first(where: { $0.name == name }) else {
      let nearest = NearestName.find(name, in: command.options.map(\.name) + ["help"])
      throw UsageError(
        message: "unknown option '--\(name)'" + (nearest.map { "; did you mean '--\($0)'?" } ?? ""))
    }
    if option.value == nil {
      guard parts.count == 1 else { throw UsageError(message: "'--\(name)' takes no value") }
      values[name] = [""]
      return
    }
    guard option.isRepeated || values[name] == nil else {
      throw UsageError(message: "'--\(name)' may be given only once")
    }
    let value = parts.count == 2 ? String(parts[1]) : rest.popFirst()
    guard let value, parts.count == 2 || !value.hasPrefix("--") else {
      throw UsageError(message: "'\(option.usage)' needs a value")
    }
    values[name, default: []].append(value)
  }

  /// Whether a flag or an option was given.
  func has(_ name: String) -> Bool { values[name] != nil }

  /// The value of an option; `nil` where it was not given.
  func value(_ name: String) -> String? { values[name]?.first }

  /// The value of an option that the command marks as required.
  func required(_ name: String) throws(UsageError) -> String {
    guard let value = value(name) else { throw UsageError(message: "'--\(name)' is missing") }
    return value
  }

  /// All values of an option that may be repeated.
  func all(_ name: String) -> [String] { values[name] ?? [] }

  /// An integer within bounds; `fallback` where the option was not given.
  func integer(_ name: String, in range: ClosedRange<Int>, default fallback: Int) throws(UsageError) -> Int {
    guard let text = value(name) else { return fallback }
    guard let number = Int(text), range.contains(number) else {
      throw UsageError(
        message: "'--\(name)' must be a whole number from \(range.lowerBound) to \(range.upperBound), not '\(text)'")
    }
    return number
  }

  /// A duration such as `30s`, or a number of seconds; not negative. `fallback` where the option was not given.
  func duration(_ name: String, default fallback: Duration) throws(UsageError) -> Duration {
    guard let text = value(name) else { return fallback }
    if let seconds = UInt32(text) { return .seconds(Int64(seconds)) }
    guard let duration = Quantity.duration(text) else {
      throw UsageError(message: "'--\(name)' must be seconds or a duration such as 250ms, 30s or 5m, not '\(text)'")
    }
    return duration
  }

  /// One word of a closed set; `fallback` where the option was not given.
  func word<Word: RawRepresentable & CaseIterable>(_ name: String, default fallback: Word) throws(UsageError) -> Word
  where Word.RawValue == String {
    guard let text = value(name) else { return fallback }
    guard let word = Word(rawValue: text) else {
      let words = Word.allCases.map(\.rawValue)
      let nearest = NearestName.find(text, in: words).map { "; did you mean '\($0)'?" } ?? ""
      throw UsageError(message: "'--\(name)' must be one of \(words.joined(separator: ", ")), not '\(text)'\(nearest)")
    }
    return word
  }

  /// `host:port`; `fallback` where the option was not given.
  func address(_ name: String, default fallback: ListenAddress) throws(UsageError) -> ListenAddress {
    guard let text = value(name) else { return fallback }
    guard let address = ListenAddress(text) else {
      throw UsageError(message: "'--\(name)' must be host:port, not '\(text)'")
    }
    return address
  }
}
