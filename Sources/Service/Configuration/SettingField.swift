/// What the reference says of one setting.
package struct SettingDescription: Sendable, Equatable {
  package var path: String
  package var type: String
  package var allowed: String
  /// The default as it would stand in a file; `nil`: none.
  package var fallback: String?
  package var isRequired: Bool
  package var help: String
}

/// One setting of a group: its name, kind, bounds and words are said here and nowhere else.
///
/// Reading, the defaults, the list of known keys and the reference all come from it.
struct SettingField<Root: Sendable>: Sendable {
  var name: String
  var isRequired: Bool
  /// Whether it is an object of settings; what is missing is then told of these.
  var isGroup = false
  /// Reads the value into the root, or notes problems.
  var read: @Sendable (ConfigurationValue, _ path: String, inout Root, inout ReadingContext) -> Void
  /// Describes it, and what lies below it.
  var describe: @Sendable (_ path: String, _ defaults: Root) -> [SettingDescription]

  static func value<Value: Sendable>(
    _ name: String, _ place: any WritableKeyPath<Root, Value> & Sendable, _ type: SettingType<Value>,
    isRequired: Bool = false, _ help: String
  ) -> Self {
    Self(name: name, isRequired: isRequired) { value, path, root, context in
      if let read = type.parse(value, path, &context) { root[keyPath: place] = read }
    } describe: { path, defaults in
      [
        SettingDescription(
          path: path, type: type.name, allowed: type.allowed,
          fallback: isRequired ? nil : type.text(defaults[keyPath: place]), isRequired: isRequired, help: help)
      ]
    }
  }

  /// A setting that may be absent.
  static func optional<Value: Sendable>(
    _ name: String, _ place: any WritableKeyPath<Root, Value?> & Sendable, _ type: SettingType<Value>, _ help: String
  ) -> Self {
    Self(name: name, isRequired: false) { value, path, root, context in
      guard value.content != .null else { return }
      if let read = type.parse(value, path, &context) { root[keyPath: place] = read }
    } describe: { path, _ in
      [
        SettingDescription(
          path: path, type: type.name, allowed: type.allowed, fallback: nil, isRequired: false, help: help)
      ]
    }
  }

  static func group<Inner: Sendable>(
    _ name: String, _ place: any WritableKeyPath<Root, Inner> & Sendable, _ group: SettingGroup<Inner>
  ) -> Self {
    Self(name: name, isRequired: false, isGroup: true) { value, path, root, context in
      group.read(value, at: path, into: &root[keyPath: place], &context)
    } describe: { path, defaults in
      group.describe(under: path, defaults: defaults[keyPath: place])
    }
  }

  /// A group that may be absent; where it stands, it starts from the group's own defaults.
  static func optionalGroup<Inner: Sendable>(
    _ name: String, _ place: any WritableKeyPath<Root, Inner?> & Sendable, _ group: SettingGroup<Inner>
  ) -> Self {
    Self(name: name, isRequired: false) { value, path, root, context in
      guard value.content != .null else { return }
      var inner = group.defaults
      group.read(value, at: path, into: &inner, &context)
      root[keyPath: place] = inner
    } describe: { path, _ in
      group.describe(under: path, defaults: group.defaults)
    }
  }
}

/// The settings that stand in one object.
struct SettingGroup<Root: Sendable>: Sendable {
  var defaults: Root
  var fields: [SettingField<Root>]
  /// Keys that people reach for and that are refused, each with the way that works.
  var refused: [String: String] = [:]
  /// Rules over several settings, checked once the object has been read.
  var check: @Sendable (Root, ConfigurationValue, _ path: String, inout ReadingContext) -> Void = { _, _, _, _ in }

  /// Reads an object; every problem in it is noted, and what can be read is.
  func read(_ value: ConfigurationValue, at path: String, into root: inout Root, _ context: inout ReadingContext) {
    guard case .object(let members) = value.content else {
      context.mismatch("wrong type", value, at: path, allowed: "an object")
      return
    }
    for member in members {
      let memberPath = SettingPath.join(path, member.key)
      if let field = fields.first(where: { $0.name == member.key }) {
        field.read(member.value, memberPath, &root, &context)
      } else if let hint = refused[member.key] {
        context.report(hint, at: memberPath, offset: member.keyOffset)
      } else {
        let known = fields.map(\.name)
        context.report(
          "unknown key", at: memberPath, offset: member.keyOffset,
          nearest: NearestName.find(member.key, in: known) ?? SettingsReference.path(ofKey: member.key))
      }
    }
    for field in fields where field.isRequired && !members.contains(where: { $0.key == field.name }) {
      let fieldPath = SettingPath.join(path, field.name)
      if field.isGroup {
        field.read(ConfigurationValue(.object([]), offset: value.offset), fieldPath, &root, &context)
      } else {
        context.report("missing, and it has no default", at: fieldPath, offset: value.offset)
      }
    }
    check(root, value, path, &context)
  }

  func describe(under path: String, defaults: Root) -> [SettingDescription] {
    fields.flatMap { $0.describe(SettingPath.join(path, $0.name), defaults) }
  }
}

enum SettingPath {
  /// `kafka` and `brokers` give `kafka.brokers`; a key that is no plain word is put in quotes.
  static func join(_ path: String, _ key: String) -> String {
    let plain = !key.isEmpty && key.utf8.allSatisfy { (SettingType<String>.isNameByte($0) && $0 != 0x2E) || $0 >= 0x80 }
    let key = plain || key == "<name>" ? key : "\"\(key.prefix(80))\""
    return path.isEmpty ? key : "\(path).\(key)"
  }
}
