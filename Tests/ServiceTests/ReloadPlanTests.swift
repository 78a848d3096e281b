import Delivery
import Testing
import Transport

@testable import Service

struct ReloadPlanTests {
  private static func app(_ name: String) -> AppSettings {
    var app = AppSettings()
    app.name = name
    app.bundleID = "com.example.\(name)"
    app.token = TokenSettings(keyFile: "/keys/\(name).p8", keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
    app.server = ServerSettings(host: "mock", port: 1, caFile: "/keys/ca.pem")
    return app
  }

  private static func proxy(_ name: String) -> ProxySettings {
    var proxy = ProxySettings()
    proxy.host = name
    proxy.usernameFile = "/keys/\(name)"
    return proxy
  }

  private static func image(_ change: (inout ConfigurationImage) -> Void = { _ in }) -> ConfigurationImage {
    var settings = Settings()
    settings.kafka.brokers = ["b:9092"]
    settings.kafka.properties = [
      KafkaProperty(name: "sasl.password", value: .file("/keys/password")),
      KafkaProperty(name: "ssl.key.location", value: .path("/keys/client.pem")),
    ]
    settings.delivery.proxy = proxy("shared")
    settings.apps = [app("a"), app("b"), app("c")]
    settings.apps[2].proxy = proxy("own")
    let files = settings.apps.flatMap(\.files) + settings.kafka.files + ["/keys/shared"]
    var image = ConfigurationImage(
      settings: settings,
      contents: Dictionary(
        files.map { ($0, FileContent.file(ContentDigest(of: Array($0.utf8)))) }, uniquingKeysWith: { first, _ in first }
      ))
    change(&image)
    return image
  }

  private struct Case: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var change: @Sendable (inout ConfigurationImage) -> Void
    var expect: @Sendable (inout ReloadPlan) -> Void
  }

  private static let other = FileContent.file(ContentDigest(of: [1]))

  private static let cases: [Case] = [
    Case(testDescription: "nothing", change: { _ in }, expect: { _ in }),
    Case(testDescription: "another order", change: { $0.settings.apps.reverse() }, expect: { _ in }),
    Case(
      testDescription: "a new app", change: { $0.settings.apps.append(app("d")) }, expect: { $0.added = ["d"] }),
    Case(
      testDescription: "an app less", change: { $0.settings.apps.remove(at: 1) }, expect: { $0.removed = ["b"] }),
    Case(
      testDescription: "a new name",
      change: { $0.settings.apps[0].name = "z" },
      expect: {
        $0.added = ["z"]
        $0.removed = ["a"]
      }),
    Case(
      testDescription: "another key in the same file", change: { $0.contents["/keys/b.p8"] = other },
      expect: { $0.changed = ["b"] }),
    Case(
      testDescription: "the same key in another file",
      change: {
        $0.settings.apps[1].token?.keyFile = "/keys/new.p8"
        $0.contents["/keys/new.p8"] = $0.contents["/keys/b.p8"]
      }, expect: { $0.changed = ["b"] }),
    Case(
      testDescription: "a file that all apps share", change: { $0.contents["/keys/ca.pem"] = other },
      expect: { $0.changed = ["a", "b", "c"] }),
    Case(testDescription: "a file of nobody", change: { $0.contents["/keys/x"] = other }, expect: { _ in }),
    Case(
      testDescription: "the user of an app's own proxy", change: { $0.contents["/keys/own"] = other },
      expect: { $0.changed = ["c"] }),
    Case(
      testDescription: "the user of the proxy of all", change: { $0.contents["/keys/shared"] = other },
      expect: { $0.changed = ["a", "b"] }),
    Case(
      testDescription: "a push type", change: { $0.settings.apps[0].pushTypes = [PushTypeSettings()] },
      expect: { $0.adjusted = ["a"] }),
    Case(
      testDescription: "another environment", change: { $0.settings.apps[2].environment = .sandbox },
      expect: { $0.changed = ["c"] }),
    Case(
      testDescription: "another server", change: { $0.settings.apps[2].server?.port = 2 },
      expect: { $0.changed = ["c"] }),
    Case(
      testDescription: "fewer connections", change: { $0.settings.apps[2].maxConnections = 1 },
      expect: { $0.changed = ["c"] }),
    Case(
      testDescription: "another expiration", change: { $0.settings.apps[2].defaultExpiration = .seconds(60) },
      expect: { $0.adjusted = ["c"] }),
    Case(
      testDescription: "the log's level", change: { $0.settings.log.level = .debug }, expect: { $0.logLevel = .debug }),
    Case(
      testDescription: "settings of the start",
      change: {
        $0.settings.kafka.group = "other"
        $0.settings.delivery.attempts = 9
        $0.settings.http.listen.port = 1
        $0.settings.log.format = .text
      }, expect: { $0.needsRestart = ["kafka.group", "delivery.attempts", "http.listen", "log.format"] }),
    Case(
      testDescription: "a key of Kafka's", change: { $0.contents["/keys/client.pem"] = other },
      expect: { $0.needsRestart = [#"kafka.properties."ssl.key.location""#] }),
    Case(
      testDescription: "a secret of Kafka's", change: { $0.contents["/keys/password"] = other },
      expect: { $0.needsRestart = [#"kafka.properties."sasl.password""#] }),
  ]

  @Test(arguments: cases)
  private func thePlanIsTheDifference(_ item: Case) {
    var expected = ReloadPlan()
    item.expect(&expected)
    #expect(ReloadPlan(from: Self.image(), to: Self.image(item.change)) == expected)
  }

  @Test
  func whatOnlyTheNextStartTakesUpIsNoChange() {
    let plan = ReloadPlan(from: Self.image(), to: Self.image { $0.settings.kafka.group = "other" })
    #expect(plan.isEmpty && !plan.needsRestart.isEmpty)
  }

  /// Each setting either takes effect by a reload or is named when it does not.
  @Test
  func everySettingIsOneOrTheOther() {
    let reloaded = ["log.level"]
    let paths = SettingsReference.all.map(\.path).filter { !$0.hasPrefix("apps") && !reloaded.contains($0) }
    #expect(Set(FixedSettings.all.map(\.path)) == Set(paths))
  }
}
