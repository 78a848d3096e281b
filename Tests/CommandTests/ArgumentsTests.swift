import Service
import Testing

@testable import martlet

struct ArgumentsTests {
  private static let command = Command(
    "try", "Tries options.",
    options: [
      Option("config", value: "FILE", "a file", isRequired: true),
      Option("app", value: "NAME", "an app", isRepeated: true),
      Option("rate", value: "N", "a number"), Option("wait", value: "DURATION", "a time"),
      Option(flag: "json", "a flag"),
    ], examples: [("martlet try --config x", "an example")], operands: "[FILE]..."
  ) { _ in .ok }

  private static func read(_ words: [String]) throws(UsageError) -> Arguments {
    try Arguments(words[...], for: command)
  }

  @Test
  func readsEveryForm() throws {
    let words = ["--config", "a", "--app=x", "one", "--app", "y=z", "--json", "--rate=-5", "-", "--", "--app", "-q"]
    let arguments = try Self.read(words)
    #expect(arguments.value("config") == "a")
    #expect(arguments.all("app") == ["x", "y=z"])
    #expect(arguments.has("json") && !arguments.has("wait"))
    #expect(arguments.value("rate") == "-5")
    #expect(arguments.operands == ["one", "-", "--app", "-q"])
  }

  @Test(arguments: [
    (["--confg", "x"], "unknown option '--confg'; did you mean '--config'?"),
    (["--zzz"], "unknown option '--zzz'"), (["-c"], "two hyphens"), ([], "--config FILE is missing"),
    (["--config"], "needs a value"), (["--config", "--json"], "needs a value"),
    (["--config", "a", "--config", "b"], "only once"), (["--config=a", "--json=yes"], "takes no value"),
  ])
  func refusesTheRest(words: [String], message: String) {
    do {
      _ = try Self.read(words)
      Issue.record("accepted")
    } catch {
      #expect(error.message.contains(message), "\(error.message)")
    }
  }

  @Test
  func valuesAreTyped() throws {
    let arguments = try Self.read(["--config", "localhost:80", "--rate", "12", "--wait", "250ms", "--app", "deubg"])
    #expect(try arguments.integer("rate", in: 1...100, default: 5) == 12)
    #expect(try arguments.integer("none", in: 1...100, default: 5) == 5)
    #expect(try arguments.duration("wait", default: .zero) == .milliseconds(250))
    #expect(try arguments.address("config", default: ListenAddress(host: "x", port: 1)).port == 80)
    #expect(throws: UsageError.self) { try arguments.integer("rate", in: 1...10, default: 5) }
    #expect(try arguments.duration("rate", default: .zero) == .seconds(12))
    #expect(throws: UsageError.self) { try arguments.duration("app", default: .zero) }
    #expect(throws: UsageError.self) { try arguments.address("rate", default: ListenAddress(host: "x", port: 1)) }
    #expect(
      throws: UsageError(
        message: "'--app' must be one of trace, debug, info, warning, error, not 'deubg'; did you mean 'debug'?")
    ) {
      try arguments.word("app", default: LogLevel.info)
    }
  }

  @Test
  func commandsWithoutOperandsRefuseThem() {
    #expect(throws: UsageError.self) {
      try Arguments(["--config", "x", "stray"][...], for: CheckCommand.command)
    }
  }
}

struct ProgramTests {
  private let program = Program(
    commands: [CheckCommand.command, ReferenceCommand.command], libraries: [("librdkafka", "2.0.2")])

  private func kind(_ words: [String]) -> String {
    switch program.read(words) {
    case .run(let command, _): "run \(command.name)"
    case .help(let command): "help \(command?.name ?? "")"
    case .version: "version"
    case .refused(let error, _): error.message
    }
  }

  @Test(arguments: [
    (["check", "--config", "x"], "run check"), (["--help"], "help "), (["help", "check"], "help check"),
    (["check", "--help"], "help check"), (["check", "--config", "x", "-h"], "help check"), (["--version"], "version"),
    (["chekc"], "unknown command 'chekc'; did you mean 'check'?"),
    (["--versoin"], "unknown option '--versoin'; did you mean '--version'?"),
    ([], "a command is missing"), (["check"], "--config FILE is missing"),
  ])
  func readsTheCommandLine(words: [String], meaning: String) { #expect(kind(words) == meaning) }

  @Test
  func versionsNameTheLibraries() {
    #expect(program.versionText == "martlet \(MartletVersion.text)\nlibrdkafka 2.0.2")
  }

  @Test
  func helpIsCompleteAndNarrow() {
    let texts = [HelpText.of(program)] + program.commands.map { HelpText.of($0) }
    for text in texts {
      for line in text.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
    }
    for command in program.commands {
      let text = HelpText.of(command)
      for option in command.options { #expect(text.contains(option.usage)) }
      for example in command.examples { #expect(text.contains(example.line)) }
      #expect(texts[0].contains(command.summary))
      #expect(!command.examples.isEmpty)
    }
  }
}

struct ReferenceCommandTests {
  @Test
  func eachSubjectHasItsText() throws {
    #expect(try ReferenceCommand.text(for: ["settings"]) + "\n" == SettingsReference.markdown())
    #expect(try ReferenceCommand.text(for: ["metrics"]) + "\n" == MetricsReference.markdown())
  }

  @Test(arguments: [[], ["metrics", "settings"], ["all"]])
  func anythingElseIsWrongUsage(operands: [String]) {
    #expect(throws: UsageError.self) { try ReferenceCommand.text(for: operands) }
  }

  @Test
  func aMisspeltSubjectIsGuessed() {
    #expect(throws: UsageError(message: "say either 'settings' or 'metrics'; did you mean 'metrics'?")) {
      try ReferenceCommand.text(for: ["metrcis"])
    }
  }
}
