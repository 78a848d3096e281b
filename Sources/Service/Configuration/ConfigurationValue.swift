/// One value of a configuration file, with the place it was read from.
package struct ConfigurationValue: Sendable, Equatable {
  /// What JSON5 can express, and a place that was left empty.
  package enum Content: Sendable, Equatable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case list([ConfigurationValue])
    case object([ConfigurationMember])
    /// A string whose environment variable is missing: reported once, and read by nobody.
    case unresolved
  }

  package var content: Content
  /// Its first byte in the file; `nil` where that is not known.
  package var offset: Int?
  /// Whether a part of the text came from an environment variable. Such a text is never shown: it may be a secret.
  package var fromEnvironment: Bool

  package init(_ content: Content, offset: Int? = nil, fromEnvironment: Bool = false) {
    self.content = content
    self.offset = offset
    self.fromEnvironment = fromEnvironment
  }

  /// A member of an object; `nil` where there is none, or where this is no object.
  package func member(_ key: String) -> ConfigurationMember? {
    guard case .object(let members) = content else { return nil }
    return members.first { $0.key == key }
  }

  /// What was found, for people: the kind and, where it is short and surely no secret, the value.
  package var summary: String {
    switch content {
    case .null: "null"
    case .bool(let value): value ? "true" : "false"
    case .integer(let value): String(value)
    case .number(let value): "\(value)"
    case .string where fromEnvironment: "a string from the environment"
    case .string(let text): "\"\(text.prefix(80))\(text.count > 80 ? "…" : "")\""
    case .list(let items): "a list of \(items.count)"
    case .object: "an object"
    case .unresolved: "a string with a missing environment variable"
    }
  }
}

/// A key of an object and its value.
package struct ConfigurationMember: Sendable, Equatable {
  package var key: String
  package var keyOffset: Int?
  package var value: ConfigurationValue
}

/// Which file a value comes from, and how its bytes fall into lines.
package struct ConfigurationSource: Sendable {
  /// The path as it was given.
  package var file: String
  /// The byte offset of each line's start.
  var lineStarts: [Int]

  package init(file: String, text: [UInt8]) {
    self.file = file
    self.lineStarts = [0]
    for (index, byte) in text.enumerated() where byte == UInt8(ascii: "\n") { lineStarts.append(index + 1) }
  }

  /// The line and the column (in bytes), both counted from 1, of a byte offset.
  package func position(of offset: Int) -> (line: Int, column: Int) {
    var low = 0
    var high = lineStarts.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if lineStarts[middle] <= offset { low = middle } else { high = middle }
    }
    return (low + 1, offset - lineStarts[low] + 1)
  }

  /// The directory that relative paths in this file start from: the file's own.
  package var directory: String {
    guard let slash = file.lastIndex(of: "/") else { return "." }
    return slash == file.startIndex ? "/" : String(file[..<slash])
  }
}
