import Testing
import Wire

@testable import martlet

struct NotificationOptionsTests {
  private static let now = UnixTime(seconds: 1_790_000_000)
  private static let command = Command(
    "try", "Tries the options of a push.", options: NotificationOptions.options, examples: []
  ) { _ in .ok }

  /// What `--payload` reads here.
  private static let files = [
    "good.json": "\n { \"aps\" : { \"badge\":1 } , \"n\":1.0 } \n", "broken.json": "{\"aps\": {\n  \"alert\": tru\n}}",
    "list.json": "[1]", "empty.json": " \n", "-": "{\"aps\":{}}",
  ]

  private struct NoSuchFile: Error, CustomStringConvertible {
    var description: String { "nope.json: No such file or directory" }
  }

  private static func read(_ words: [String]) throws -> NotificationOptions {
    try NotificationOptions(Arguments(words[...], for: command), now: now) { path in
      guard let text = files[path] else { throw NoSuchFile() }
      return Array(text.utf8)
    }
  }

  private static func payload(_ words: [String]) throws -> String {
    String(decoding: try read(["--token", "ab"] + words).payload, as: UTF8.self)
  }

  private static func message(_ words: [String]) -> String {
    do {
      _ = try read(words)
      return "accepted"
    } catch let error as UsageError {
      return error.message
    } catch let error as InputError {
      return "input: " + error.message
    } catch {
      return "\(error)"
    }
  }

  @Test(arguments: [
    (["--alert", "Hi"], #"{"aps":{"alert":"Hi"}}"#),
    (["--alert", "a \"b\"\n😀"], #"{"aps":{"alert":"a \"b\"\n😀"}}"#),
    (["--body", "Hi"], #"{"aps":{"alert":{"body":"Hi"}}}"#),
    (
      ["--alert", "Hi", "--title", "T", "--subtitle", "S"],
      #"{"aps":{"alert":{"body":"Hi","title":"T","subtitle":"S"}}}"#
    ),
    (
      ["--loc-key", "K", "--loc-args", "1", "--loc-args", "two", "--launch-image", "L", "--action-loc-key", "A"],
      #"{"aps":{"alert":{"loc-key":"K","action-loc-key":"A","launch-image":"L","loc-args":["1","two"]}}}"#
    ),
    (
      ["--title-loc-key", "T", "--title-loc-args", "x", "--subtitle-loc-key", "S", "--subtitle-loc-args=--y"],
      #"{"aps":{"alert":{"title-loc-key":"T","subtitle-loc-key":"S","title-loc-args":["x"],"#
        + #""subtitle-loc-args":["--y"]}}}"#
    ),
    (["--badge", "0"], #"{"aps":{"badge":0}}"#),
    (["--badge", "7", "--sound", "ping.aiff"], #"{"aps":{"badge":7,"sound":"ping.aiff"}}"#),
    (["--critical"], #"{"aps":{"sound":{"critical":1,"name":"default"}}}"#),
    (
      ["--sound", "a", "--critical", "--volume", "0.50"],
      #"{"aps":{"sound":{"critical":1,"name":"a","volume":0.50}}}"#
    ),
    (
      ["--category", "C", "--thread-id", "T", "--content-available", "--mutable-content"],
      #"{"aps":{"category":"C","thread-id":"T","content-available":1,"mutable-content":1}}"#
    ),
    (
      ["--interruption-level", "time-sensitive", "--relevance-score", "1"],
      #"{"aps":{"interruption-level":"time-sensitive","relevance-score":1}}"#
    ),
    (["--custom", #"{ "a" : [1, 2.50], "b\u00e9": {"c":null} }"#], #"{"a":[1, 2.50],"bé":{"c":null}}"#),
    (
      ["--alert", "x", "--aps", #"{"event":"update","content-state":{"n": 1.0}}"#, "--custom", #"{"k":true}"#],
      #"{"aps":{"alert":"x","event":"update","content-state":{"n": 1.0}},"k":true}"#
    ),
    (["--payload", "good.json"], #"{ "aps" : { "badge":1 } , "n":1.0 }"#), (["--payload", "-"], #"{"aps":{}}"#),
  ])
  func payloadsAreSpeltAsAppleWantsThem(words: [String], expected: String) throws {
    #expect(try Self.payload(words) == expected)
  }

  @Test(arguments: [
    (["--alert", "x"], "'--token HEX' is missing"),
    (["--token", "ab"], "there is nothing to send: give '--alert'"),
    (["--token", "ab", "--channel", "c", "--alert", "x"], "'--channel' takes the place of '--token'"),
    (["--token-base64", "a*b", "--alert", "x"], "must be base 64, not 'a*b…' of 3 bytes"),
    (["--token-base64", "abcde", "--alert", "x"], "hex digits go to '--token'"),
    (["--token", "ab", "--alert", "x", "--body", "y"], "both give the alert's text"),
    (["--token", "ab", "--title", "x", "--loc-args", "y"], "'--loc-args' needs '--loc-key'"),
    (["--token", "ab", "--badge", "-1"], "'--badge' must be a whole number from 0 to 2147483647, not '-1'"),
    (["--token", "ab", "--volume", "0.5"], "add '--critical'"),
    (["--token", "ab", "--critical", "--volume", "1.5"], "'--volume' must be a number from 0 to 1, not '1.5'"),
    (["--token", "ab", "--relevance-score", ".5"], "'--relevance-score' must be a number from 0 to 1, not '.5'"),
    (["--token", "ab", "--interruption-level", "activ"], "did you mean 'active'?"),
    (["--token", "ab", "--custom", "{\"a\":1,}"], "input: --custom: is not JSON, unexpected '}' at byte 7"),
    (["--token", "ab", "--custom", "[1]"], "input: --custom: must be a JSON object"),
    (["--token", "ab", "--custom", "{\"aps\":{}}"], "must not have the member 'aps'"),
    (["--token", "ab", "--custom", "{\"a\":1,\"a\":2}"], "'--custom' has the member 'a', which is there already"),
    (["--token", "ab", "--badge", "1", "--aps", "{\"badge\":2}"], "'--aps' has the member 'badge'"),
    (["--token", "ab", "--payload", "good.json", "--badge", "1"], "--badge cannot be added to it"),
    (["--token", "ab", "--payload", "broken.json"], "input: --payload: broken.json:2:15: is not JSON"),
    (["--token", "ab", "--payload", "list.json"], "must be a JSON object; found an array"),
    (["--token", "ab", "--payload", "empty.json"], "is empty"),
    (["--token", "ab", "--payload", "nope.json"], "input: --payload: nope.json: No such file"),
    (["--token", "ab", "--alert", "x", "--push-type", "alret"], "did you mean 'alert'?"),
    (["--token", "ab", "--alert", "x", "--priority", "high"], "'--priority' must be a whole number"),
    (["--token", "ab", "--alert", "x", "--expiration", "1h"], "did you mean '+1h'?"),
    (["--token", "ab", "--alert", "x", "--expiration", "3600"], "did you mean '+3600', from now?"),
    (["--token", "ab", "--alert", "x", "--expiration", "1789999999"], "has passed: it is UNIX seconds"),
    (["--token", "ab", "--alert", "x", "--expiration", "+soon"], "from now such as +90s"),
  ])
  func whatIsWrongIsNamed(words: [String], expected: String) {
    let message = Self.message(words)
    #expect(message.contains(expected), "\(message)")
  }

  @Test(
    arguments: [("+1h", 1_790_003_600), ("+90", 1_790_000_090), ("0", 0), ("1790000001", 1_790_000_001)]
      as [(String, Int64)])
  func expirationsAreAbsoluteOrFromNow(text: String, seconds: Int64) throws {
    #expect(try Self.read(["--token", "ab", "--alert", "x", "--expiration", text]).expiration == seconds)
  }

  @Test
  func tokensComeInEveryForm() throws {
    let words = [
      "--token", "<740f4707 BEBCF74f>", "--token-base64", "dA9HBw==", "--token-base64", "/w", "--badge", "1",
    ]
    #expect(try Self.read(words).tokens == ["740f4707BEBCF74f", "740f4707", "ff"])
  }

  @Test(
    arguments: [
      (["--content-available"], "background"), (["--content-available", "--custom", "{\"a\":1}"], "background"),
      (["--content-available", "--badge", "1"], nil), (["--alert", "x"], nil),
      (["--content-available", "--push-type", "alert"], "alert"), (["--payload", "-"], nil),
      (["--alert", "x", "--push-type", "quantum"], "quantum"),
    ] as [([String], String?)])
  func whatWakesTheAppOnlyIsABackgroundPush(words: [String], type: String?) throws {
    #expect(try Self.read(["--token", "ab"] + words).pushType == type)
  }

  @Test
  func requestsHaveTheFieldsOfTheContract() throws {
    let all = try Self.read([
      "--token", "ab", "--payload", "good.json", "--push-type", "voip", "--priority", "5", "--expiration", "0",
      "--collapse-id", "c", "--id", "i", "--topic", "t",
    ])
    let value =
      #"{"id":"i","app":"shop","token":"ab","push_type":"voip","priority":5,"expiration":0,"#
      + #""collapse_id":"c","topic":"t","payload":{ "aps" : { "badge":1 } , "n":1.0 }}"#
    #expect(all.requests(app: "shop") == [.init(key: "ab", value: Array(value.utf8))])

    let broadcast = try Self.read(["--channel", "dHN0", "--payload", "-"])
    #expect(
      broadcast.requests(app: "shop")
        == [.init(key: "dHN0", value: Array(#"{"app":"shop","channel":"dHN0","payload":{"aps":{}}}"#.utf8))])
  }

  @Test
  func manyTokensShareAPayloadAndAreSplitAtTheLimit() throws {
    var push = try Self.read(["--token", "ab", "--token", "cd", "--payload", "-"])
    let pair = Array(#"{"app":"a","tokens":["ab","cd"],"payload":{"aps":{}}}"#.utf8)
    #expect(push.requests(app: "a") == [.init(key: nil, value: pair)])
    push.tokens = Array(repeating: "ab", count: 2001)
    let requests = push.requests(app: "a")
    #expect(requests.count == 3)
    #expect(requests[2].value == Array(#"{"app":"a","token":"ab","payload":{"aps":{}}}"#.utf8))
  }

  @Test(arguments: [
    ("collapse_id: must be short", "--collapse-id: must be short"), ("token: is odd", "--token: is odd"),
    ("tokens[1]: is odd", "--token (number 2): is odd"), ("app: is unknown", "app: is unknown"), ("plain", "plain"),
  ])
  func rulesSpeakOfOptions(message: String, expected: String) {
    #expect(NotificationOptions.inOptionTerms(message) == expected)
  }
}
