import Glibc

/// Every command, in the order of the help.
let program = Program(commands: [CheckCommand.command, SettingsCommand.command], libraries: [])

let status = await program.run(Array(Swift.CommandLine.arguments.dropFirst()))
exit(status.rawValue)
