import APNs
import Testing
import Wire

struct ChannelRequestTests {
  @Test(
    arguments: [
      (.create(storesMessages: true), "POST", "/1/apps/com.x/channels", nil, 201),
      (.show("dHN0"), "GET", "/1/apps/com.x/channels", "dHN0", 200),
      (.list, "GET", "/1/apps/com.x/all-channels", nil, 200),
      (.delete("dHN0"), "DELETE", "/1/apps/com.x/channels", "dHN0", 204),
    ] as [(ChannelRequest.Call, String, String, String?, UInt16)])
  func everyCallIsAsApplesPageHasIt(
    call: ChannelRequest.Call, method: String, path: String, channel: String?, status: UInt16
  ) {
    let request = ChannelRequest(call, bundleID: "com.x")
    #expect(request.method == method && request.path == path && request.channel == channel)
    #expect(request.successStatus == status)
    #expect(request.body.isEmpty == (method != "POST"))
  }

  @Test
  func onlyMakingAChannelHasABody() {
    let body = ChannelRequest(.create(storesMessages: false), bundleID: "com.x").body
    #expect(String(decoding: body, as: UTF8.self) == #"{"message-storage-policy":0,"push-type":"LiveActivity"}"#)
  }

  private func settings(_ text: String) throws -> ChannelSettings {
    let body = Array(text.utf8)
    return try ChannelSettings(answer: body.span)
  }

  private func list(_ text: String) throws -> [String] {
    let body = Array(text.utf8)
    return try ChannelSettings.list(answer: body.span)
  }

  @Test
  func answersAreReadAndWhatIsNewInThemIsLeftAlone() throws {
    let shown = try settings(#"{"new":{"a":[1]},"message-storage-policy":1,"push-type":"Live\u0041ctivity"}"#)
    #expect(shown == ChannelSettings(storesMessages: true, pushType: "LiveActivity"))
    #expect(try settings("{}") == ChannelSettings())
    #expect(try list(#"{"count":2,"channels":["dHN0","YQ==",7]}"#) == ["dHN0", "YQ=="])
    #expect(throws: JSONError.self) { try list("<html>") }
    #expect(throws: JSONError.self) { try list(#"{"channels":{}}"#) }
  }

  @Test
  func theHostsForChannelsAreTheirOwn() {
    #expect(APNsEndpoint.channels(.production).authority == "api-manage-broadcast.push.apple.com:2196")
    #expect(APNsEndpoint.channels(.sandbox).authority == "api-manage-broadcast.sandbox.push.apple.com:2195")
  }
}
