import TestSupport

@testable import Service

/// A configuration and the files that it names, in a directory of its own.
struct SettingsFixture {
  let files: TemporaryFiles

  init() throws {
    files = try TemporaryFiles()
    try files.write("key.p8", "not a real key")
    try files.write("apns.pem", "not a real certificate")
  }

  static let app =
    "shop: { bundleId: 'com.example.shop', token: { keyFile: 'key.p8', keyId: 'ABC123DEFG', teamId: 'DEF123GHIJ' } }"

  func load(_ text: String, environment: [String: String] = [:]) throws(ConfigurationError) -> LoadedSettings {
    guard let file = try? files.write("martlet.json5", text) else {
      throw ConfigurationError(problems: [])
    }
    return try SettingsLoader.load(file: file) { environment[$0] }
  }

  func problems(_ text: String, environment: [String: String] = [:]) -> [ConfigurationProblem] {
    do {
      let loaded = try load(text, environment: environment)
      return loaded.warnings
    } catch {
      return error.problems
    }
  }

  /// The problems of a configuration that is right but for these members.
  func problems(with members: String, environment: [String: String] = [:]) -> [ConfigurationProblem] {
    problems("{ kafka: { brokers: 'b:9092' }, apps: { \(Self.app) }, \(members) }", environment: environment)
  }

  func problems(ofApp members: String) -> [ConfigurationProblem] {
    problems("{ kafka: { brokers: 'b:9092' }, apps: { shop: { \(members) } } }")
  }
}
