import Wire

/// The trace that a request belongs to, as its `traceparent` says (W3C Trace Context, section 3.2.2): a record header,
/// a field of the JSON or the Protobuf form, or the attribute of a CloudEvent. It is handed on as it came, and the log names its trace.
enum TraceContext {
  static let name = "traceparent"

  /// The id of the trace; `nil` for a text that is no `traceparent`. What is behind the four known parts belongs to a
  /// later version and is not looked at.
  static func traceID(_ text: ByteRange, in bytes: Span<UInt8>) -> UUID? {
    let start = Int(text.start)
    guard text.count == 55 || text.count > 55 && bytes[start + 55] == UInt8(ascii: "-"),
      [2, 35, 52].allSatisfy({ bytes[start + $0] == UInt8(ascii: "-") }),
      let version = hex(bytes, start, 2), version != 0xff, version != 0 || text.count == 55,
      let high = hex(bytes, start + 3, 16), let low = hex(bytes, start + 19, 16), high | low != 0,
      let parent = hex(bytes, start + 36, 16), parent != 0, hex(bytes, start + 53, 2) != nil
    else { return nil }
    return UUID(high: high, low: low)
  }

  /// The id of the trace that a record's headers name.
  static func traceID(of headers: borrowing [RecordBody.Header], in bytes: Span<UInt8>) -> UUID? {
    for index in headers.indices where RequestFields.matches(headers[index].name, name, in: bytes) {
      return headers[index].value.flatMap { traceID($0, in: bytes) }
    }
    return nil
  }

  /// Digits in lower case only, as the rules have it.
  private static func hex(_ bytes: Span<UInt8>, _ start: Int, _ count: Int) -> UInt64? {
    var number: UInt64 = 0
    for index in start..<start + count {
      let digit: UInt8
      switch bytes[index] {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = bytes[index] - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = bytes[index] - UInt8(ascii: "a") + 10
      default: return nil
      }
      number = number << 4 | UInt64(digit)
    }
    return number
  }
}

extension RequestFields {
  /// Notes a `traceparent` that stands in the value, if it is one.
  ///
  /// - Parameter name: where its name stands: it becomes the name of a header.
  /// - Returns: Whether there is nothing wrong with it; null means that there is none.
  mutating func noteTrace(_ name: ByteRange, _ value: FieldValue, in bytes: Span<UInt8>) -> Bool {
    if value.kind == .null { return true }
    guard value.kind == .string, !value.hasEscapes, TraceContext.traceID(value.range, in: bytes) != nil else {
      return false
    }
    trace = RecordBody.Header(name: name, value: value.range)
    return true
  }

  /// Adds the `traceparent` of the value to the record's headers, which are copied to all that the request causes. A
  /// header of that name counts more: what carried the record knew better.
  func addTrace(to body: inout RecordBody) {
    guard let trace else { return }
    for header in body.headers where Self.matches(header.name, TraceContext.name, in: body.storage.span) { return }
    body.headers.append(trace)
  }
}
