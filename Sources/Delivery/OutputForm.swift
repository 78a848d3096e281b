import Wire

/// How results and invalid-token events are written. Dead letters and deferred requests are always the request's own
/// bytes.
package struct OutputForm: Hashable, Sendable {
  /// What the record, or the data of the event, is written in.
  package enum Format: String, CaseIterable, Sendable { case json, protobuf }

  /// Whether records are CloudEvents, and of which mode ("Kafka Protocol Binding for CloudEvents", section 3).
  package enum CloudEvents: String, CaseIterable, Sendable { case off, structured, binary }

  package var format = Format.json
  package var cloudEvents = CloudEvents.off
  /// The `source` of the events: a URI reference.
  package var source = "/martlet"

  package init() {}

  static let protobufType = "application/x-protobuf"
  static let jsonType = "application/json"
  static let eventType = "application/cloudevents+json"

  /// The headers that say what a record's value is. Plain JSON has none.
  func headers(_ event: OutputEvent?) -> [Publication.ExtraHeader] {
    let content = format == .json ? Self.jsonType : Self.protobufType
    switch (cloudEvents, event) {
    case (.structured, _): return [Publication.ExtraHeader("content-type", Self.eventType)]
    case (.binary, .some(let event)):
      return [Publication.ExtraHeader("content-type", content)]
        + event.attributes.map { Publication.ExtraHeader("ce_\($0.name)", $0.value) }
    case (.binary, .none), (.off, _):
      return format == .json ? [] : [Publication.ExtraHeader("content-type", content)]
    }
  }
}

/// The attributes of one event (CloudEvents 1.0, "Context Attributes").
struct OutputEvent {
  /// What the event tells; the raw value ends its type and begins its id.
  enum Kind: String { case result, invalidToken = "invalid-token" }

  var kind: Kind
  var origin: Source
  /// The name of the origin's topic.
  var topic: String
  /// The `source`.
  var source: String
  var subject: String
  var time: UnixTime

  /// The same for a record that is published again, and for no other one of this source.
  var id: String {
    "\(kind.rawValue):\(topic)/\(origin.partition.partition)/\(origin.offset)/\(origin.item)"
  }

  /// In the order in which they are written.
  var attributes: [(name: String, value: String)] {
    [
      ("specversion", "1.0"), ("id", id), ("source", source), ("type", "martlet.push.\(kind.rawValue)"),
      ("subject", subject), ("time", RFC3339.text(time)),
    ]
  }
}
