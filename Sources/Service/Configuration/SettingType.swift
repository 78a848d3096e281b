internal import Wire

/// The kind of value that a setting takes: how it is read, what is allowed, and how it is written.
package struct SettingType<Value: Sendable>: Sendable {
  /// For the reference: `integer`, `duration`, `file`.
  package var name: String
  /// The bounds, for the reference and for problems.
  package var allowed: String
  /// Reads a value or notes the problem and gives `nil`.
  var parse: @Sendable (ConfigurationValue, _ path: String, inout ReadingContext) -> Value?
  /// The value as it would stand in a file.
  var text: @Sendable (Value) -> String
}

extension SettingType where Value == String {
  /// A text with a rule that tells what is wrong with it, if anything is.
  static func text(
    _ allowed: String = "a text that is not empty", name: String = "text",
    rule: @escaping @Sendable (String) -> Bool = { !$0.isEmpty }
  ) -> Self {
    Self(name: name, allowed: allowed) { value, path, context in
      guard case .string(let text) = value.content else {
        context.mismatch("wrong type", value, at: path, allowed: allowed)
        return nil
      }
      guard rule(text) else {
        context.mismatch("not allowed", value, at: path, allowed: allowed)
        return nil
      }
      return text
    } text: {
      "\"\($0)\""
    }
  }

  /// A file that must exist and be readable. Relative paths start from the directory of the configuration file.
  static let file = file(ofApp: false)
  /// The same of an app. The service does without an app whose file cannot be read.
  static let appFile = file(ofApp: true)

  private static func file(ofApp: Bool) -> Self {
    Self(name: "file", allowed: "the path of a readable file") { value, path, context in
      guard case .string(let text) = value.content, !text.isEmpty else {
        context.mismatch("wrong type", value, at: path, allowed: "the path of a readable file")
        return nil
      }
      // Somebody who puts the secret itself here must not find it in a log.
      let isText = text.contains("\n") || text.contains("-----")
      let resolved = FileProbe.resolve(text, from: context.source.directory)
      if !isText { context.namedFiles.append(resolved) }
      if let fault = isText ? "a text, not a path" : FileProbe.faultOfReading(file: resolved) {
        let isShown = !isText && !value.fromEnvironment && (text.contains("/") || text.contains("."))
        let isTolerated = ofApp && !isText && context.toleratesUnreadableApps
        context.report(
          fault, at: path, offset: value.offset, found: isShown ? value.summary : nil,
          allowed: "the path of a readable file", severity: isTolerated ? .warning : .error)
        return isTolerated ? resolved : nil
      }
      return resolved
    } text: {
      "\"\($0)\""
    }
  }
}

extension SettingType where Value == Int {
  static func integer(_ range: ClosedRange<Int>) -> Self {
    let allowed = "\(range.lowerBound) to \(range.upperBound)"
    return Self(name: "integer", allowed: allowed) { value, path, context in
      guard case .integer(let number) = value.content else {
        context.mismatch("wrong type", value, at: path, allowed: "an integer, \(allowed)")
        return nil
      }
      guard let value = Int(exactly: number), range.contains(value) else {
        context.mismatch("out of range", value, at: path, allowed: allowed)
        return nil
      }
      return value
    } text: {
      String($0)
    }
  }

  /// A size in bytes: a number, or a text with a unit.
  static func size(_ range: ClosedRange<Int>) -> Self {
    let allowed = "\(Quantity.text(bytes: range.lowerBound)) to \(Quantity.text(bytes: range.upperBound))"
    return Self(name: "size", allowed: allowed) { value, path, context in
      let bytes: Int? =
        switch value.content {
        case .integer(let number): Int(exactly: number)
        case .string(let text): Quantity.size(text)
        default: nil
        }
      guard let bytes else {
        context.mismatch("no size", value, at: path, allowed: "bytes, or a text such as \"32MiB\"; \(allowed)")
        return nil
      }
      guard range.contains(bytes) else {
        context.mismatch("out of range", value, at: path, allowed: allowed)
        return nil
      }
      return bytes
    } text: {
      "\"\(Quantity.text(bytes: $0))\""
    }
  }
}

extension SettingType where Value == Bool {
  static let flag = Self(name: "boolean", allowed: "true, false") { value, path, context in
    guard case .bool(let flag) = value.content else {
      context.mismatch("wrong type", value, at: path, allowed: "true, false")
      return nil
    }
    return flag
  } text: {
    $0 ? "true" : "false"
  }
}

extension SettingType where Value == Duration {
  static func duration(_ range: ClosedRange<Duration>) -> Self {
    let allowed = "\"\(Quantity.text(range.lowerBound))\" to \"\(Quantity.text(range.upperBound))\""
    return Self(name: "duration", allowed: allowed) { value, path, context in
      guard case .string(let text) = value.content, let duration = Quantity.duration(text) else {
        context.mismatch(
          "no duration", value, at: path, allowed: "a number with a unit (ms, s, m, h, d), \(allowed)")
        return nil
      }
      guard range.contains(duration) else {
        context.mismatch("out of range", value, at: path, allowed: allowed)
        return nil
      }
      return duration
    } text: {
      "\"\(Quantity.text($0))\""
    }
  }
}

extension SettingType where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
  /// One word of a closed set.
  static func word() -> Self {
    let words = Value.allCases.map(\.rawValue)
    let allowed = words.joined(separator: ", ")
    return Self(name: "word", allowed: allowed) { value, path, context in
      guard case .string(let text) = value.content else {
        context.mismatch("wrong type", value, at: path, allowed: allowed)
        return nil
      }
      guard let word = Value(rawValue: text) else {
        let shown = value.fromEnvironment ? nil : NearestName.find(text, in: words)
        context.report(
          "unknown word", at: path, offset: value.offset, found: value.summary, allowed: allowed, nearest: shown)
        return nil
      }
      return word
    } text: {
      "\"\($0.rawValue)\""
    }
  }
}

extension SettingType where Value == ListenAddress {
  static let listenAddress = Self(name: "address", allowed: "host:port, [IPv6]:port; port 0 to 65535; unix:/path") {
    value, path, context in
    let allowed = "host:port, [IPv6]:port; port 0 to 65535; unix:/path"
    guard case .string(let text) = value.content, let address = ListenAddress(text) else {
      context.mismatch("no address", value, at: path, allowed: allowed)
      return nil
    }
    return address
  } text: {
    "\"\($0.text)\""
  }
}

extension SettingType {
  /// A list of one or more, or a single value in place of a list of one.
  static func list<Element: Sendable>(of type: SettingType<Element>, atMost limit: Int) -> Self
  where Value == [Element] {
    let allowed = "1 to \(limit), each \(type.allowed)"
    return Self(name: "list of \(type.name)", allowed: allowed) { value, path, context in
      guard case .list(let items) = value.content else {
        return type.parse(value, path, &context).map { [$0] }
      }
      guard (1...limit).contains(items.count) else {
        context.mismatch("out of range", value, at: path, allowed: allowed)
        return nil
      }
      let read = items.enumerated().map { type.parse($1, "\(path)[\($0)]", &context) }
      return read.contains { $0 == nil } ? nil : read.compactMap { $0 }
    } text: {
      "[\($0.map(type.text).joined(separator: ", "))]"
    }
  }
}
