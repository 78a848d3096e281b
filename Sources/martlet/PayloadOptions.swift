import Service
import Wire

/// The options that spell out a payload (Apple, "Generating a remote notification"), and the JSON that they make.
///
/// Apple's types are kept: `badge`, `content-available`, `mutable-content` and `critical` are numbers. What `--custom`
/// and `--aps` bring goes into the payload byte for byte.
enum PayloadOptions {
  static let options: [Option] = [
    Option("alert", value: "TEXT", "The alert's text; beside a title and the like, its body."),
    Option("title", value: "TEXT", "The alert's title."),
    Option("subtitle", value: "TEXT", "The alert's subtitle."),
    Option("body", value: "TEXT", "The alert's body, always written as a member of an alert object."),
    Option("loc-key", value: "KEY", "The body by its key in the app's localised strings."),
    Option("loc-args", value: "TEXT", "What takes the place of a %@ in it.", isRepeated: true),
    Option("title-loc-key", value: "KEY", "The title by its key."),
    Option("title-loc-args", value: "TEXT", "What takes the place of a %@ in it.", isRepeated: true),
    Option("subtitle-loc-key", value: "KEY", "The subtitle by its key."),
    Option("subtitle-loc-args", value: "TEXT", "What takes the place of a %@ in it.", isRepeated: true),
    Option("action-loc-key", value: "KEY", "The title of the action button by its key."),
    Option("launch-image", value: "NAME", "The image or storyboard to launch with."),
    Option("badge", value: "N", "The number on the app's icon; 0 clears it."),
    Option("sound", value: "NAME", "A sound file of the app, or 'default'."),
    Option(flag: "critical", "A critical alert: its sound ignores the mute switch."),
    Option("volume", value: "N", "How loud a critical alert is, from 0 to 1."),
    Option("category", value: "NAME", "The category, which decides on the action buttons."),
    Option("thread-id", value: "NAME", "Groups notifications."),
    Option(flag: "content-available", "Wakes the app in the background."),
    Option(flag: "mutable-content", "Lets the app's service extension change it first."),
    Option("interruption-level", value: "LEVEL", "passive, active, time-sensitive or critical."),
    Option("relevance-score", value: "N", "For the order in the summary, from 0 to 1; any for a Live Activity."),
    Option("aps", value: "JSON", "An object of further members of aps, such as those of a Live Activity."),
    Option("custom", value: "JSON", "An object of the app's own members, which stand beside aps."),
  ]

  /// What iOS knows of how much a notification may disturb.
  private enum InterruptionLevel: String, CaseIterable {
    case passive, active
    case timeSensitive = "time-sensitive"
    case critical
  }

  private static let alertTexts = [
    "title", "subtitle", "loc-key", "title-loc-key", "subtitle-loc-key", "action-loc-key", "launch-image",
  ]
  private static let alertLists = ["loc-args", "title-loc-args", "subtitle-loc-args"]

  /// The options among these that were given, as written.
  static func given(in arguments: Arguments) -> [String] {
    options.filter { arguments.has($0.name) }.map { "--\($0.name)" }
  }

  /// Whether what is given can only be meant for the app in the background, where Apple wants the push type to say so.
  static func isBackground(_ arguments: Arguments) -> Bool {
    let visible = ["alert", "body", "badge", "sound", "critical"] + alertTexts
    return arguments.has("content-available") && !visible.contains(where: arguments.has)
  }

  /// The payload.
  ///
  /// - Parameter isLiveActivity: whose relevance has no bounds.
  /// - Throws: `UsageError` for a value that its option does not take, `InputError` for JSON that is none.
  static func payload(_ arguments: Arguments, isLiveActivity: Bool) throws -> [UInt8] {
    var aps = Members()
    try writeAlert(arguments, &aps)
    try writeBadge(arguments, &aps)
    try writeSound(arguments, &aps)
    for name in ["category", "thread-id"] {
      if let text = arguments.value(name) { aps.add(name) { $0.string(text) } }
    }
    for name in ["content-available", "mutable-content"] where arguments.has(name) { aps.add(name) { $0.integer(1) } }
    if arguments.has("interruption-level") {
      let level = try arguments.word("interruption-level", default: InterruptionLevel.active)
      aps.add("interruption-level") { $0.string(level.rawValue) }
    }
    if let score = try number("relevance-score", arguments, isBounded: !isLiveActivity) {
      aps.add("relevance-score") { $0.raw(score.utf8.span) }
    }
    for (key, value) in try members("aps", arguments) { try aps.add(key, value, from: "aps") }

    var payload = Members()
    if !aps.isEmpty { payload.add("aps") { $0.raw(aps.object().span) } }
    for (key, value) in try members("custom", arguments) {
      guard key != "aps" else {
        throw UsageError(message: "'--custom' must not have the member 'aps'; its members go into '--aps'")
      }
      try payload.add(key, value, from: "custom")
    }
    return payload.object()
  }

  // MARK: Parts

  private static func writeAlert(_ arguments: Arguments, _ aps: inout Members) throws(UsageError) {
    guard !(arguments.has("alert") && arguments.has("body")) else {
      throw UsageError(message: "'--alert' and '--body' both give the alert's text; use one of them")
    }
    for (list, key) in zip(alertLists, ["loc-key", "title-loc-key", "subtitle-loc-key"])
    where arguments.has(list) && !arguments.has(key) {
      throw UsageError(message: "'--\(list)' needs '--\(key)', whose text it goes into")
    }
    let isObject = arguments.has("body") || alertTexts.contains(where: arguments.has)
    guard isObject else {
      if let text = arguments.value("alert") { aps.add("alert") { $0.string(text) } }
      return
    }
    var alert = Members()
    if let text = arguments.value("alert") ?? arguments.value("body") { alert.add("body") { $0.string(text) } }
    for name in alertTexts {
      if let text = arguments.value(name) { alert.add(name) { $0.string(text) } }
    }
    for name in alertLists where arguments.has(name) {
      alert.add(name) { writer in
        writer.beginArray()
        for text in arguments.all(name) { writer.string(text) }
        writer.endArray()
      }
    }
    aps.add("alert") { $0.raw(alert.object().span) }
  }

  private static func writeBadge(_ arguments: Arguments, _ aps: inout Members) throws(UsageError) {
    guard arguments.has("badge") else { return }
    let badge = try arguments.integer("badge", in: 0...Int(Int32.max), default: 0)
    aps.add("badge") { $0.integer(badge) }
  }

  private static func writeSound(_ arguments: Arguments, _ aps: inout Members) throws(UsageError) {
    let volume = try number("volume", arguments, isBounded: true)
    guard arguments.has("critical") else {
      guard volume == nil else { throw UsageError(message: "'--volume' is for critical alerts; add '--critical'") }
      if let name = arguments.value("sound") { aps.add("sound") { $0.string(name) } }
      return
    }
    var sound = Members()
    sound.add("critical") { $0.integer(1) }
    sound.add("name") { $0.string(arguments.value("sound") ?? "default") }
    if let volume { sound.add("volume") { $0.raw(volume.utf8.span) } }
    aps.add("sound") { $0.raw(sound.object().span) }
  }

  /// A number as it was written, checked.
  private static func number(_ name: String, _ arguments: Arguments, isBounded: Bool) throws(UsageError) -> String? {
    guard let text = arguments.value(name) else { return nil }
    let document = try? JSONScanner.document(text.utf8.span)
    if case .number? = document, let number = Double(text), number.isFinite {
      if !isBounded || (0...1).contains(number) { return text }
    }
    throw UsageError(message: "'--\(name)' must be a number\(isBounded ? " from 0 to 1" : ""), not '\(text)'")
  }

  /// The members of the object that an option gives, in order; each value is the JSON that stands there.
  private static func members(_ name: String, _ arguments: Arguments) throws -> [(key: String, value: [UInt8])] {
    guard let text = arguments.value(name) else { return [] }
    let bytes = Array(text.utf8)
    var members: [(key: String, value: [UInt8])] = []
    do {
      var scanner = JSONScanner(bytes.span)
      guard try scanner.peekKind() == .object else {
        throw InputError(
          message: "--\(name): must be a JSON object, such as '{\"order\": 42}'; found '\(text.prefix(40))'")
      }
      try scanner.beginObject()
      while let key = try scanner.nextKey() {
        let start = scanner.offset
        try scanner.value()
        members.append((try JSONText.text(of: key, in: bytes.span), trimmed(bytes[start..<scanner.offset])))
      }
      try scanner.endDocument()
    } catch let error as JSONError {
      throw InputError(message: "--\(name): is not JSON, \(error): '\(text.prefix(40))'")
    }
    return members
  }

  private static func trimmed(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    Array(bytes.drop { [0x20, 0x09, 0x0a, 0x0d].contains($0) })
  }
}

/// The members of a JSON object that is being put together, each of which may come only once.
private struct Members {
  private var writer = JSONWriter()
  private var keys: Set<String> = []

  init() { writer.beginObject() }

  var isEmpty: Bool { keys.isEmpty }

  mutating func add(_ key: String, _ value: (inout JSONWriter) -> Void) {
    keys.insert(key)
    writer.key(key)
    value(&writer)
  }

  /// - Parameters:
  ///   - value: JSON that has been checked.
  ///   - option: what brought it, for the message.
  mutating func add(_ key: String, _ value: [UInt8], from option: String) throws(UsageError) {
    guard !keys.contains(key) else {
      throw UsageError(message: "'--\(option)' has the member '\(key)', which is there already")
    }
    add(key) { $0.raw(value.span) }
  }

  consuming func object() -> [UInt8] {
    writer.endObject()
    return writer.take()
  }
}
