import Wire

/// A record that cannot be shown, in words.
struct FollowedFault: Error, Equatable, CustomStringConvertible {
  var description: String
}

/// Brings the forms that the service can write (`output.format`, `output.cloudEvents`) to one: the record as JSON.
enum FollowedForms {
  /// - Returns: the JSON object of the result or event; for a CloudEvent, that of its data. `nil` for a tombstone, which
  ///   a consumer of the topic may have put in the place of an event.
  static func json(_ body: RecordBody, of kind: FollowedKind) throws(FollowedFault) -> Bytes? {
    guard let value = body.value else { return nil }
    let bytes = Bytes(body.storage, value)
    switch contentType(of: body) {
    case "application/x-protobuf": return Bytes(try json(message: bytes.span, of: kind))
    case "application/cloudevents+json":
      do {
        return try data(of: bytes, kind)
      } catch let fault as FollowedFault {
        throw fault
      } catch {
        throw FollowedFault(description: "not JSON, \(error)")
      }
    default: return bytes
    }
  }

  /// In lower case, without parameters.
  private static func contentType(of body: RecordBody) -> String? {
    let header = body.headers.last { header in
      Bytes(body.storage, header.name).text.lowercased() == "content-type"
    }
    guard let value = header?.value else { return nil }
    let text = Bytes(body.storage, value).text.lowercased()
    return text.split(separator: ";").first.map { $0.filter { $0 != " " } }
  }

  /// The data of a structured CloudEvent ("JSON Event Format for CloudEvents", section 3.1).
  private static func data(of event: Bytes, _ kind: FollowedKind) throws -> Bytes {
    var scanner = JSONScanner(event.span)
    var found: Bytes?
    try scanner.beginObject()
    while let key = try scanner.nextKey() {
      let isData = scanner.matches(key, "data")
      let isEncoded = scanner.matches(key, "data_base64")
      let value = try scanner.value()
      switch value {
      case .object(let range) where isData: found = Bytes(event.span.extracting(range.indices).array)
      case .string(let string) where isEncoded:
        guard let message = Base64.decode(event.span.extracting(string.range.indices)) else {
          throw FollowedFault(description: "data_base64 is not base 64")
        }
        found = Bytes(try json(message: message.span, of: kind))
      default: break
      }
    }
    try scanner.endDocument()
    guard let found else { throw FollowedFault(description: "a CloudEvent without data") }
    return found
  }

  // MARK: Protocol Buffers

  private static func json(message: Span<UInt8>, of kind: FollowedKind) throws(FollowedFault) -> [UInt8] {
    do throws(ProtobufError) {
      var writer = JSONWriter()
      writer.beginObject()
      var seen: Set<UInt32> = []
      try write(message, kind.fields, &seen, &writer)
      // What stands at its default is not written in a message, and is in JSON.
      for (number, field) in kind.fields.sorted(by: { $0.key < $1.key }) where !seen.contains(number) {
        switch field {
        case .count(let name):
          writer.key(name)
          writer.integer(0)
        case .flag(let name):
          writer.key(name)
          writer.bool(false)
        default: break
        }
      }
      writer.endObject()
      return writer.take()
    } catch {
      throw FollowedFault(description: "no message of schemas/martlet.proto, \(error)")
    }
  }

  private static func write(
    _ message: Span<UInt8>, _ fields: [UInt32: FollowedKind.Field], _ seen: inout Set<UInt32>,
    _ writer: inout JSONWriter
  ) throws(ProtobufError) {
    var reader = ProtobufReader(message)
    while let tag = try reader.nextTag() {
      guard let field = fields[tag.field] else {
        try reader.skip(tag.wireType)
        continue
      }
      seen.insert(tag.field)
      writer.key(field.name)
      switch (field, tag.wireType) {
      case (.text, .delimited): writer.string(message.extracting(try reader.delimited().indices))
      case (.count, .varint), (.number, .varint): writer.integer(Int64(bitPattern: try reader.varint()))
      case (.flag, .varint): writer.bool(try reader.varint() != 0)
      case (.source, .delimited):
        writer.beginObject()
        let range = try reader.delimited()
        var inner: Set<UInt32> = []
        try write(message.extracting(range.indices), FollowedKind.sourceFields, &inner, &writer)
        writer.endObject()
      default: throw ProtobufError(.wrongWireType(field: tag.field, name: field.name), at: tag.offset)
      }
    }
  }
}

extension Span<UInt8> {
  /// A copy.
  fileprivate var array: [UInt8] { (0..<count).map { self[$0] } }
}
