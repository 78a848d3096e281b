import Wire

extension Journal {
  /// The counts, and with `includingRequests` what was remembered, as one JSON object.
  package func json(includingRequests: Bool = false) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    counts.write(to: &writer)
    if includingRequests {
      writer.key("seen")
      writer.beginArray()
      for request in seen { request.write(to: &writer) }
      writer.endArray()
    }
    writer.endObject()
    return writer.take()
  }
}

extension Journal.Counts {
  /// Writes the members of the object, in a fixed order.
  func write(to writer: inout JSONWriter) {
    let numbers = [
      ("requests", requests), ("answered", answered), ("accepted", accepted), ("connections", connections),
      ("open_connections", openConnections), ("provider_tokens", providerTokens), ("resets", resets),
      ("silences", silences), ("goaways_sent", goAwaysSent), ("most_open_streams", mostOpenStreams),
      ("stream_limit_announced", streamLimitAnnounced), ("identifiers", identifiers),
      ("repeated_identifiers", repeatedIdentifiers),
      ("identifiers_accepted_repeatedly", identifiersAcceptedRepeatedly),
      ("uncounted_identifiers", uncountedIdentifiers),
    ]
    for (name, number) in numbers {
      writer.key(name)
      writer.integer(number)
    }
    write("by_status", byStatus.map { ("\($0.key)", $0.value) }, to: &writer)
    write("by_reason", byReason.map { ($0.key, $0.value) }, to: &writer)
    write("by_topic", byTopic.map { ($0.key, $0.value) }, to: &writer)
  }

  private func write(_ name: String, _ entries: [(String, Int)], to writer: inout JSONWriter) {
    writer.key(name)
    writer.beginObject()
    for (key, number) in entries.sorted(by: { $0.0 < $1.0 }) {
      writer.key(key)
      writer.integer(number)
    }
    writer.endObject()
  }
}

extension Journal.Seen {
  func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("connection")
    writer.integer(connection)
    writer.key("stream")
    writer.integer(Int64(stream))
    writer.key("time")
    writer.integer(time.milliseconds)
    writer.key("token")
    writer.string(token)
    writer.key("topic")
    writer.string(topic)
    writer.key("apns_id")
    if let apnsID { writer.string(apnsID) } else { writer.null() }
    writer.key("status")
    writer.integer(Int64(status))
    writer.key("reason")
    writer.string(reason)
    writer.key("headers")
    writer.beginArray()
    // A provider token is a secret, even here.
    for field in fields where field.name != "authorization" {
      writer.beginArray()
      writer.string(field.name)
      writer.string(field.value)
      writer.endArray()
    }
    writer.endArray()
    writer.key("body")
    writer.string(body.span)
    writer.endObject()
  }
}
