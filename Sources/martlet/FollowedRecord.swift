import Wire

/// A topic that can be followed: the fields of its records.
struct FollowedKind: Sendable {
  /// As an export names its columns; those of `source` have a prefix.
  var columns: [String]
  /// Where the fields stand that every kind has.
  var app: Int
  var reason: Int
  /// `nil`: there is none.
  var status: Int?

  /// Where a column is; the tables are made here, so it is.
  func column(_ name: String) -> Int { columns.firstIndex(of: name) ?? 0 }

  /// A field of a Protobuf message.
  enum Field: Sendable {
    case text(String)
    /// Left out where it is not known.
    case number(String)
    /// Left out where it is 0.
    case count(String)
    case flag(String)
    case source

    var name: String {
      switch self {
      case .text(let name), .number(let name), .count(let name), .flag(let name): name
      case .source: "source"
      }
    }
  }

  /// By their number in `schemas/martlet.proto`.
  var fields: [UInt32: Field]

  static let sourceFields: [UInt32: Field] = [
    1: .text("topic"), 2: .count("partition"), 3: .count("offset"), 4: .count("index"),
  ]

  static let results = FollowedKind(
    [
      .text("id"), .text("app"), .text("token"), .text("channel"), .text("status"), .number("http_status"),
      .text("reason"), .text("message"), .text("apns_id"), .text("apns_unique_id"), .text("topic"),
      .text("environment"), .text("push_type"), .count("attempts"), .count("requested_at"), .count("completed_at"),
    ])

  static let invalidTokens = FollowedKind(
    [
      .text("token"), .text("app"), .text("topic"), .text("environment"), .text("reason"), .flag("suspect"),
      .number("unregistered_at"), .count("requested_at"), .count("detected_at"), .text("id"),
    ])

  /// - Parameter fields: in the order of their numbers, from 1; the source follows them.
  private init(_ fields: [Field]) {
    let all = fields + [.source]
    self.fields = Dictionary(uniqueKeysWithValues: all.enumerated().map { (UInt32($0.offset) + 1, $0.element) })
    columns = fields.map(\.name) + ["topic", "partition", "offset", "index"].map { "source.\($0)" }
    app = columns.firstIndex(of: "app") ?? 0
    reason = columns.firstIndex(of: "reason") ?? 0
    status = columns.firstIndex(of: "status")
  }
}

/// A record's fields, by the columns of its kind; a field that the kind does not know is left where it stands.
struct FollowedRecord {
  let bytes: Bytes
  private var values: [JSONValue?]

  /// - Throws: `JSONError` when the record is no JSON object.
  init(_ bytes: Bytes, as kind: FollowedKind) throws(JSONError) {
    self.bytes = bytes
    values = Array(repeating: nil, count: kind.columns.count)
    var scanner = JSONScanner(bytes.span)
    try scanner.beginObject()
    while let key = try scanner.nextKey() {
      if scanner.matches(key, "source"), try scanner.peekKind() == .object {
        try scanner.beginObject()
        while let inner = try scanner.nextKey() { try take(inner, of: kind, prefix: "source.", &scanner) }
      } else {
        try take(key, of: kind, prefix: "", &scanner)
      }
    }
    try scanner.endDocument()
  }

  private mutating func take(
    _ key: JSONString, of kind: FollowedKind, prefix: String, _ scanner: inout JSONScanner
  ) throws(JSONError) {
    let column = kind.columns.firstIndex { name in
      name.hasPrefix(prefix) && scanner.matches(key, String(name.dropFirst(prefix.utf8.count)))
    }
    let value = try scanner.value()
    if let column { values[column] = value }
  }

  /// A field as text; `nil` where it is absent or null. Objects and arrays stand as they are.
  func text(_ column: Int) -> String? {
    switch values[column] {
    case .string(let string)?:
      return (try? JSONText.text(of: string, in: bytes.span)) ?? "\u{FFFD}"
    case .number(let range, _)?, .object(let range)?, .array(let range)?:
      return String(copying: bytes.span.extracting(range.indices))
    case .true?: return "true"
    case .false?: return "false"
    case .null?, nil: return nil
    }
  }

  /// A time in milliseconds.
  func time(_ column: Int) -> UnixTime? { text(column).flatMap(Int64.init).map { UnixTime(milliseconds: $0) } }
}

extension String {
  fileprivate init(copying span: Span<UInt8>) {
    self = String(decoding: (0..<span.count).map { span[$0] }, as: UTF8.self)
  }
}

/// Which records are shown; an empty list lets all through.
struct FollowFilter: Sendable {
  var apps: [String] = []
  var statuses: [String] = []
  var reasons: [String] = []

  var isEmpty: Bool { apps.isEmpty && statuses.isEmpty && reasons.isEmpty }

  func admits(_ record: FollowedRecord, of kind: FollowedKind) -> Bool {
    func admits(_ list: [String], _ column: Int?) -> Bool {
      guard !list.isEmpty, let column else { return true }
      return record.text(column).map(list.contains) ?? false
    }
    return admits(apps, kind.app) && admits(statuses, kind.status) && admits(reasons, kind.reason)
  }
}
