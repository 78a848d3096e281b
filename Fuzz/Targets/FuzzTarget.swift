/// A part of the program that reads bytes from outside, and what must hold for any bytes.
///
/// `scripts/fuzz` feeds it with what libFuzzer makes of the corpus; the tests play the corpus as it stands.
package enum FuzzTarget: String, CaseIterable, Sendable {
  /// `JSONScanner`, `JSONText` and `JSONWriter`; the input is the text.
  case json
  /// `ProtobufReader` and the frame of a schema registry; the input is a record's value.
  case requestProtobuf = "request-protobuf"
  /// The request as JSON; the input is a record's value.
  case requestJSON = "request-json"
  /// The structured CloudEvent; the input is a record's value.
  case requestEvent = "request-event"
  /// Any record: headers, one a line, then an empty line, then the value.
  case requestRecord = "request-record"
  /// The metadata of a commit: the input is the text's content, without its check.
  case metadata
  /// The parser of the endpoint's requests; the input is what a client sends.
  case http1
  /// The configuration file.
  case configuration
  /// APNs' answer: status, three headers and the body, one a line.
  case answer

  /// Has the part read the input, and looks at what comes of it.
  ///
  /// - Throws: `Broken`, with what does not hold.
  package func check(_ input: [UInt8]) throws {
    switch self {
    case .json: try JSONChecks.check(input)
    case .requestProtobuf:
      try RequestChecks.check(input, headers: [("content-type", Array("application/x-protobuf".utf8))])
    case .requestJSON: try RequestChecks.check(input, headers: [])
    case .requestEvent:
      try RequestChecks.check(input, headers: [("content-type", Array("application/cloudevents+json".utf8))])
    case .requestRecord: try RequestChecks.check(record: input)
    case .metadata: try MetadataChecks.check(input)
    case .http1: try HTTP1Checks.check(input)
    case .configuration: try ConfigurationChecks.check(input)
    case .answer: try AnswerChecks.check(input)
    }
  }
}

/// Something that must hold for every input, and does not for this one.
package struct Broken: Error, CustomStringConvertible {
  package var description: String
}

/// - Throws: `Broken` where the condition does not hold.
func hold(_ condition: Bool, _ rule: @autoclosure () -> String) throws {
  guard condition else { throw Broken(description: rule()) }
}

extension [UInt8] {
  /// The lines up to the first `count` line ends, and what follows them.
  func lines(_ count: Int) -> (lines: [[UInt8]], rest: [UInt8]) {
    let parts = split(separator: 0x0a, maxSplits: count, omittingEmptySubsequences: false).map { Array($0) }
    guard parts.count > count else { return (parts, []) }
    return (Array<[UInt8]>(parts.dropLast()), parts[count])
  }
}
