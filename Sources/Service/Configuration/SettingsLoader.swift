internal import Delivery
internal import Glibc

/// Settings that can be used, and what there is to say about them.
package struct LoadedSettings: Sendable {
  package var settings: Settings
  package var warnings: [ConfigurationProblem]
  /// Every file and directory that the configuration is made of or names: what a watcher watches.
  package var files: [String]
}

/// Reads the configuration: one JSON5 file and, if it says so, a directory with one file for each app.
package enum SettingsLoader {
  /// A configuration file may not be longer.
  static let longestFile = 16 * 1_048_576
  /// More apps are refused.
  static let mostApps = 10_000

  /// - Parameters:
  ///   - file: the path of the configuration file.
  ///   - environment: the value of an environment variable, `nil` where it is not set.
  ///   - toleratesUnreadableApps: whether a file of an app that cannot be read is a warning, as for the service, which
  ///     does without such an app.
  /// - Throws: every problem at once; warnings are among them only where there are errors too.
  package static func load(
    file: String, environment: @escaping (String) -> String? = processEnvironment, toleratesUnreadableApps: Bool = false
  ) throws(ConfigurationError) -> LoadedSettings {
    try load(file: file, environment) { references, context in
      context.toleratesUnreadableApps = toleratesUnreadableApps
      return document(file, references, &context)
    }
  }

  /// The same with the text at hand, as if it stood in that file.
  package static func load(
    file: String, text: [UInt8], environment: @escaping (String) -> String?
  ) throws(ConfigurationError) -> LoadedSettings {
    try load(file: file, environment) { references, context in document(file, text, references, &context) }
  }

  private static func load(
    file: String, _ environment: @escaping (String) -> String?,
    document: (EnvironmentReferences, inout ReadingContext) -> ConfigurationValue?
  ) throws(ConfigurationError) -> LoadedSettings {
    var context = ReadingContext(source: ConfigurationSource(file: file, text: []))
    var settings = Settings()
    context.namedFiles.append(file)
    let references = EnvironmentReferences(lookUp: environment)
    if let root = document(references, &context) { read(root, into: &settings, references, &context) }
    if context.problems.contains(where: { $0.severity == .error }) {
      throw ConfigurationError(problems: context.problems, files: context.namedFiles)
    }
    return LoadedSettings(settings: settings, warnings: context.problems, files: context.namedFiles)
  }

  /// All but the apps, for commands that have to do with Kafka alone: whoever makes or reads topics need not have the
  /// apps' keys.
  ///
  /// - Returns: settings without apps.
  /// - Throws: every problem of what is not below `apps`.
  package static func loadWithoutApps(
    file: String, environment: @escaping (String) -> String? = processEnvironment
  ) throws(ConfigurationError) -> Settings {
    var context = ReadingContext(source: ConfigurationSource(file: file, text: []))
    var settings = Settings()
    if let root = document(file, EnvironmentReferences(lookUp: environment), &context) {
      group.read(root, at: "", into: &settings, &context)
    }
    let problems = context.problems.filter { $0.path != "apps" && !$0.path.hasPrefix("apps.") }
    guard !problems.contains(where: { $0.severity == .error }) else {
      throw ConfigurationError(problems: problems, files: [file])
    }
    return settings
  }

  /// Where the service of this configuration answers, whatever else is wrong with the file: the running service may
  /// well go on with an earlier content of it.
  ///
  /// - Throws: every problem of the setting, or why the file cannot be read at all.
  package static func listenAddress(
    file: String, environment: @escaping (String) -> String? = processEnvironment
  ) throws(ConfigurationError) -> ListenAddress {
    var context = ReadingContext(source: ConfigurationSource(file: file, text: []))
    var http = HTTPSettings()
    guard let root = document(file, EnvironmentReferences(lookUp: environment), &context) else {
      throw ConfigurationError(problems: context.problems, files: [file])
    }
    guard case .object(let members) = root.content, let section = members.first(where: { $0.key == "http" }) else {
      return http.listen
    }
    context.problems = []
    HTTPSettings.group.read(section.value, at: section.key, into: &http, &context)
    guard context.problems.isEmpty else { throw ConfigurationError(problems: context.problems, files: [file]) }
    return http.listen
  }

  /// The variable of this process.
  @Sendable
  package static func processEnvironment(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }

  /// Reads a file and makes it the context's current one; `nil` where that failed.
  static func document(
    _ file: String, _ references: EnvironmentReferences, _ context: inout ReadingContext
  ) -> ConfigurationValue? {
    let text: [UInt8]
    do {
      text = try FileProbe.read(file, atMost: longestFile)
    } catch {
      context.source = ConfigurationSource(file: file, text: [])
      context.report(error.message, at: "", offset: nil)
      return nil
    }
    return document(file, text, references, &context)
  }

  private static func document(
    _ file: String, _ text: [UInt8], _ references: EnvironmentReferences, _ context: inout ReadingContext
  ) -> ConfigurationValue? {
    context.source = ConfigurationSource(file: file, text: text)
    return ConfigurationDocument.read(text, &context).map { references.replaced(in: $0, at: "", &context) }
  }

  private static func read(
    _ root: ConfigurationValue, into settings: inout Settings, _ references: EnvironmentReferences,
    _ context: inout ReadingContext
  ) {
    group.read(root, at: "", into: &settings, &context)
    guard case .object(let members) = root.content, let apps = members.first(where: { $0.key == "apps" }) else {
      return
    }
    settings.apps = AppsReader.read(apps.value, references, &context)
  }

  /// The top level. What stands under `apps` is read by `AppsReader`, after all else.
  static let group = SettingGroup(
    defaults: Settings(),
    fields: [
      .group("kafka", \.kafka, KafkaSettings.group).required,
      .apps,
      .group("delivery", \.delivery, DeliverySettings.group),
      .group("output", \.output, OutputForm.group),
      .group("http", \.http, HTTPSettings.group),
      .group("log", \.log, LogSettings.group),
    ])
}

extension SettingField {
  /// The same, but it must be there.
  var required: Self {
    var field = self
    field.isRequired = true
    return field
  }
}

extension SettingField where Root == Settings {
  /// Only described here: it may lead to other files.
  fileprivate static let apps = Self(name: "apps", isRequired: true) { _, _, _, _ in
  } describe: { path, _ in
    let apps = SettingDescription(
      path: path, type: "object or directory",
      allowed: "an object with one app under each name, or the path of a directory with one file for each app",
      fallback: nil, isRequired: true,
      help: "The apps. In a directory, each `.json5` or `.json` file is one app and its name is the app's; files that "
        + "begin with a dot are left out.")
    return [apps] + AppSettings.group.describe(under: "apps.<name>", defaults: AppSettings.group.defaults)
  }
}
