import APNs
import Testing

@Suite struct PushTypeTests {
  struct Row {
    let type: PushType
    let name: String
    let topic: String
    let priority: UInt8
    let payload: Int
  }

  static let rows: [Row] = [
    Row(type: .alert, name: "alert", topic: "com.ex.app", priority: 10, payload: 4096),
    Row(type: .background, name: "background", topic: "com.ex.app", priority: 5, payload: 4096),
    Row(type: .voip, name: "voip", topic: "com.ex.app.voip", priority: 10, payload: 5120),
    Row(type: .location, name: "location", topic: "com.ex.app.location-query", priority: 10, payload: 4096),
    Row(type: .complication, name: "complication", topic: "com.ex.app.complication", priority: 10, payload: 4096),
    Row(
      type: .fileprovider, name: "fileprovider", topic: "com.ex.app.pushkit.fileprovider", priority: 10, payload: 4096),
    Row(type: .mdm, name: "mdm", topic: "com.ex.app", priority: 10, payload: 4096),
    Row(
      type: .liveactivity, name: "liveactivity", topic: "com.ex.app.push-type.liveactivity", priority: 10,
      payload: 4096),
    Row(type: .pushtotalk, name: "pushtotalk", topic: "com.ex.app.voip-ptt", priority: 10, payload: 4096),
    Row(type: .widgets, name: "widgets", topic: "com.ex.app.push-type.widgets", priority: 10, payload: 4096),
    Row(type: .controls, name: "controls", topic: "com.ex.app.push-type.controls", priority: 10, payload: 4096),
    Row(type: .other, name: "other", topic: "com.ex.app", priority: 10, payload: 4096),
  ]

  @Test func everyTypeHasItsRow() {
    #expect(Self.rows.map(\.type) == PushType.allCases)
    for row in Self.rows {
      #expect(row.type.name == row.name)
      #expect(PushType(row.name) == row.type)
      #expect(row.type.topic(bundleID: "com.ex.app") == row.topic)
      #expect(row.type.topic(bundleID: row.topic) == row.topic, "a suffix is not put on twice")
      #expect(row.type.defaultPriority == row.priority)
      #expect(row.type.maximumPayload == row.payload)
      #expect(row.type.allows(priority: row.priority))
    }
  }

  @Test func prioritiesAreTenFiveAndOne() {
    for type in PushType.allCases {
      let allowed = (0...UInt8.max).filter { type.allows(priority: $0) }
      #expect(allowed == (type == .background ? [1, 5] : [1, 5, 10]))
    }
  }

  @Test func onlySomeTypesAreSpecial() {
    #expect(PushType.allCases.filter(\.needsTokenAuthentication) == [.location])
    #expect(PushType.allCases.filter(\.hasFreeTopic) == [.mdm, .other])
  }

  @Test(arguments: ["brandnew", "type2", "a", "next-type", "alarm", "voice", "vxip", String(repeating: "x", count: 32)])
  func newTypesAreLetThrough(name: String) {
    #expect(PushType(name) == .other)
  }

  @Test(arguments: ["", "Alert", "ALERT", "alert ", " alert", "al\u{e9}rt", "2fast", "-x", "a_b", "a.b", "a\nb"])
  func whatIsNoNameIsNoType(name: String) {
    #expect(PushType(name) == nil)
  }

  @Test func namesAreBounded() {
    #expect(PushType(String(repeating: "x", count: 33)) == nil)
  }

  @Test func aTopicTellsItsPushType() {
    func suffix(_ topic: String) -> String? { PushType.knownSuffix(of: Array(topic.utf8).span) }
    for row in Self.rows where !row.type.topicSuffix.isEmpty { #expect(suffix(row.topic) == row.type.topicSuffix) }
    for topic in ["com.ex.app", "", ".voip", "com.ex.voip-pttx", "voip"] { #expect(suffix(topic) == nil) }
  }
}
