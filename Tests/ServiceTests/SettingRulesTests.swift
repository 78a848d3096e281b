import Service
import Testing

/// Rules that concern more than one setting, or the form of a text.
struct SettingRulesTests {
  /// What is said about these members, beside what the app's missing key file gives rise to.
  private func problems(kafka: String = "", _ members: String = "") -> [ConfigurationProblem] {
    let text = """
      { kafka: { brokers: 'b:9092', \(kafka) }, \(members)
        apps: { shop: { bundleId: 'b', token: { keyFile: 'no.p8', keyId: 'ABC123DEFG', teamId: 'DEF123GHIJ' } } } }
      """
    do {
      return try SettingsLoader.load(file: "/nowhere/x.json5", text: Array(text.utf8)) { _ in nil }.warnings
    } catch {
      return error.problems.filter { !$0.path.hasSuffix("keyFile") }
    }
  }

  @Test(arguments: [
    ("properties: { 'sasl.mechanism': 'oauthbearer' }", "kafka", "needs a token", false),
    ("consumerProperties: { 'sasl.mechanisms': 'OAUTHBEARER' }", "kafka", "needs a token", false),
    ("oauthTokenFile: '/dev/null'", "kafka.oauthTokenFile", "has no effect", true),
    ("properties: []", "kafka.properties", "wrong type", false),
  ])
  func whatKafkaSettingsNeedOfEachOther(kafka: String, path: String, words: String, isWarning: Bool) {
    let problem = problems(kafka: kafka).first { $0.path == path }
    #expect(problem?.message.contains(words) == true, "\(problems(kafka: kafka))")
    #expect((problem?.severity == .warning) == isWarning)
  }

  @Test func aCapThatIsAboveTheCapOfAllHasNoEffect() {
    let found = problems("delivery: { maxInFlight: 10, maxInFlightPerApp: 11 },")
    #expect(found.map(\.path) == ["delivery.maxInFlightPerApp"])
    #expect(found.first?.severity == .warning && found.first?.allowed == "up to 10")
    #expect(problems("delivery: { maxInFlight: 10, maxInFlightPerApp: 10 },").isEmpty)
  }

  @Test(arguments: [("/martlet", true), ("urn:x:y", true), ("", false), ("a b", false), ("<x>", false), ("é", false)])
  func theSourceOfEventsIsAReference(source: String, isAllowed: Bool) {
    let found = problems("output: { cloudEvents: 'structured', source: '\(source)' },")
    #expect(found.isEmpty == isAllowed, "\(found)")
    #expect(found.allSatisfy { $0.path == "output.source" })
  }
}
