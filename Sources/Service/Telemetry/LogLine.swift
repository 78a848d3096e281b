internal import APNs
internal import Delivery
internal import Wire

/// One line, ready to be written: JSON or text, never longer than a pipe takes in one piece.
struct LogLine {
  /// POSIX: a write to a pipe of up to `PIPE_BUF` bytes, 4,096 on Linux, is not mixed with others.
  static let longest = 4096

  var time: UnixTime
  var level: LogLevel
  var code: String
  var message: String
  var fields: [LogField]
  /// Lines of this kind that were left out since the last one.
  var suppressed: Int

  func bytes(as format: LogSettings.Format) -> [UInt8] {
    let line = rendered(as: format)
    if line.count <= Self.longest { return line }
    // The texts are bounded, so only a very long name of a file or topic leads here.
    var short = self
    short.fields = []
    short.message = String(message.prefix(500))
    return short.rendered(as: format)
  }

  private func rendered(as format: LogSettings.Format) -> [UInt8] {
    switch format {
    case .json, .auto: json()
    case .text: text()
    }
  }

  private func json() -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("time")
    writer.string(RFC3339.text(time))
    writer.key("level")
    writer.string(level.rawValue)
    writer.key("code")
    writer.string(code)
    writer.key("message")
    writer.string(message)
    for field in fields {
      writer.key(field.name)
      switch field.value {
      case .text(let text): writer.string(text)
      case .integer(let number): writer.integer(number)
      case .seconds(let text): writer.raw(text.utf8.span)
      }
    }
    if suppressed > 0 {
      writer.key("suppressed")
      writer.integer(suppressed)
    }
    writer.endObject()
    return writer.take() + [UInt8(ascii: "\n")]
  }

  /// For people: a control character in a value could draw on a terminal, so values are escaped as in JSON.
  private func text() -> [UInt8] {
    var bytes = Array("\(RFC3339.text(time)) \(Self.padded(level.rawValue.uppercased())) ".utf8)
    bytes.append(jsonEscaped: message.utf8.span)
    bytes.append(contentsOf: Array(" [\(code)]".utf8))
    for field in fields {
      bytes.append(contentsOf: Array(" \(field.name)=".utf8))
      switch field.value {
      case .text(let text) where text.contains(" ") || text.isEmpty:
        bytes.append(UInt8(ascii: "\""))
        bytes.append(jsonEscaped: text.utf8.span)
        bytes.append(UInt8(ascii: "\""))
      case .text(let text), .seconds(let text): bytes.append(jsonEscaped: text.utf8.span)
      case .integer(let number): bytes.append(decimal: number)
      }
    }
    if suppressed > 0 { bytes.append(contentsOf: Array(" suppressed=\(suppressed)".utf8)) }
    return bytes + [UInt8(ascii: "\n")]
  }

  private static func padded(_ word: String) -> String {
    word + String(repeating: " ", count: max(0, 7 - word.utf8.count))
  }
}

/// What a field writes.
enum LogValue: Equatable {
  case text(String)
  case integer(Int64)
  /// A decimal number of seconds.
  case seconds(String)
}

extension LogField {
  var value: LogValue {
    switch self {
    case .app(let text), .topic(let text), .host(let text), .file(let text), .setting(let text), .version(let text):
      .text(String(text.prefix(500)))
    case .partition(let number), .lane(let number), .item(let number): .integer(Int64(number))
    case .ending(let status): .text(status.rawValue)
    case .attempts(let number): .integer(Int64(number))
    case .trace(let trace): .text(trace.hexText)
    case .offset(let number): .integer(number)
    case .port(let number), .status(let number): .integer(Int64(number))
    case .count(let number): .integer(Int64(number))
    case .reason(let reason): .text(reason.text)
    case .token(let token): .text(token.description)
    case .requestID(let id):
      .text(
        {
          var bytes: [UInt8] = []
          bytes.append(uuid: id)
          return String(decoding: bytes, as: UTF8.self)
        }())
    case .duration(let duration): .seconds(TimeText.seconds(duration))
    case .validUntil(let time): .text(RFC3339.text(time))
    case .cause(let cause): .text(cause.description)
    }
  }
}

/// Spans as logs write them.
enum TimeText {
  /// Seconds with as many decimals as milliseconds need.
  static func seconds(_ duration: Duration) -> String {
    let milliseconds = duration.nanoseconds / 1_000_000
    var bytes: [UInt8] = milliseconds < 0 ? [UInt8(ascii: "-")] : []
    bytes.append(decimal: milliseconds.magnitude / 1000)
    bytes.append(UInt8(ascii: "."))
    DecimalText.append(UInt64(milliseconds.magnitude) % 1000, digits: 3, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }
}
