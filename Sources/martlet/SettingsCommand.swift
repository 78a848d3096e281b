import Service

/// `martlet settings`: the reference of the configuration, made from the tables that the loader follows.
enum SettingsCommand {
  static let command = Command(
    "settings", "Prints the reference of all settings, in Markdown.", options: [],
    examples: [("martlet settings > settings.md", "the reference as a file")]
  ) { _ in
    Console.out(SettingsReference.markdown())
    return .ok
  }
}
