/// Reads `apps`: an object of apps, or a directory of files that are one app each.
enum AppsReader {
  static func read(
    _ value: ConfigurationValue, _ references: EnvironmentReferences, _ context: inout ReadingContext
  ) -> [AppSettings] {
    switch value.content {
    case .object(let members):
      guard !members.isEmpty, members.count <= SettingsLoader.mostApps else {
        context.mismatch("out of range", value, at: "apps", allowed: "1 to \(SettingsLoader.mostApps) apps")
        return []
      }
      return members.map {
        app(named: $0.key, $0.value, at: SettingPath.join("apps", $0.key), offset: $0.keyOffset, &context)
      }
    case .string(let path):
      return directory(FileProbe.resolve(path, from: context.source.directory), value, references, &context)
    default:
      context.mismatch("wrong type", value, at: "apps", allowed: "an object of apps, or the path of a directory")
      return []
    }
  }

  private static func directory(
    _ path: String, _ value: ConfigurationValue, _ references: EnvironmentReferences, _ context: inout ReadingContext
  ) -> [AppSettings] {
    context.namedFiles.append(path)
    let names: [String]
    do {
      names = try FileProbe.list(directory: path)
    } catch {
      let message = FileProbe.isDirectory(path) ? error.message : "no such directory"
      context.mismatch(message, value, at: "apps", allowed: "the path of a directory with one file for each app")
      return []
    }
    let files = names.filter { $0.hasSuffix(".json5") || $0.hasSuffix(".json") }
    guard !files.isEmpty, files.count <= SettingsLoader.mostApps else {
      context.mismatch(
        "\(files.isEmpty ? "no" : "too many") app files in this directory", value, at: "apps",
        allowed: "1 to \(SettingsLoader.mostApps) files *.json5 or *.json")
      return []
    }
    let main = context.source
    defer { context.source = main }
    var apps: [AppSettings] = []
    for file in files {
      context.namedFiles.append("\(path)/\(file)")
      guard let root = SettingsLoader.document("\(path)/\(file)", references, &context) else { continue }
      let name = String(file.prefix(file.utf8.count - (file.hasSuffix(".json5") ? 6 : 5)))
      let keyPath = SettingPath.join("apps", name)
      if apps.contains(where: { $0.name == name }) {
        context.report("two files for the app \(name)", at: keyPath, offset: nil)
      }
      apps.append(app(named: name, root, at: keyPath, offset: 0, &context))
    }
    return apps
  }

  private static func app(
    named name: String, _ value: ConfigurationValue, at path: String, offset: Int?, _ context: inout ReadingContext
  ) -> AppSettings {
    // Names become metric labels and stand in records; "unknown" is the label of requests for no known app.
    let isPlain = (1...100).contains(name.utf8.count) && name.utf8.allSatisfy(SettingType<String>.isNameByte)
    if !isPlain || name == "unknown" {
      context.report(
        "not allowed as the name of an app", at: path, offset: offset, found: "\"\(name.prefix(120))\"",
        allowed: "1 to 100 of a-z A-Z 0-9 . _ -, and not \"unknown\"")
    }
    var app = AppSettings.group.defaults
    app.name = name
    AppSettings.group.read(value, at: path, into: &app, &context)
    return app
  }
}
