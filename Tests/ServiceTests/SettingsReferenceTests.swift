import Testing

@testable import Service

struct SettingsReferenceTests {
  @Test
  func everySettingStandsInTheText() {
    let text = SettingsReference.markdown()
    for setting in SettingsReference.all {
      let key = setting.path.split(separator: ".").last.map(String.init) ?? ""
      #expect(text.contains("| `\(key)` |"), "\(setting.path)")
      #expect(text.contains(setting.help.prefix(20)), "\(setting.path)")
    }
  }

  @Test
  func everyPropertyOfTheSettingsHasAnEntry() {
    // Counted by reflection, so that a property without an entry in the tables is noticed.
    func properties(_ value: Any) -> Int { Mirror(reflecting: value).children.count }
    func entries(_ section: String) -> Int {
      let inner = SettingsReference.all.filter { $0.path.hasPrefix("\(section).") }
      return Set(inner.map { $0.path.dropFirst(section.count + 1).split(separator: ".")[0] }).count
    }
    #expect(entries("kafka") == properties(KafkaSettings()))
    #expect(entries("kafka.topics") == properties(TopicSettings()))
    // The name of an app is its key.
    #expect(entries("apps.<name>") == properties(AppSettings()) - 1)
    #expect(entries("apps.<name>.token") == properties(TokenSettings()))
    #expect(entries("apps.<name>.certificate") == properties(CertificateSettings()))
    #expect(entries("apps.<name>.server") == properties(ServerSettings()))
    #expect(entries("apps.<name>.proxy") == properties(ProxySettings()))
    #expect(entries("delivery.proxy") == properties(ProxySettings()))
    #expect(entries("delivery") == properties(DeliverySettings()))
    #expect(entries("delivery.retryBackoff") == properties(BackoffSettings()))
    #expect(entries("http") == properties(HTTPSettings()))
    #expect(entries("log") == properties(LogSettings()))
  }

  @Test
  func pathsAreDifferentAndSectionsStandOnce() {
    #expect(Set(SettingsReference.all.map(\.path)).count == SettingsReference.all.count)
    let headings = SettingsReference.markdown().split(separator: "\n").filter { $0.hasPrefix("## ") }
    #expect(Set(headings).count == headings.count)
  }

  @Test
  func defaultsAreWithinTheirBounds() throws {
    // Each default is put into a file and read back: it must be accepted.
    for section in ["delivery", "http", "log"] {
      for setting in SettingsReference.all where setting.path.hasPrefix("\(section).") {
        guard let fallback = setting.fallback else { continue }
        let keys = setting.path.split(separator: ".")
        let text = keys.reversed().reduce(fallback) { "{ \($1): \($0) }" }
        var context = ReadingContext(source: ConfigurationSource(file: "x", text: []))
        var settings = Settings()
        let value = try #require(ConfigurationDocument.read(Array(text.utf8), &context))
        SettingsLoader.group.read(value, at: "", into: &settings, &context)
        #expect(!context.problems.contains { $0.path == setting.path }, "\(context.problems)")
      }
    }
  }
}
