import APNs
import Service
import Wire

/// `martlet send`: pushes straight to APNs, without Kafka, and says what became of each.
enum SendCommand {
  static let command = Command(
    "send", "Send a push straight to APNs, and print the answer.",
    options: DirectOptions.options
      + NotificationOptions.options.filter { $0.name != "topic" } + [
        Option(
          "topic", value: "TOPIC",
          "The app's bundle id; the suffix of the push type is added. With --config: in place of the app's own."),
        Option("attempts", value: "N", "How often to try where trying again may help (default 3)."),
        Option(flag: "json", "One JSON object for each answer, with the fields of the service's results."),
        Option(flag: "verbose", short: "v", "Show on standard error what is exchanged; secrets are masked."),
      ],
    examples: [
      (
        "martlet send --p8 AuthKey_ABC123DEFG.p8 --team-id DEF123GHIJ --topic com.example.shop --token 740f… "
          + "--alert 'Your order has shipped'", "An alert, with a signing key alone."
      ),
      (
        "martlet send --config martlet.json5 --app shop --token 740f… --title Order --body Shipped --badge 3 "
          + "--custom '{\"order\": 42}'", "As an app of the configuration, with the app's own data."
      ),
      (
        "martlet send --certificate apns.p12 --password-file password --sandbox --token 740f… --content-available",
        "A background push with a certificate, which names the topic."
      ),
      (
        "martlet send --config martlet.json5 --app shop --token 740f… --token 81ab… --payload push.json "
          + "--expiration +1h -v", "A payload as it stands, to two devices, with all that is exchanged."
      ),
      (
        "martlet send --p8 AuthKey_ABC123DEFG.p8 --team-id DEF123GHIJ --topic com.example.shop --host localhost "
          + "--port 2197 --ca apns/ca.pem --token 740f… --badge 0", "To 'martlet mock-apns'."
      ),
    ],
    notes: """
      The exit status is 0 when APNs took every push, 65 when it refused one, 78 when it refused the credentials or \
      the topic, and 69 when there was no answer that counts.
      """,
    run: run)

  @Sendable
  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    var direct = try DirectOptions(arguments)
    for warning in direct.warnings { Console.error("martlet send: \(warning)") }
    var push = try NotificationOptions(arguments, now: ServiceClock.now().time)
    let attempts = try arguments.integer("attempts", in: 1...100, default: 3)
    address(&push, &direct)
    let requests = push.requests(app: direct.app.name)
    var judge = RequestJudge(apps: [direct.app])
    for request in requests { try refuse(judge.fault(of: request.value)) }
    let sender = try DirectPush(
      direct.app, delivery: direct.delivery, attempts: attempts, trace: DirectTraceText.trace(arguments))
    // The certificate, which is loaded by now, may allow less.
    for request in requests { try refuse(sender.fault(of: request.value)) }
    var report = SendReport(app: direct.app, isJSON: arguments.has("json"))
    for request in requests {
      await sender.send(request.value) { Console.announce(Array(report.line(adding: $0).utf8)) }
    }
    await sender.close()
    if let summary = report.summary { Console.out(summary) }
    return report.exitCode
  }

  private static func refuse(_ fault: String?) throws(InputError) {
    guard let fault else { return }
    throw InputError(message: "\(NotificationOptions.inOptionTerms(fault)); nothing was sent")
  }

  /// Gives the push an id of its own where it has none, and sorts out what `--topic` means without a configuration: the
  /// bundle id, or, where it ends in the suffix of a push type, the topic of that type.
  static func address(_ push: inout NotificationOptions, _ direct: inout DirectOptions) {
    if push.id == nil {
      var random = SystemRandomNumberGenerator()
      push.id = UUID.random(using: &random).description
    }
    guard !direct.isConfigured else { return }
    let topic = direct.app.bundleID
    let isUnknown = push.pushType.map { PushType($0) == .other } ?? false
    if let suffix = PushType.knownSuffix(of: topic.utf8.span) {
      direct.app.bundleID = String(topic.dropLast(suffix.utf8.count))
      push.topic = push.channel == nil ? topic : nil
      if push.pushType == nil, push.channel == nil {
        push.pushType = PushType.allCases.first { $0.topicSuffix == suffix }?.name
      }
    } else {
      push.topic = isUnknown ? topic : nil
    }
  }
}
