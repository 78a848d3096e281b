import Wire

/// The attributes of the CloudEvent that a request comes as (CloudEvents 1.0, "Context Attributes"): record headers in
/// binary mode ("Kafka Protocol Binding", section 3.2), members of the value in structured mode (section 3.3). Others
/// than these are ignored.
struct EventAttributes {
  /// Whether they are headers, which have a prefix.
  var isBinary: Bool
  var specVersion = FieldValue.absent
  var id = FieldValue.absent
  var source = FieldValue.absent
  var type = FieldValue.absent
  /// The next three only in structured mode.
  var dataContentType = FieldValue.absent
  var data = FieldValue.absent
  var dataBase64 = FieldValue.absent
  /// The extension "Distributed Tracing".
  var trace: (name: ByteRange, value: FieldValue)?

  init(isBinary: Bool) { self.isBinary = isBinary }

  /// Takes a header whose name begins with `ce_`.
  mutating func note(_ header: RecordBody.Header, in bytes: Span<UInt8>) {
    let name = ByteRange(start: header.name.start + 3, end: header.name.end)
    let value = header.value.map { FieldValue(text: $0, in: bytes) } ?? .null
    if RequestFields.matches(name, "specversion", in: bytes) {
      specVersion = value
    } else if RequestFields.matches(name, "id", in: bytes) {
      id = value
    } else if RequestFields.matches(name, "source", in: bytes) {
      source = value
    } else if RequestFields.matches(name, "type", in: bytes) {
      type = value
    } else if RequestFields.matches(name, TraceContext.name, in: bytes) {
      trace = (name, value)
    }
  }

  mutating func unescape(in storage: inout [UInt8]) {
    for place in [\EventAttributes.specVersion, \.id, \.source, \.type, \.dataContentType, \.dataBase64]
    where self[keyPath: place].hasEscapes {
      self[keyPath: place] = RequestFields.unescaped(self[keyPath: place], in: &storage)
    }
  }

  /// Checks what every event must have. In binary mode `ce_specversion` makes an event of a record.
  func check(in bytes: Span<UInt8>) throws(Violation) {
    guard !isBinary || specVersion.isGiven else { return }
    try check(specVersion, "specversion", in: bytes)
    guard bytes.extracting(specVersion.range.indices).count == 3,
      RequestFields.matches(specVersion.range, "1.0", in: bytes)
    else {
      let found = RequestFields(form: .json).shown(specVersion, in: bytes)
      throw Violation(.badCloudEvent, "\(name("specversion")): must be 1.0; found \(found)")
    }
    try check(id, "id", in: bytes)
    try check(source, "source", in: bytes)
    try check(type, "type", in: bytes)
  }

  private func check(_ value: FieldValue, _ attribute: String, in bytes: Span<UInt8>) throws(Violation) {
    guard value.isGiven else {
      throw Violation(.badCloudEvent, "\(name(attribute)): is required in a CloudEvent")
    }
    guard value.kind == .string, !value.range.isEmpty else {
      let found = RequestFields(form: .json).shown(value, in: bytes)
      throw Violation(.badCloudEvent, "\(name(attribute)): must be a text that is not empty; found \(found)")
    }
  }

  private func name(_ attribute: String) -> String { isBinary ? "ce_\(attribute)" : "the event's \(attribute)" }
}

/// The structured mode: the request is the `data` of the JSON object that the value is.
extension RequestFields {
  mutating func readEvent(
    _ value: ByteRange, in storage: inout [UInt8], _ event: inout EventAttributes?
  ) throws(Violation) {
    var attributes = EventAttributes(isBinary: false)
    do {
      try readEnvelope(value, of: storage.span, &attributes)
    } catch {
      event = nil
      throw Violation(.malformedJSON, "the value: is not JSON, \(error)")
    }
    attributes.unescape(in: &storage)
    event = attributes
    try readData(in: &storage, attributes)
  }

  /// - Throws: `JSONError`; that the value is no object is found too.
  private mutating func readEnvelope(
    _ value: ByteRange, of bytes: Span<UInt8>, _ event: inout EventAttributes
  ) throws(JSONError) {
    // The request is one level further in than it would be by itself.
    var scanner = JSONScanner(
      bytes.extracting(value.indices), base: Int(value.start), maxDepth: JSONScanner.deepest + 1)
    try scanner.beginObject()
    while let key = try scanner.nextKey() {
      if JSONText.matches(key, "data", in: bytes) {
        let kind = try scanner.peekKind()
        self = RequestFields(form: .json, tokenItems: tokenItems)
        if kind == .object {
          event.data = FieldValue(kind: .object)
          try readMembers(&scanner, in: bytes)
        } else {
          event.data = FieldValue(try scanner.value())
        }
        continue
      }
      let member = FieldValue(try scanner.value())
      if JSONText.matches(key, "id", in: bytes) {
        event.id = member
      } else if JSONText.matches(key, "type", in: bytes) {
        event.type = member
      } else if JSONText.matches(key, "source", in: bytes) {
        event.source = member
      } else if JSONText.matches(key, "specversion", in: bytes) {
        event.specVersion = member
      } else if JSONText.matches(key, "datacontenttype", in: bytes) {
        event.dataContentType = member
      } else if JSONText.matches(key, "data_base64", in: bytes) {
        event.dataBase64 = member
      } else if JSONText.matches(key, TraceContext.name, in: bytes), !key.hasEscapes {
        event.trace = (key.range, member)
      }
    }
    try scanner.endDocument()
  }

  private mutating func readData(in storage: inout [UInt8], _ event: EventAttributes) throws(Violation) {
    let declared = event.dataContentType
    guard !declared.isGiven || declared.kind == .string else {
      throw Violation(.badCloudEvent, "the event's datacontenttype: must be a string; found \(kindName(declared))")
    }
    let type = ContentType(declared.isGiven ? declared.range : nil, in: storage.span)
    guard type == .json || type == .unstated || (type == .protobuf && event.dataBase64.isGiven) else {
      throw Violation(
        .unsupportedContentType,
        "the event's datacontenttype: must be application/json, or application/x-protobuf with data_base64; found "
          + shown(declared, in: storage.span))
    }
    guard event.dataBase64.isGiven else {
      guard event.data.kind != .absent else {
        throw Violation(.badCloudEvent, "the event's data: is required")
      }
      guard event.data.kind == .object else {
        throw Violation(.wrongType, "the event's data: must be a JSON object; found \(kindName(event.data))")
      }
      if hasEscapes { unescape(in: &storage) }
      return
    }
    guard !event.data.isGiven else {
      throw Violation(.badCloudEvent, "the event's data: must not be there together with data_base64; found both")
    }
    let start = storage.count
    var content: [UInt8] = []
    guard event.dataBase64.kind == .string,
      Base64.decode(storage.span.extracting(event.dataBase64.range.indices), into: &content)
    else {
      throw Violation(.badCloudEvent, "the event's data_base64: must be base64 with padding; found something else")
    }
    storage += content
    try readContent(ByteRange(start, storage.count), as: type, in: &storage)
  }
}
