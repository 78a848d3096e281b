/// The reference of all settings, made from the tables that the loader follows.
package enum SettingsReference {
  /// Every setting, in the order of the tables.
  package static let all: [SettingDescription] = SettingsLoader.group.describe(
    under: "", defaults: SettingsLoader.group.defaults)

  /// The full path of a setting with this key, where somebody put the key in the wrong object.
  static func path(ofKey key: String) -> String? {
    all.first { $0.path.hasSuffix(".\(key)") }?.path
  }

  /// One table for each object, in Markdown.
  package static func markdown() -> String {
    var text = """
      # Settings

      One JSON5 file: comments and trailing commas are allowed. `${NAME}` inside a text is replaced by the environment
      variable; write `$${` for a literal `${`. Durations are texts such as `"250ms"`, `"30s"`, `"5m"`, `"1h"`; sizes are
      bytes or texts such as `"32MiB"`. Relative paths start from the directory of the file that they stand in.

      What changes under `apps` and in `log.level`, and the files that apps name, take effect in the running service. All
      else is read at the start; where it has changed, the log says `restart_needed`.

      """
    for section in sections() {
      text += "\n## \(section.name.isEmpty ? "Top level" : "`\(section.name)`")\n\n"
      text += "| setting | type | default | allowed | meaning |\n|---|---|---|---|---|\n"
      for setting in section.settings {
        let key = setting.path.dropFirst(section.name.isEmpty ? 0 : section.name.count + 1)
        let fallback = setting.isRequired ? "required" : setting.fallback.map { "`\($0)`" } ?? "none"
        text += "| `\(key)` | \(setting.type) | \(fallback) | \(cell(setting.allowed)) | \(cell(setting.help)) |\n"
      }
    }
    return text
  }

  /// The settings by the object they stand in, in the order in which the objects come up.
  private static func sections() -> [(name: String, settings: [SettingDescription])] {
    var sections: [(name: String, settings: [SettingDescription])] = []
    for setting in all {
      let name = setting.path.lastIndex(of: ".").map { String(setting.path[..<$0]) } ?? ""
      if let index = sections.firstIndex(where: { $0.name == name }) {
        sections[index].settings.append(setting)
      } else {
        sections.append((name, [setting]))
      }
    }
    return sections
  }

  private static func cell(_ text: String) -> String {
    text.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|")
  }
}
