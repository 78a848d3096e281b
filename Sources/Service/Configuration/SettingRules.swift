internal import APNs
internal import Kafka

/// The kinds of text that have rules of their own.
extension SettingType where Value == String {
  /// Kafka's rule for topic names.
  static let topic = text("a topic name: 1 to 249 of a-z A-Z 0-9 . _ -", name: "topic") { name in
    (1...249).contains(name.utf8.count) && name != "." && name != ".." && name.utf8.allSatisfy(isNameByte)
  }

  static let broker = text("host:port (9092 if left out), or a list of them with commas", name: "address") { list in
    list.split(separator: ",", omittingEmptySubsequences: false).allSatisfy { broker in
      let broker = broker.drop { $0 == " " }
      guard !broker.isEmpty, !broker.contains(" ") else { return false }
      guard let colon = broker.lastIndex(of: ":"), !broker.hasSuffix("]") else { return true }
      return UInt16(broker[broker.index(after: colon)...]).map { $0 > 0 } ?? false
    }
  }

  static let host = text("a host name or an address, without a port", name: "host") { host in
    !host.isEmpty && !host.contains("/") && !host.contains(" ")
      && (!host.contains(":") || host.count { $0 == ":" } > 1)
  }

  static let uriReference = text("a URI reference: printable ASCII without blanks and quotes", name: "URI") { text in
    (1...255).contains(text.utf8.count)
      && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !"\"<>\\^`{|}".utf8.contains($0) }
  }

  static let bundleID = text("letters, digits, dots, hyphens and underscores", name: "bundle id") { id in
    (1...255).contains(id.utf8.count) && id.utf8.allSatisfy(isNameByte)
  }

  static let topicSuffix = text("a dot and letters, digits, dots, hyphens, or nothing", name: "suffix") { suffix in
    suffix.isEmpty || (suffix.utf8.count <= 100 && suffix.hasPrefix(".") && suffix.utf8.allSatisfy(isNameByte))
  }

  /// Apple's ids of keys and teams. Others than 10 capitals and digits are odd, but Apple promises no form.
  static let appleID = Self(name: "Apple id", allowed: "10 capital letters and digits") { value, path, context in
    let allowed = "10 capital letters and digits"
    guard case .string(let text) = value.content, !text.isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      context.mismatch("not allowed", value, at: path, allowed: allowed)
      return nil
    }
    let isUsual =
      text.utf8.count == 10 && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
    if !isUsual {
      context.report(
        "unusual form", at: path, offset: value.offset, found: value.summary, allowed: allowed, severity: .warning)
    }
    return text
  } text: {
    "\"\($0)\""
  }

  static func isNameByte(_ byte: UInt8) -> Bool {
    (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte) || [0x2D, 0x2E, 0x5F].contains(byte)
  }
}

extension SettingType where Value == [PushTypeSettings] {
  /// An object with one push type under each name.
  static let pushTypes = Self(name: "object", allowed: "names of push types, each with { topicSuffix: \"…\" }") {
    value, path, context in
    guard case .object(let members) = value.content else {
      context.mismatch("wrong type", value, at: path, allowed: "an object of push types")
      return nil
    }
    return members.map { member in
      let memberPath = SettingPath.join(path, member.key)
      if PushType(member.key) != .other {
        let isKnown = PushType(member.key) != nil
        context.report(
          isKnown ? "this version knows the push type itself" : "not allowed as the name of a push type",
          at: memberPath, offset: member.keyOffset, found: "\"\(member.key.prefix(60))\"",
          allowed: "lower-case letters, digits and hyphens, at most \(PushType.longestName), and no known push type")
      }
      var type = PushTypeSettings()
      type.name = member.key
      PushTypeSettings.group.read(member.value, at: memberPath, into: &type, &context)
      return type
    }
  } text: {
    $0.isEmpty ? "{}" : "{…}"
  }
}

extension SettingType where Value == [KafkaProperty] {
  /// An object of librdkafka's properties.
  static let kafkaProperties = Self(name: "object", allowed: "librdkafka properties and their values") {
    value, path, context in
    guard case .object(let members) = value.content else {
      context.mismatch("wrong type", value, at: path, allowed: "an object of librdkafka properties")
      return nil
    }
    return members.compactMap { KafkaPropertyReader.read($0, at: SettingPath.join(path, $0.key), &context) }
  } text: {
    $0.isEmpty ? "{}" : "{…}"
  }
}

enum KafkaPropertyReader {
  /// The settings to use in place of properties that the service sets itself.
  private static let settings: [String: String] = ["group.instance.id": "it is the setting kafka.groupInstanceId"]

  /// Whether a property holds a secret, as far as its name tells.
  static func isSecret(_ name: String) -> Bool {
    name.hasSuffix("password") || name.hasSuffix("secret") || name.hasSuffix(".key.pem")
      || name == "sasl.oauthbearer.config"
  }

  static func read(_ member: ConfigurationMember, at path: String, _ context: inout ReadingContext) -> KafkaProperty? {
    if let reason = settings[member.key] ?? KafkaDefaults.owned[member.key] {
      context.report("cannot be set: \(reason)", at: path, offset: member.keyOffset)
      return nil
    }
    guard KafkaLibrary.propertyNames.contains(member.key) else {
      context.report(
        "librdkafka \(KafkaLibrary.version) does not know this property", at: path, offset: member.keyOffset,
        nearest: NearestName.find(member.key, in: KafkaLibrary.propertyNames.sorted()))
      return nil
    }
    let text: String
    switch member.value.content {
    case .string(let value): text = value
    case .integer(let value): text = String(value)
    case .number(let value) where value.isFinite: text = "\(value)"
    case .bool(let value): text = value ? "true" : "false"
    case .object: return file(member, at: path, &context)
    default:
      context.mismatch("wrong type", member.value, at: path, allowed: "a text, a number, true, false or { file: … }")
      return nil
    }
    if isSecret(member.key) {
      guard member.value.fromEnvironment else {
        context.report(
          "a secret must not stand in the configuration", at: path, offset: member.value.offset,
          allowed: "{ file: \"…\" }, or \"${NAME}\" from the environment")
        return nil
      }
    } else if let fault = fault(of: member.key, text) {
      // librdkafka's words quote the value.
      let words = member.value.fromEnvironment ? "librdkafka refuses this value" : fault
      context.report(words, at: path, offset: member.value.offset, found: member.value.summary)
      return nil
    }
    if isPath(member.key), !text.isEmpty, text != "probe" { return location(text, member, at: path, &context) }
    return KafkaProperty(name: member.key, value: .text(text))
  }

  /// Whether a property is the place of a file; "probe", for authorities, is none.
  private static func isPath(_ name: String) -> Bool { name.hasPrefix("ssl.") && name.hasSuffix(".location") }

  /// A file that librdkafka reads; authorities may also be a directory.
  private static func location(
    _ text: String, _ member: ConfigurationMember, at path: String, _ context: inout ReadingContext
  ) -> KafkaProperty? {
    let directory = FileProbe.resolve(text, from: context.source.directory)
    if member.key == "ssl.ca.location", FileProbe.isDirectory(directory) {
      context.namedFiles.append(directory)
      return KafkaProperty(name: member.key, value: .path(directory))
    }
    let file = SettingType<String>.file.parse(member.value, path, &context)
    return file.map { KafkaProperty(name: member.key, value: .path($0)) }
  }

  /// What librdkafka has against a value, in its own words.
  private static func fault(of name: String, _ value: String) -> String? {
    do {
      // The broker is not looked at.
      var properties = try KafkaProperties(brokers: "localhost")
      try properties.set(name, to: value)
      return nil
    } catch {
      return error.text
    }
  }

  private static func file(
    _ member: ConfigurationMember, at path: String, _ context: inout ReadingContext
  ) -> KafkaProperty? {
    guard case .object(let parts) = member.value.content, parts.count == 1, parts[0].key == "file" else {
      context.mismatch("wrong type", member.value, at: path, allowed: "{ file: \"…\" } and nothing else")
      return nil
    }
    let file = SettingType<String>.file.parse(parts[0].value, SettingPath.join(path, "file"), &context)
    return file.map { KafkaProperty(name: member.key, value: .file($0)) }
  }
}
