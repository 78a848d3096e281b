import Service

/// `martlet reference`: what the documentation says of settings and metrics, made from the tables that the service follows.
enum ReferenceCommand {
  /// The things that there is a reference of.
  enum Subject: String, CaseIterable {
    case settings
    case metrics

    var markdown: String {
      switch self {
      case .settings: SettingsReference.markdown()
      case .metrics: MetricsReference.markdown()
      }
    }
  }

  static let command = Command(
    "reference", "Prints the reference of settings or of metrics.", options: [],
    examples: [
      ("martlet reference settings > docs/settings.md", "every setting, its default and its bounds"),
      ("martlet reference metrics > docs/metrics.md", "every metric and its number of series"),
    ], operands: "settings|metrics"
  ) { arguments in
    Console.out(try text(for: arguments.operands))
    return .ok
  }

  /// Without the last line end, which the console adds.
  static func text(for operands: [String]) throws(UsageError) -> String {
    guard operands.count == 1, let subject = Subject(rawValue: operands[0]) else {
      let nearest = operands.first.flatMap { NearestName.find($0, in: Subject.allCases.map(\.rawValue)) }
      throw UsageError(
        message: "say either 'settings' or 'metrics'" + (nearest.map { "; did you mean '\($0)'?" } ?? ""))
    }
    return String(subject.markdown.dropLast())
  }
}
