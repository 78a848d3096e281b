import Wire

/// The Protobuf form of a request: `martlet.v1.PushRequest` of `schemas/martlet.proto`, whose field numbers stand here.
///
/// It is read strictly: unlike the JSON form, it has no room for fields that the schema does not know, because any bytes
/// of another message look like such fields.
extension RequestFields {
  /// Reads a message, a stretch of `storage`, to which the digits of its numbers are appended. Of a field that comes
  /// twice the last one counts.
  mutating func readProtobuf(_ value: ByteRange, in storage: inout [UInt8]) throws(Violation) {
    form = .protobuf
    var apart = Apart()
    do {
      try readMessage(value, of: storage.span, &apart)
    } catch {
      throw Violation(.malformedProtobuf, "the value: is no PushRequest, \(error)")
    }
    if let priority = apart.priority {
      self[.priority] = Self.digits(of: Int64(clamping: priority), in: &storage)
    }
    if let expiration = apart.expiration {
      self[.expiration] = Self.digits(of: Int64(bitPattern: expiration), in: &storage)
    }
    if let trace = apart.trace { takeTrace(trace, in: &storage) }
    guard self[.payload].kind != .absent else { return }
    guard !self[.payload].range.isEmpty else {
      throw Violation(.missingField, "payload: is required; it has no bytes")
    }
    try readPayload(self[.payload].range, of: storage.span)
  }

  /// What needs more bytes than the message has, and so waits until it has been read.
  private struct Apart {
    var priority: UInt64?
    var expiration: UInt64?
    var trace: ByteRange?
  }

  private mutating func readMessage(
    _ value: ByteRange, of bytes: Span<UInt8>, _ apart: inout Apart
  ) throws(ProtobufError) {
    tokenItems.removeAll(keepingCapacity: true)
    tokenCount = 0
    var reader = ProtobufReader(bytes.extracting(value.indices), base: Int(value.start))
    while let tag = try reader.nextTag() {
      if tag.field == Self.traceField {
        guard tag.wireType == .delimited else {
          throw ProtobufError(.wrongWireType(field: tag.field, name: TraceContext.name), at: tag.offset)
        }
        apart.trace = try reader.delimited()
        continue
      }
      guard let field = Self.field(number: tag.field) else {
        throw ProtobufError(.unknownField(tag.field), at: tag.offset)
      }
      let isNumber = field == .priority || field == .expiration
      guard tag.wireType == (isNumber ? .varint : .delimited) else {
        throw ProtobufError(.wrongWireType(field: tag.field, name: field.key), at: tag.offset)
      }
      switch field {
      case .priority: apart.priority = try reader.varint()
      case .expiration: apart.expiration = try reader.varint()
      case .payload: self[.payload] = FieldValue(kind: .object, range: try reader.delimited())
      case .tokens:
        self[.tokens] = FieldValue(kind: .array)
        let item = FieldValue(text: try reader.delimited(), in: bytes)
        if tokenCount < RequestLimits.tokens { tokenItems.append(item) }
        tokenCount += 1
      case .app, .token, .pushType, .collapseID, .id, .topic, .channel:
        self[field] = FieldValue(text: try reader.delimited(), in: bytes)
      }
    }
  }

  /// The field's name becomes that of a header, which is made of bytes of the record.
  private mutating func takeTrace(_ trace: ByteRange, in storage: inout [UInt8]) {
    let start = storage.count
    storage += TraceContext.name.utf8
    let name = ByteRange(start, storage.count)
    if !noteTrace(name, FieldValue(text: trace, in: storage.span), in: storage.span) { unknownFields += 1 }
  }

  private static let traceField: UInt32 = 12

  private static func field(number: UInt32) -> RequestField? {
    switch number {
    case 1: .app
    case 2: .token
    case 3: .tokens
    case 4: .payload
    case 5: .pushType
    case 6: .priority
    case 7: .expiration
    case 8: .collapseID
    case 9: .id
    case 10: .topic
    case 11: .channel
    default: nil
    }
  }

  /// The number as the other forms write it, so that the rules are the same.
  private static func digits(of number: Int64, in storage: inout [UInt8]) -> FieldValue {
    let start = storage.count
    storage.append(decimal: number)
    return FieldValue(kind: .number, range: ByteRange(start, storage.count))
  }
}
