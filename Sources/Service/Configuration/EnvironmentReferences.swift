/// Puts environment variables in place of `${NAME}` inside string values; `$${` stands for `${` itself.
///
/// Keys are left alone. A variable that is missing is a problem, and the value that needs it is read by nobody.
struct EnvironmentReferences {
  /// The value of a variable; `nil` where it is not set.
  var lookUp: (String) -> String?

  func replaced(in value: ConfigurationValue, at path: String, _ context: inout ReadingContext) -> ConfigurationValue {
    var value = value
    switch value.content {
    case .string(let text) where text.contains("${"):
      guard let (text, usedVariable) = expand(text, offset: value.offset, path, &context) else {
        value.content = .unresolved
        return value
      }
      value.content = .string(text)
      value.fromEnvironment = usedVariable
    case .list(let items):
      value.content = .list(items.enumerated().map { replaced(in: $1, at: "\(path)[\($0)]", &context) })
    case .object(let members):
      value.content = .object(
        members.map { member in
          var member = member
          member.value = replaced(in: member.value, at: SettingPath.join(path, member.key), &context)
          return member
        })
    default: break
    }
    return value
  }

  private func expand(
    _ text: String, offset: Int?, _ path: String, _ context: inout ReadingContext
  ) -> (text: String, usedVariable: Bool)? {
    var result = ""
    var usedVariable = false
    var rest = text[...]
    var complete = true
    while let dollar = rest.firstIndex(of: "$") {
      result += rest[..<dollar]
      rest = rest[dollar...]
      if rest.hasPrefix("$${") {
        result += "${"
        rest = rest.dropFirst(3)
      } else if rest.hasPrefix("${") {
        let name = rest.dropFirst(2).prefix { $0 != "}" }
        guard name.endIndex < rest.endIndex, Self.isName(name) else {
          context.report(
            "this reference to the environment is not complete", at: path, offset: offset,
            allowed: "${NAME}, or $${ for ${ itself")
          return nil
        }
        rest = rest[rest.index(after: name.endIndex)...]
        usedVariable = true
        if let value = lookUp(String(name)) {
          result += value
        } else {
          complete = false
          context.report(
            "the environment variable \(name) is not set", at: path, offset: offset,
            allowed: "the name of one that is set, or $${ for ${ itself")
        }
      } else {
        result += "$"
        rest = rest.dropFirst()
      }
    }
    return complete ? (result + rest, usedVariable) : nil
  }

  private static func isName(_ name: Substring) -> Bool {
    guard let first = name.utf8.first, !(0x30...0x39).contains(first) else { return false }
    return name.utf8.allSatisfy { SettingType<String>.isNameByte($0) && $0 != 0x2D && $0 != 0x2E }
  }
}
