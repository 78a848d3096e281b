import APNs
import Service
import Wire

/// `martlet channels`: makes, lists, shows and deletes the channels that Live Activities' broadcasts go to.
enum ChannelsCommand {
  /// What can be done with channels.
  private enum Action: String, CaseIterable {
    case create, list, show, delete
  }

  static let command = Command(
    "channels", "Manage the broadcast channels of an app.",
    options: DirectOptions.options + [
      Option("topic", value: "TOPIC", "Without a configuration: the app's bundle id."),
      Option(flag: "store", "For create: APNs keeps the latest message for devices that are out of reach."),
      Option(flag: "json", "The answers as JSON objects."),
      Option(flag: "verbose", short: "v", "Show on standard error what is exchanged; secrets are masked."),
    ],
    examples: [
      ("martlet channels create --config martlet.json5 --app shop --store", "Makes a channel and prints its id."),
      ("martlet channels list --config martlet.json5 --app shop", "The ids of all channels of the app, one a line."),
      (
        "martlet channels show dHN0LXNyY2gtY2hubA== --p8 AuthKey_ABC123DEFG.p8 --team-id DEF123GHIJ --topic "
          + "com.example.shop", "What is set for a channel, with a signing key alone."
      ),
      (
        "martlet channels delete dHN0LXNyY2gtY2hubA== --config martlet.json5 --app shop",
        "Deletes a channel; there is no way back."
      ),
    ],
    operands: "create|list|show|delete [CHANNEL]...",
    notes: """
      Apple's hosts for channels listen on the ports 2196 and (sandbox) 2195, which a firewall may have to let through. \
      An app whose configuration names a server of its own is asked there. Broadcasts are sent as requests with \
      'channel' in place of 'token', or by 'martlet send --channel'. The exit status is 0 when all was done, 65 when \
      APNs refused something, 78 when it refused the credentials, and 69 when there was no answer that counts.
      """,
    run: run)

  @Sendable
  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let (action, channels) = try task(arguments)
    let direct = try DirectOptions(arguments)
    for warning in direct.warnings { Console.error("martlet channels: \(warning)") }
    let isPlain = direct.app.bundleID.utf8.allSatisfy {
      (0x61...0x7A).contains($0 | 0x20) || (0x2D...0x2E).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F
    }
    guard isPlain else {
      throw UsageError(
        message: "'--topic' must be letters, digits, dots, hyphens and underscores, not '\(direct.app.bundleID)'")
    }
    let manager = try DirectChannels(
      direct.app, delivery: direct.delivery, trace: DirectTraceText.trace(arguments))
    var code = ExitCode.ok
    let isJSON = arguments.has("json")
    for channel in action == .create || action == .list ? [""] : channels {
      do throws(DirectChannels.Failure) {
        let text = try await perform(
          action, channel, storesMessages: arguments.has("store"), manager, isJSON: isJSON)
        // Nothing is printed for an empty list, which another program may read.
        if text.isEmpty { Console.error("\(direct.app.bundleID) has no channels") } else { Console.out(text) }
      } catch {
        Console.error("martlet channels: \(action.rawValue)\(channel.isEmpty ? "" : " \(channel)"): \(error.message)")
        let own = exitCode(of: error)
        if code == .ok || own == .configuration { code = own }
      }
    }
    await manager.close()
    return code
  }

  private static func task(_ arguments: Arguments) throws(UsageError) -> (Action, [String]) {
    let words = Action.allCases.map(\.rawValue)
    guard let word = arguments.operands.first else {
      throw UsageError(message: "say what to do: \(words.joined(separator: ", "))")
    }
    guard let action = Action(rawValue: word) else {
      let nearest = NearestName.find(word, in: words).map { "; did you mean '\($0)'?" } ?? ""
      throw UsageError(message: "'\(word)' is none of \(words.joined(separator: ", "))\(nearest)")
    }
    let channels = Array(arguments.operands.dropFirst())
    switch action {
    case .create, .list:
      guard channels.isEmpty else { throw UsageError(message: "'\(word)' takes no channel; found '\(channels[0])'") }
    case .show, .delete:
      guard !channels.isEmpty else { throw UsageError(message: "'\(word)' needs the id of a channel") }
    }
    guard action == .create || !arguments.has("store") else {
      throw UsageError(message: "'--store' belongs to 'create'; it cannot be changed later")
    }
    for channel in channels where Base64.decode(channel.utf8.span) == nil {
      throw UsageError(message: "'\(channel)' is no channel's id: those are base 64, such as dHN0LXNyY2gtY2hubA==")
    }
    return (action, channels)
  }

  private static func exitCode(of failure: DirectChannels.Failure) -> ExitCode {
    if failure.isCredentialFault { return .configuration }
    return failure.status.map { (400..<500).contains($0) && $0 != 429 } ?? false ? .badData : .unavailable
  }

  /// - Returns: what is printed.
  private static func perform(
    _ action: Action, _ channel: String, storesMessages: Bool, _ manager: DirectChannels, isJSON: Bool
  ) async throws(DirectChannels.Failure) -> String {
    switch action {
    case .create:
      let made = try await manager.create(storesMessages: storesMessages)
      let settings = ChannelSettings(storesMessages: storesMessages, pushType: "LiveActivity")
      return isJSON ? json(made, settings) : made
    case .list:
      let channels = try await manager.list()
      guard isJSON else { return channels.joined(separator: "\n") }
      var writer = JSONWriter()
      writer.beginObject()
      writer.list("channels", channels)
      writer.endObject()
      return String(decoding: writer.bytes, as: UTF8.self)
    case .show:
      let settings = try await manager.show(channel)
      guard !isJSON else { return json(channel, settings) }
      let storing = settings.storesMessages.map { $0 ? "keeps the latest message" : "keeps no messages" }
      return "\(channel): \([settings.pushType, storing].compactMap(\.self).joined(separator: ", "))"
    case .delete:
      try await manager.delete(channel)
      return isJSON ? json(channel, nil) : "deleted \(channel)"
    }
  }

  /// `nil` for a channel that was deleted.
  private static func json(_ channel: String, _ settings: ChannelSettings?) -> String {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("channel")
    writer.string(channel)
    if let stores = settings?.storesMessages {
      writer.key("stores_messages")
      writer.bool(stores)
    }
    if let type = settings?.pushType {
      writer.key("push_type")
      writer.string(type)
    }
    if settings == nil {
      writer.key("deleted")
      writer.bool(true)
    }
    writer.endObject()
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}
