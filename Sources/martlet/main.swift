import Glibc
import Service

/// Every command, in the order of the help.
let program = Program(
  commands: [
    RunCommand.command, DemoCommand.command, SendCommand.command, ChannelsCommand.command, CheckCommand.command,
    TopicsCommand.command, HealthCommand.command, ProduceCommand.command, FollowCommand.results,
    FollowCommand.invalidTokens, ReferenceCommand.command, MockAPNsCommand.command, MockKafkaCommand.command,
  ],
  libraries: [
    ("librdkafka", BuildVersions.current.librdkafka), ("nghttp2", BuildVersions.current.nghttp2),
    ("OpenSSL", BuildVersions.current.openssl),
  ])

let status = await program.run(Array(Swift.CommandLine.arguments.dropFirst()))
exit(status.rawValue)
