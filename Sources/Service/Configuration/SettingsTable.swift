internal import Delivery

// Every setting, once: its key, its place in `Settings`, its bounds and its words. The default is the initial value
// of the place. The loader and the reference both follow these tables.

extension KafkaSettings {
  static let group = SettingGroup(
    defaults: KafkaSettings(),
    fields: [
      .value(
        "brokers", \.brokers, .list(of: .broker, atMost: 100), isRequired: true,
        "The brokers to start from: one text with commas, or a list."),
      .value("group", \.group, .text(), "The consumer group. All replicas share it."),
      .optional(
        "groupInstanceId", \.groupInstanceID, .text(),
        "Makes the membership static (`group.instance.id`): a replica that restarts keeps its partitions. It must differ "
          + "from replica to replica; `${HOSTNAME}` of a StatefulSet does."),
      .group("topics", \.topics, TopicSettings.group),
      .value(
        "properties", \.properties, .kafkaProperties,
        "Any property of librdkafka, for the consumer and the producer, such as `security.protocol`. A secret comes from "
          + "the environment (`\"${NAME}\"`) or from a file (`{ file: \"/secrets/password\" }`)."),
      .value("consumerProperties", \.consumerProperties, .kafkaProperties, "The same for the consumer alone."),
      .value("producerProperties", \.producerProperties, .kafkaProperties, "The same for the producer alone."),
      .optional(
        "oauthTokenFile", \.oauthTokenFile, .file,
        "The bearer token (a JWT) for `sasl.mechanism: \"OAUTHBEARER\"`, such as a projected service account token. It "
          + "is read again before the token expires, once a minute at least."),
    ],
    check: { kafka, value, path, context in
      let mechanisms = (kafka.properties + kafka.consumerProperties + kafka.producerProperties)
        .filter { $0.name == "sasl.mechanism" || $0.name == "sasl.mechanisms" }
      let isUsed = mechanisms.contains {
        if case .text(let text) = $0.value { text.uppercased() == "OAUTHBEARER" } else { false }
      }
      if isUsed, kafka.oauthTokenFile == nil {
        context.report(
          "OAUTHBEARER needs a token", at: path, offset: value.offset, found: "no oauthTokenFile",
          allowed: "oauthTokenFile, a file that is kept up to date")
      } else if !isUsed, kafka.oauthTokenFile != nil, let member = value.member("oauthTokenFile") {
        context.report(
          "has no effect: sasl.mechanism is not OAUTHBEARER", at: SettingPath.join(path, "oauthTokenFile"),
          offset: member.value.offset, severity: .warning)
      }
    })
}

extension TopicSettings {
  static let group = SettingGroup(
    defaults: TopicSettings(),
    fields: [
      .value("requests", \.requests, .list(of: .topic, atMost: 100), "The topics that requests are read from."),
      .value("results", \.results, .topic, "Receives one result for each notification."),
      .value("invalidTokens", \.invalidTokens, .topic, "Receives an event for each token that APNs rejects for good."),
      .value("deadLetters", \.deadLetters, .topic, "Receives the records that could not be understood."),
      .value("deferred", \.deferred, .topic, "Where requests wait whose app or device cannot take them now."),
    ],
    check: { topics, value, path, context in
      var names = topics.requests
      for output in [topics.results, topics.invalidTokens, topics.deadLetters, topics.deferred] {
        names.append(output)
      }
      var seen: Set<String> = []
      for name in names where !seen.insert(name).inserted {
        context.report(
          "two of the topics are the same", at: path, offset: value.offset, found: "\"\(name)\" twice",
          allowed: "a different name for each")
      }
    })
}

extension AppSettings {
  /// The settings of one app; its name is the key in `apps`, or the name of its file.
  static let group = SettingGroup(
    defaults: AppSettings(),
    fields: [
      .value(
        "bundleId", \.bundleID, .bundleID, isRequired: true,
        "The app's bundle id; the topic of each push type is made from it."),
      .value("environment", \.environment, .word(), "Which of Apple's environments the device tokens belong to."),
      .optionalGroup("token", \.token, TokenSettings.group),
      .optionalGroup("certificate", \.certificate, CertificateSettings.group),
      .optionalGroup("server", \.server, ServerSettings.group),
      .optionalGroup("proxy", \.proxy, ProxySettings.group),
      .value("port", \.port, .integer(1...65_535), "The port at Apple's hosts: 443, or 2197 where 443 is not open."),
      .optional(
        "defaultExpiration", \.defaultExpiration, .duration(.zero...(.seconds(30 * 86_400))),
        "How long after the request's time APNs keeps trying, where the request does not say. `\"0s\"`: it tries once. "
          + "Absent: Apple decides."),
      .value(
        "pushTypes", \.pushTypes, .pushTypes,
        "Push types that are newer than this version, each with what is put behind the bundle id to make its topic: "
          + "`{ newtype: { topicSuffix: \".x\" } }`. Requests of such a type need not name their topic then."),
      .optional(
        "maxConnections", \.maxConnections, .integer(1...100), "In place of `delivery.maxConnectionsPerApp`."),
      .optional("maxInFlight", \.maxInFlight, .integer(1...1_000_000), "In place of `delivery.maxInFlightPerApp`."),
    ],
    refused: ["name": "the name of an app is its key in apps, or the name of its file"],
    check: checkCredentials)

  @Sendable
  private static func checkCredentials(
    _ app: AppSettings, _ value: ConfigurationValue, _ path: String, _ context: inout ReadingContext
  ) {
    switch (app.token, app.certificate) {
    case (.some, .some):
      context.report(
        "token and certificate exclude each other", at: path, offset: value.offset, found: "both",
        allowed: "one of them")
    case (nil, nil):
      context.report(
        "the app has no credentials", at: path, offset: value.offset, found: "neither token nor certificate",
        allowed: "one of them")
    default: break
    }
    if app.server != nil && app.port != AppSettings().port {
      context.report(
        "port is for Apple's hosts, and server replaces them", at: path, offset: value.offset, found: "both",
        allowed: "server.port")
    }
  }
}

extension PushTypeSettings {
  static let group = SettingGroup(
    defaults: PushTypeSettings(),
    fields: [
      .value(
        "topicSuffix", \.topicSuffix, .topicSuffix, isRequired: true,
        "What is put behind the bundle id; empty: nothing.")
    ])
}

extension TokenSettings {
  static let group = SettingGroup(
    defaults: TokenSettings(),
    fields: [
      .value("keyFile", \.keyFile, .appFile, isRequired: true, "The .p8 file with the private key."),
      .value("keyId", \.keyID, .appleID, isRequired: true, "The key's id, 10 characters."),
      .value("teamId", \.teamID, .appleID, isRequired: true, "The team's id, 10 characters."),
    ],
    refused: ["key": inlineSecret("keyFile"), "privateKey": inlineSecret("keyFile"), "p8": inlineSecret("keyFile")])
}

extension CertificateSettings {
  static let group = SettingGroup(
    defaults: CertificateSettings(),
    fields: [
      .value(
        "file", \.file, .appFile, isRequired: true,
        "The certificate: PKCS#12 (.p12, also of Keychain Access), PEM with or without key and chain, in any order, or "
          + "DER (.cer)."),
      .optional("keyFile", \.keyFile, .appFile, "The private key (PEM, also encrypted), where it is not in `file`."),
      .optional(
        "passwordFile", \.passwordFile, .appFile, "A file that holds the password of the key or of the PKCS#12 file."),
    ],
    refused: [
      "password": inlineSecret("passwordFile"), "passphrase": inlineSecret("passwordFile"),
      "key": inlineSecret("keyFile"),
    ])
}

extension ServerSettings {
  static let group = SettingGroup(
    defaults: ServerSettings(),
    fields: [
      .value("host", \.host, .host, isRequired: true, "Takes the place of Apple's host: a mock, or a proxy."),
      .value("port", \.port, .integer(1...65_535), "Its port."),
      .optional(
        "caFile", \.caFile, .appFile,
        "The certificate authorities (PEM) that its certificate must come from. Absent: the "
          + "system's."),
    ])
}

extension ProxySettings {
  static let group = SettingGroup(
    defaults: ProxySettings(),
    fields: [
      .value(
        "host", \.host, .host, isRequired: true,
        "The HTTP proxy that connections to APNs go through (`CONNECT`). That of an app takes the place of that under "
          + "`delivery`. Kafka is not reached through it."),
      .value("port", \.port, .integer(1...65_535), "Its port."),
      .optional(
        "usernameFile", \.usernameFile, .file,
        "A file that holds the user name for the proxy (basic authentication). Absent: the proxy asks for none."),
      .optional("passwordFile", \.passwordFile, .file, "A file that holds the password for the proxy."),
    ],
    refused: [
      "username": inlineSecret("usernameFile"), "user": inlineSecret("usernameFile"),
      "password": inlineSecret("passwordFile"),
    ],
    check: { proxy, value, path, context in
      if proxy.passwordFile != nil, proxy.usernameFile == nil {
        context.report(
          "a password without a user name", at: path, offset: value.offset, found: "passwordFile alone",
          allowed: "usernameFile too")
      }
    })
}

extension DeliverySettings {
  static let group = SettingGroup(
    defaults: DeliverySettings(),
    fields: [
      .value("maxConnectionsPerApp", \.maxConnectionsPerApp, .integer(1...100), "Connections to APNs for one app."),
      .value(
        "maxStreamsPerConnection", \.maxStreamsPerConnection, .integer(1...10_000),
        "Requests open at once on one connection. APNs' own limit counts where it is lower."),
      .value(
        "maxInFlight", \.maxInFlight, .integer(1...1_000_000),
        "Notifications taken from Kafka and not settled, in all. At the limit, no more are taken."),
      .value(
        "maxInFlightBytes", \.maxInFlightBytes, .size(1_048_576...17_179_869_184),
        "Bytes of such notifications, in all. What librdkafka has fetched ahead has a bound of its own, the property "
          + "`queued.max.messages.kbytes`."),
      .value(
        "maxInFlightPerApp", \.maxInFlightPerApp, .integer(1...1_000_000),
        "Notifications of one app that have not ended; those whose results are on their way do not count. At the limit, "
          + "the next one waits for room; where that would take long, further ones of this app are deferred."),
      .value("attempts", \.attempts, .integer(1...100), "How often a notification is tried at most."),
      .value(
        "requestTimeout", \.requestTimeout, .duration(.milliseconds(100)...(.seconds(600))),
        "How long an answer may take."),
      .value(
        "connectTimeout", \.connectTimeout, .duration(.milliseconds(100)...(.seconds(120))),
        "How long a connection may take, TLS included."),
      .value(
        "drainTimeout", \.drainTimeout, .duration(.milliseconds(100)...(.seconds(3600))),
        "How long to finish what is in flight after SIGTERM. Keep it below the pod's termination grace period."),
      .value(
        "commitInterval", \.commitInterval, .duration(.milliseconds(10)...(.seconds(60))),
        "How often offsets are committed. What was settled since may be sent twice after a crash."),
      .value(
        "lanes", \.lanes, .integer(0...256),
        "Threads that own connections; 0: one for each processor core, eight at most."),
      .group("retryBackoff", \.retryBackoff, BackoffSettings.group),
      .value(
        "giveUpAfter", \.giveUpAfter, .duration(.seconds(1)...(.seconds(604_800))),
        "How long after its request was first taken up a notification whose app cannot be reached is given up."),
      .value(
        "ordering", \.ordering, .word(),
        "`\"key\"`: of the requests of a partition that have one record key, at most one is out at a time, and they go out "
          + "in order; requests without a key, and those of other keys, do not wait."),
      .optionalGroup("proxy", \.proxy, ProxySettings.group),
    ],
    check: { delivery, value, path, context in
      if delivery.maxInFlightPerApp > delivery.maxInFlight, let member = value.member("maxInFlightPerApp") {
        context.report(
          "above maxInFlight, so it has no effect", at: SettingPath.join(path, "maxInFlightPerApp"),
          offset: member.value.offset, found: String(delivery.maxInFlightPerApp),
          allowed: "up to \(delivery.maxInFlight)",
          severity: .warning)
      }
    })
}

extension BackoffSettings {
  static let group = SettingGroup(
    defaults: BackoffSettings(),
    fields: [
      .value(
        "initial", \.initial, .duration(.milliseconds(1)...(.seconds(600))), "The wait before the second attempt."),
      .value("max", \.max, .duration(.milliseconds(1)...(.seconds(3600))), "The longest wait; each doubles up to it."),
      .value(
        "lasting", \.lasting, .duration(.zero...(.seconds(86_400))),
        "The wait before the last attempt but one after 429 or 5xx; that before the last is twice as long. Apple asks "
          + "for 15 minutes. 0s: no longer than others."
      ),
    ],
    check: { backoff, value, path, context in
      if backoff.initial > backoff.max {
        context.report(
          "initial is longer than max", at: path, offset: value.offset,
          found: "\(Quantity.text(backoff.initial)) and \(Quantity.text(backoff.max))", allowed: "initial up to max")
      }
    })
}

extension OutputForm {
  static let group = SettingGroup(
    defaults: OutputForm(),
    fields: [
      .value(
        "format", \.format, .word(),
        "What results and invalid-token events are written in: JSON, or the messages of `schemas/martlet.proto`."),
      .value(
        "cloudEvents", \.cloudEvents, .word(),
        "Whether they are CloudEvents, and of which mode: the event around the record (`structured`), or its attributes "
          + "as record headers (`binary`)."),
      .value("source", \.source, .uriReference, "The `source` of these events."),
    ])
}

extension HTTPSettings {
  static let group = SettingGroup(
    defaults: HTTPSettings(),
    fields: [
      .value(
        "listen", \.listen, .listenAddress,
        "Where /metrics, /healthz, /readyz and the status page are served. There is no password: what must not be seen by "
          + "all who can reach it belongs on 127.0.0.1 or on a Unix socket."),
      .value(
        "statusPage", \.statusPage, .flag, "Whether there is a status page at / (and /status.json, which it shows)."),
      .value(
        "healthDetails", \.healthDetails, .flag,
        "Whether /healthz and /readyz say what is wrong; otherwise only whether something is."),
    ])
}

extension LogSettings {
  static let group = SettingGroup(
    defaults: LogSettings(),
    fields: [
      .value("level", \.level, .word(), "The least important lines that are written."),
      .value(
        "format", \.format, .word(), "One JSON object a line, or text for people. auto: text on a terminal, else JSON."),
    ])
}

/// Why a secret is refused where it stands, and what to do.
private func inlineSecret(_ key: String) -> String {
  "a secret must not stand in the configuration; put it in a file and name that with \(key)"
}
