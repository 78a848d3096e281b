import CRdKafka
import Glibc

/// librdkafka itself: its version and what it was built with.
package enum KafkaLibrary {
  /// The version of the library that is loaded, as `2.0.2`.
  package static let version = unsafe String(cString: rd_kafka_version_str())
  /// The same as the library counts: a byte each for major, minor and patch, and one that is 255 for releases.
  static let versionNumber = rd_kafka_version()

  /// Whose setting a property is.
  enum Side: Hashable, Sendable {
    case both, consumer, producer
  }

  /// Which properties are for the consumer alone or for the producer alone.
  ///
  /// The library logs a warning for each property that is set on the wrong kind of client, and has no call that tells
  /// the kind. It can print its own reference table, though, so that is read: the routing is always that of the
  /// library that is loaded.
  static let sides: [String: Side] = parseSides(referenceTable())

  /// The names of all properties that the loaded version knows.
  package static let propertyNames: Set<String> = Set(sides.keys)

  /// What the library was built with: `ssl`, `sasl_scram`, `zstd` …
  static let features: Set<String> = {
    guard let conf = unsafe rd_kafka_conf_new() else { return [] }
    defer { unsafe rd_kafka_conf_destroy(conf) }
    var size = 1024
    let text = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) { buffer -> String in
      guard
        unsafe rd_kafka_conf_get(conf, "builtin.features", buffer.baseAddress, &size) == RD_KAFKA_CONF_OK,
        let base = buffer.baseAddress
      else { return "" }
      return unsafe String(cString: base)
    }
    return Set(text.split(whereSeparator: { $0 == "," || $0 == " " }).map(String.init))
  }()

  /// The table of all properties, in Markdown, as the library prints it.
  private static func referenceTable() -> String {
    var text: UnsafeMutablePointer<CChar>?
    var size = 0
    guard let file = unsafe open_memstream(&text, &size) else { return "" }
    unsafe rd_kafka_conf_properties_show(file)
    unsafe fclose(file)
    guard let text = unsafe text else { return "" }
    defer { unsafe free(text) }
    return unsafe String(decoding: UnsafeRawBufferPointer(start: text, count: size), as: UTF8.self)
  }

  /// Reads the first two columns. A name that stands there twice (globally and per topic) keeps its first side.
  static func parseSides(_ table: String) -> [String: Side] {
    var sides: [String: Side] = [:]
    for line in table.split(separator: "\n") {
      let columns = line.split(separator: "|", maxSplits: 2, omittingEmptySubsequences: false)
      guard columns.count == 3 else { continue }
      let name = trimmed(columns[0])
      let side: Side
      switch trimmed(columns[1]) {
      case "*": side = .both
      case "C": side = .consumer
      case "P": side = .producer
      default: continue
      }
      if sides[name] == nil { sides[name] = side }
    }
    return sides
  }

  private static func trimmed(_ text: Substring) -> String {
    String(text.drop(while: { $0 == " " }).reversed().drop(while: { $0 == " " }).reversed())
  }
}
