import APNs
import Delivery
import Testing
import Wire

@Suite struct AppTableTests {
  private static func rules(_ name: String, bundleID: String = "com.example") -> AppRules {
    AppRules(name: name, bundleID: bundleID, environment: .production)
  }

  @Test func `a thousand apps are found by name, and no others`() throws {
    let names = (0..<1000).map { "app-\($0)" }
    let apps = AppTable(names.map { Self.rules($0) })
    #expect(apps.count == 1000)
    for (index, name) in names.enumerated() {
      #expect(apps.find(name) == AppIndex(Int32(index)))
      #expect(apps[AppIndex(Int32(index))].name == name)
    }
    for name in ["", "app-", "app-1000", "APP-1", "app-1 ", "app-01", "\u{0}"] { #expect(apps.find(name) == nil) }
  }

  @Test func `an index outlives updates and growth`() throws {
    var apps = AppTable([Self.rules("a"), Self.rules("b")])
    let first = try #require(apps.find("a"))
    for index in 0..<100 { apps.update(Self.rules("more-\(index)")) }
    #expect(apps.update(Self.rules("a", bundleID: "com.other")) == first)
    #expect(apps.find("a") == first)
    #expect(apps[first].bundleID == "com.other")
    #expect(apps.topic(for: first, .voip) == Array("com.other.voip".utf8))
    #expect(apps.count == 102)
  }

  @Test func `a removed app stays readable, and gets its index back`() throws {
    var apps = AppTable([Self.rules("a"), Self.rules("b")])
    let app = try #require(apps.find("a"))
    apps.remove(app)
    #expect(apps.isRemoved(app))
    #expect(apps.find("a") == app)
    #expect(apps[app].name == "a")
    #expect(apps.topic(for: app, .alert) == Array("com.example".utf8))
    #expect(apps.active == [AppIndex(1)])
    #expect(apps.update(Self.rules("a")) == app)
    #expect(!apps.isRemoved(app))
    #expect(apps.active == [AppIndex(0), AppIndex(1)])
  }

  @Test func `an empty table knows nobody`() {
    #expect(AppTable().find("a") == nil)
    #expect(AppTable().count == 0)
  }
}
