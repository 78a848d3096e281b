import Wire

/// Which form a record's value has: by its `content-type`, and by its first byte.
extension RequestFields {
  /// Reads whichever form the record has, up to texts that are ready to be judged.
  ///
  /// - Parameter body: grows where a text must be unescaped or decoded, and by the digits of Protobuf's numbers.
  mutating func read(_ value: ByteRange, of body: inout RecordBody) throws(Violation) {
    var content = readHeaders(body.headers, of: body.storage.span)
    let type = ContentType(content.type, in: body.storage.span)
    if self[.app].isGiven {
      takeID(of: content.event)
      guard type == .json || type == .unstated else { throw unsupported(content.type, in: body.storage.span) }
      try readPayload(value, of: body.storage.span)
    } else {
      self = RequestFields(form: .json, tokenItems: tokenItems)
      do {
        try readValue(value, as: type, in: &body.storage, &content)
      } catch {
        // What was read before the text broke is not to be trusted; what stood elsewhere is.
        self = RequestFields(form: form)
        takeID(of: content.event)
        throw error
      }
      takeID(of: content.event)
    }
    if trace == nil, let event = content.event?.trace { _ = noteTrace(event.name, event.value, in: body.storage.span) }
    try content.event?.check(in: body.storage.span)
  }

  private mutating func readValue(
    _ value: ByteRange, as type: ContentType, in storage: inout [UInt8], _ content: inout ContentHeaders
  ) throws(Violation) {
    switch type {
    case .json, .unstated, .protobuf: try readContent(value, as: type, in: &storage)
    case .event: try readEvent(value, in: &storage, &content.event)
    case .other: throw unsupported(content.type, in: storage.span)
    }
  }

  /// The event's id is that of a request that has none.
  private mutating func takeID(of event: EventAttributes?) {
    if let event, event.id.isGiven, !self[.id].isGiven { self[.id] = event.id }
  }

  private func unsupported(_ contentType: ByteRange?, in bytes: Span<UInt8>) -> Violation {
    Violation(
      .unsupportedContentType,
      "content-type: must be application/json, application/x-protobuf or application/cloudevents+json; found "
        + (contentType.map { shownText($0, in: bytes) } ?? "nothing"))
  }

  // MARK: JSON or Protobuf

  /// Reads a request that nothing is around, or the frame of a schema registry at most.
  mutating func readContent(
    _ value: ByteRange, as type: ContentType, in storage: inout [UInt8]
  ) throws(Violation) {
    var value = value
    var isProtobuf = type == .protobuf
    // Neither JSON nor a message of Protobuf can begin with a zero byte.
    if !value.isEmpty, storage[Int(value.start)] == 0 {
      (value, isProtobuf) = try Self.unframed(value, as: type, in: storage.span)
    }
    if isProtobuf {
      try readProtobuf(value, in: &storage)
    } else {
      try readJSON(value, of: storage.span)
      if hasEscapes { unescape(in: &storage) }
    }
  }

  /// Takes off what the serializers of Confluent's schema registry put before a value: a zero byte, the schema's id in
  /// four bytes and, before Protobuf only, which of the schema's messages it is ("Formats, Serializers, and
  /// Deserializers for Schema Registry", wire format).
  private static func unframed(
    _ value: ByteRange, as type: ContentType, in bytes: Span<UInt8>
  ) throws(Violation) -> (ByteRange, isProtobuf: Bool) {
    let name = "the schema registry's frame"
    let frame = 5
    guard value.count > frame else {
      throw Violation(.malformedProtobuf, "\(name): must have 5 bytes with a message behind them; found \(value.count)")
    }
    let start = Int(value.start) + frame
    let rest = ByteRange(start, Int(value.end))
    guard type == .protobuf || type == .unstated && bytes[start] != 0x7b else { return (rest, false) }
    let rule = "must name the schema's first message, PushRequest"
    var reader = ProtobufReader(bytes.extracting(rest.indices))
    let isFirst: Bool
    do {
      // How many indexes follow, and these, in zigzag encoding; a single 0 stands for "one, and it is 0".
      let count = try reader.varint()
      isFirst = count == 0 ? true : try count == 2 && reader.varint() == 0
    } catch {
      throw Violation(.malformedProtobuf, "\(name): \(rule); found \(error)")
    }
    guard isFirst else { throw Violation(.malformedProtobuf, "\(name): \(rule); found another") }
    return (ByteRange(start + reader.offset, Int(value.end)), true)
  }
}

/// What a record's headers say of its value, beside the fields of the header form.
struct ContentHeaders {
  /// The value of `content-type`.
  var type: ByteRange?
  /// The attributes of a CloudEvent.
  var event: EventAttributes?

  /// Whether it is a header of that kind.
  static func isContent(_ name: ByteRange, in bytes: Span<UInt8>) -> Bool {
    RequestFields.matches(name, "content-type", in: bytes) || isEventAttribute(name, in: bytes)
  }

  static func isEventAttribute(_ name: ByteRange, in bytes: Span<UInt8>) -> Bool {
    name.count > 3
      && RequestFields.matches(ByteRange(start: name.start, end: name.start + 3), "ce_", in: bytes)
  }
}

/// The media types that are told apart; parameters (`; charset=utf-8`) are tolerated.
enum ContentType {
  /// No `content-type`, or an empty one.
  case unstated
  case json, protobuf
  /// A CloudEvent in structured mode.
  case event
  case other

  init(_ text: ByteRange?, in bytes: Span<UInt8>) {
    self = text.map { Self.type($0, in: bytes) } ?? .unstated
  }

  private static func type(_ text: ByteRange, in bytes: Span<UInt8>) -> ContentType {
    var start = Int(text.start)
    var end = start
    while end < Int(text.end), bytes[end] != 0x3b { end += 1 }
    while start < end, ASCII.isBlank(bytes[start]) { start += 1 }
    while start < end, ASCII.isBlank(bytes[end - 1]) { end -= 1 }
    let name = ByteRange(start, end)
    if name.isEmpty { return .unstated }
    if RequestFields.matches(name, "application/json", in: bytes) { return .json }
    if RequestFields.matches(name, "application/cloudevents+json", in: bytes) { return .event }
    for protobuf in ["application/x-protobuf", "application/protobuf"]
    where RequestFields.matches(name, protobuf, in: bytes) {
      return .protobuf
    }
    return .other
  }
}
