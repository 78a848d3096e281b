/// What each kind of problem means and what mends it, for people who have not read the manual.
package enum ProblemGuide {
  /// A problem in words.
  package struct Entry: Sendable {
    package var meaning: String
    package var mend: String
  }

  /// - Parameter code: a log line's.
  package static func entry(for code: String) -> Entry? {
    if let entry = entries[code] { return entry }
    return code.hasPrefix("kafka.") ? libraryEntry : nil
  }

  /// By code: every one that a warning or an error has.
  static let entries: [String: Entry] = [
    "app_unavailable": Entry(
      meaning: "APNs cannot be reached for this app, or refuses its credentials. Its requests wait; other apps go on.",
      mend: "The cause tells which. Unreachable: firewall, proxy, DNS. Refused: key file, key id and team id, or the "
        + "certificate. It goes on by itself once it works again."),
    "app_unusable": Entry(
      meaning: "The app's key or certificate cannot be loaded, so nothing of it can be sent.",
      mend: "Mend the file that the cause names; the change is taken up without a restart."),
    "app_suspect": Entry(
      meaning: "APNs calls most of the app's device tokens bad, as it does with tokens of the other environment.",
      mend: "Compare the app's `environment` and `bundleId` with the build that registered the tokens. Do not delete "
        + "tokens on these events before that."),
    "cannot_start": Entry(
      meaning: "The service cannot start.", mend: "Mend what the cause names; `martlet check` looks the file over."),
    "certificate_expires": Entry(
      meaning: "The app's certificate expires soon; then APNs refuses all its notifications.",
      mend: "Renew it at developer.apple.com and replace the file, or change to a key (.p8), which does not expire."),
    "certificate_expired": Entry(
      meaning: "The app's certificate has expired: APNs refuses it.",
      mend: "Renew it at developer.apple.com and replace the file; the change is taken up without a restart."),
    "commit_failed": Entry(
      meaning:
        "Kafka did not take an offset commit. The next one says the same again; after a crash more would repeat.",
      mend: "Now and then during a rebalance it is harmless. If it lasts: the brokers' health, and the right to read "
        + "with this group."),
    "configuration": Entry(
      meaning: "Something in the configuration is odd or wrong.", mend: "Mend what the message names."),
    "connection_failed": Entry(
      meaning: "A connection to APNs broke or could not be made. A new one is made, and what was open is sent again.",
      mend: "Single ones are everyday life. Many: firewall, proxy, DNS, or the app's certificate."),
    "failed": Entry(
      meaning: "Kafka's client cannot go on; the process ends and must be started again.",
      mend: "The cause tells why. Kubernetes starts it again; nothing is lost."),
    "kafka_error": Entry(
      meaning: "Kafka's client reports an error.",
      mend: "Brokers away come back by themselves. Rights and unknown topics do not: the cause names them."),
    "kafka_refused": Entry(
      meaning: "Kafka refuses this service's credentials or rights. Nothing is lost: it is tried again and again.",
      mend: "The cause names the client and the refusal: mend the SASL or TLS settings, the password's file, or the "
        + "ACLs of group and topics."),
    "output_refused": Entry(
      meaning: "A topic takes no records, so what belongs there waits, and the intake stops at its cap.",
      mend: "The topic must exist and this service must have the right to write to it. It goes on by itself then."),
    "output_stalled": Entry(
      meaning: "A topic has acknowledged nothing for some time, though records wait for it.",
      mend: "Look at its partitions' leaders and in-sync replicas; `min.insync.replicas` may be more than there are."),
    "producer_failed": Entry(
      meaning: "Kafka's producer could do nothing more; a new one has taken over what was not stored.",
      mend: "Once is no harm. If it comes back: the brokers' log for this client, and the age of its idempotent id."),
    "loop_stuck": Entry(
      meaning: "A part of the service has not moved for too long. `/healthz` says so too.",
      mend: "Kubernetes starts the replica again; nothing is lost. If it comes back, report it with the log."),
    "intake_held": Entry(
      meaning: "So much is in flight that no more requests are taken up until some have ended.",
      mend: "Nothing, if it passes. If it lasts: an app that APNs serves slowly, Kafka that stores no results, or caps "
        + "(`delivery.maxInFlight`) that are too low for the rate."),
    "offsets_began_again": Entry(
      meaning: "A topic was deleted and made anew, so its offsets began again. Reading begins with it.",
      mend: "Nothing, if that was meant."),
    "partitions_lost": Entry(
      meaning:
        "The group took this replica for dead and gave its partitions to another; some notifications may be sent "
        + "twice.",
      mend: "Look for long stops of the process (CPU limits, suspended nodes) and for networks that fail."),
    "provider_token_refused": Entry(
      meaning: "APNs calls a token expired that was just signed: this machine's clock may be wrong.",
      mend: "Check the time of the node (NTP)."),
    "publication_refused": Entry(
      meaning: "Kafka will not take a result or event, most likely since it is too large.",
      mend: "Raise `max.message.bytes` of the topic, or have producers send fewer and smaller headers."),
    "publication_repeated": Entry(
      meaning: "Kafka did not store a result or event; it is produced again until it does.",
      mend: "If it lasts: the topic must exist, this service must have the right to write, and enough replicas must be "
        + "in sync."),
    "reload_refused": Entry(
      meaning: "The configuration was changed and cannot be used; the one before stays in effect.",
      mend: "Mend the file: the log names each problem. `martlet check` looks it over."),
    "restart_needed": Entry(
      meaning: "A setting was changed that takes effect with the next start only.", mend: "Restart when it suits."),
  ]

  private static let libraryEntry = Entry(
    meaning: "librdkafka, Kafka's client library, reports something about its connections to the brokers.",
    mend:
      "Brokers that restart show up here and come back by themselves. If it lasts: addresses, TLS and SASL settings.")
}
