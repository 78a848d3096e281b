import Service

/// What a command line asks for.
enum Invocation {
  case run(Command, Arguments)
  /// The help of a command, or of the program.
  case help(Command?)
  case version
  /// It cannot be understood; the command it meant, if that is known.
  case refused(UsageError, Command?)
}

/// The program: its commands, and how its command line is read.
struct Program: Sendable {
  var commands: [Command]
  /// The versions of what the program is built upon, beside its own.
  var libraries: [(name: String, version: String)]

  /// - Parameter words: the command line without the program's own name.
  func read(_ words: [String]) -> Invocation {
    guard let first = words.first else { return .refused(UsageError(message: "a command is missing"), nil) }
    switch first {
    case "--version": return .version
    case "--help", "-h": return .help(nil)
    case "help":
      guard let name = words.dropFirst().first else { return .help(nil) }
      return commands.first { $0.name == name }.map { .help($0) } ?? unknown(name)
    default: break
    }
    guard let command = commands.first(where: { $0.name == first }) else { return unknown(first) }
    let rest = words.dropFirst()
    if rest.prefix(while: { $0 != "--" }).contains(where: { $0 == "--help" || $0 == "-h" }) { return .help(command) }
    do {
      return .run(command, try Arguments(rest, for: command))
    } catch {
      return .refused(error, command)
    }
  }

  /// Reads the command line and does what it asks.
  func run(_ words: [String]) async -> ExitCode {
    switch read(words) {
    case .run(let command, let arguments):
      do {
        return try await command.run(arguments)
      } catch let error as UsageError {
        return refuse(error, command)
      } catch let error as LocalFileError {
        Console.error("martlet \(command.name): \(error)")
        return .badData
      } catch let error as InputError {
        Console.error("martlet \(command.name): \(error.message)")
        return .badData
      } catch let error as ConfigurationError {
        for problem in error.problems { Console.error(problem.text) }
        return .configuration
      } catch let error as DirectFault {
        Console.error("martlet \(command.name): \(error.message)")
        return .configuration
      } catch {
        Console.error("martlet \(command.name): \(error)")
        return .unavailable
      }
    case .help(let command):
      Console.out(command.map(HelpText.of) ?? HelpText.of(self))
      return .ok
    case .version:
      Console.out(versionText)
      return .ok
    case .refused(let error, let command): return refuse(error, command)
    }
  }

  var versionText: String {
    let lines = ["martlet \(MartletVersion.text)"] + libraries.map { "\($0.name) \($0.version)" }
    return lines.joined(separator: "\n")
  }

  private func refuse(_ error: UsageError, _ command: Command?) -> ExitCode {
    let name = command.map { " \($0.name)" } ?? ""
    Console.error("martlet\(name): \(error.message)")
    Console.error("Try 'martlet\(name) --help'.")
    return .usage
  }

  private func unknown(_ name: String) -> Invocation {
    let kind = name.hasPrefix("-") ? "option" : "command"
    let known = commands.map(\.name) + ["help", "--help", "--version"]
    let nearest = NearestName.find(name, in: known)
    return .refused(
      UsageError(message: "unknown \(kind) '\(name)'" + (nearest.map { "; did you mean '\($0)'?" } ?? "")), nil)
  }
}
