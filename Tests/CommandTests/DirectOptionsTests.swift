import Testing
import Transport
import Wire

@testable import Service
@testable import martlet

struct DirectOptionsTests {
  private static let key = ["--p8", "AuthKey_ABC123DEFG.p8", "--team-id", "DEF123GHIJ", "--topic", "com.example.shop"]

  private static func read(_ words: [String]) throws -> DirectOptions {
    try DirectOptions(Arguments(words[...], for: SendCommand.command))
  }

  private static func message(_ words: [String]) -> String {
    do {
      _ = try read(words)
      return "accepted"
    } catch let error as UsageError {
      return error.message
    } catch {
      return "\(error)"
    }
  }

  @Test
  func aSigningKeyMakesAnApp() throws {
    let options = try Self.read(Self.key)
    #expect(
      options.app.token == TokenSettings(keyFile: Self.key[1], keyID: "ABC123DEFG", teamID: "DEF123GHIJ"))
    #expect(options.app.bundleID == "com.example.shop" && options.app.environmentName == "production")
    #expect(options.app.server == nil && options.warnings.isEmpty && !options.isConfigured)
    let other = try Self.read(Self.key + ["--key-id", "short", "--sandbox", "--timeout", "3s"])
    #expect(other.app.token?.keyID == "short" && other.app.isSandbox)
    #expect(other.warnings == ["'--key-id' is odd: Apple's are 10 capital letters and digits, not 'short'"])
    #expect(other.delivery.connectTimeout == .seconds(3) && other.delivery.requestTimeout == .seconds(3))
  }

  @Test(arguments: [
    ([], ServerSettings?.none),
    (
      ["--host", "localhost", "--port", "2197", "--ca", "ca.pem"],
      .init(host: "localhost", port: 2197, caFile: "ca.pem")
    ),
    (["--port", "2197"], .init(host: "api.push.apple.com", port: 2197)),
    (["--sandbox", "--ca", "ca.pem"], .init(host: "api.sandbox.push.apple.com", port: 443, caFile: "ca.pem")),
  ])
  func theServerIsApplesUnlessAnotherIsNamed(words: [String], server: ServerSettings?) throws {
    #expect(try Self.read(Self.key + words).app.server == server)
  }

  @Test(arguments: [
    (["--topic", "x"], "who sends? give '--p8 FILE'"), (key + ["--certificate", "x"], "both say who sends"),
    (key + ["--key", "x"], "'--key' belongs to '--certificate'"),
    (["--p8", "key.p8"], "'--key-id ID' is missing"),
    (["--p8", "AuthKey_ABC123DEFG.p8"], "'--team-id' is missing"),
    (["--p8", "AuthKey_ABC123DEFG.p8", "--team-id", "DEF123GHIJ"], "'--topic' is missing: the app's bundle id"),
    (["--certificate", "x", "--team-id", "x"], "'--team-id' belongs to '--p8'"),
    (key + ["--app", "x"], "'--config FILE' is missing"), (["--config", "c", "--sandbox"], "and so does '--sandbox'"),
    (key + ["--proxy", "here"], "'--proxy' must be host:port"),
    (key + ["--proxy-username-file", "x"], "'--proxy HOST:PORT' is missing"),
    (key + ["--proxy", "p:1", "--proxy-password-file", "x"], "'--proxy-username-file FILE' is missing"),
    (key + ["--port", "0"], "'--port' must be a whole number from 1 to 65535, not '0'"),
    (key + ["--timeout", "soon"], "'--timeout' must be seconds or a duration"),
    (key + ["--timeout", "0"], "'--timeout' must be longer than 0"),
    (["--certificate", "/nowhere/apns.p12"], "/nowhere/apns.p12: open: No such file"),
  ])
  func whatIsWrongIsNamed(words: [String], expected: String) {
    let message = Self.message(words)
    #expect(message.contains(expected), "\(message)")
  }

  @Test
  func anAppOfTheConfigurationIsFoundByItsName() throws {
    let directory = try LocalFile.makeTemporaryDirectory()
    let file = "\(directory)/martlet.json5"
    let keyFile = "\(directory)/key.p8"
    defer {
      LocalFile.remove(file: keyFile, directory: directory)
      LocalFile.remove(file: file, directory: directory)
    }
    try LocalFile.write(Array(SigningKey.generate().privatePEM().utf8), to: keyFile, isSecret: true)
    func write(_ apps: [String]) throws {
      let token = "token: { keyFile: '\(keyFile)', keyId: 'ABC123DEFG', teamId: 'DEF123GHIJ' }"
      let all = apps.map { "\($0): { bundleId: 'com.example.\($0)', environment: 'sandbox', \(token) }" }
      let text = "{ kafka: { brokers: 'b:9092' }, apps: { \(all.joined(separator: ", ")) } }"
      try LocalFile.write(Array(text.utf8), to: file)
    }
    try write(["shop", "news"])
    let news = try Self.read(["--config", file, "--app", "news", "--port", "2197"])
    #expect(news.app.bundleID == "com.example.news" && news.isConfigured && news.app.isSandbox)
    #expect(news.app.server == ServerSettings(host: "api.sandbox.push.apple.com", port: 2197))
    #expect(Self.message(["--config", file]).hasSuffix("has shop, news"))
    #expect(
      Self.message(["--config", file, "--app", "shup"])
        == "'--app' must be one of shop, news, not 'shup'; did you mean 'shop'?")
    try write(["shop"])
    #expect(try Self.read(["--config", file]).app.name == "shop")
    #expect(Self.message(["--config", "\(directory)/none.json5"]).contains("none.json5"))
  }

  @Test(
    arguments: [
      ("com.example.shop", nil, "com.example.shop", nil, nil),
      ("com.example.shop", "voip", "com.example.shop", nil, "voip"),
      ("com.example.shop.voip", nil, "com.example.shop", "com.example.shop.voip", "voip"),
      ("com.example.shop.voip", "alert", "com.example.shop", "com.example.shop.voip", "alert"),
      ("com.example.shop", "quantum", "com.example.shop", "com.example.shop", "quantum"),
    ] as [(String, String?, String, String?, String?)])
  func theTopicIsABundleIDOrThatOfAPushType(
    given: String, type: String?, bundleID: String, topic: String?, resultingType: String?
  ) throws {
    let key = Array(Self.key.dropLast()) + [given]
    let words = key + ["--token", "ab", "--alert", "x"] + (type.map { ["--push-type", $0] } ?? [])
    let arguments = try Arguments(words[...], for: SendCommand.command)
    var direct = try DirectOptions(arguments)
    var push = try NotificationOptions(arguments, now: UnixTime(seconds: 0))
    SendCommand.address(&push, &direct)
    #expect(direct.app.bundleID == bundleID)
    #expect(push.topic == topic && push.pushType == resultingType)
    #expect(push.id.flatMap { UUID($0) } != nil)
    var judge = RequestJudge(apps: [direct.app])
    let fault = judge.fault(of: push.requests(app: direct.app.name)[0].value)
    let isGood = !(given.hasSuffix(".voip") && type == "alert")
    #expect((fault == nil) == isGood, "\(fault ?? "")")
  }
}

struct SendReportTests {
  private static func result(
    _ status: DirectResult.Status, _ httpStatus: UInt16?, _ reason: String? = nil, isCredentialFault: Bool = false
  ) -> DirectResult {
    var result = DirectResult(
      recipient: "740f4707bebcf74f9b7c25d4", isBroadcast: false, status: status, httpStatus: httpStatus,
      apnsID: "5f0c", topic: "t", pushType: "alert", attempts: 1)
    result.reason = reason
    result.isCredentialFault = isCredentialFault
    return result
  }

  @Test(
    arguments: [
      ([result(.delivered, 200)], .ok), ([result(.rejected, 410), result(.delivered, 200)], .badData),
      ([result(.rejected, 410), result(.failed, nil)], .unavailable), ([result(.expired, nil)], .unavailable),
      (
        [result(.failed, 500), result(.rejected, 403, isCredentialFault: true), result(.delivered, 200)], .configuration
      ),
    ] as [([DirectResult], ExitCode)])
  func theGravestEndDecidesTheExitCode(results: [DirectResult], code: ExitCode) {
    var report = SendReport(app: AppSettings(), isJSON: false)
    for result in results { _ = report.line(adding: result) }
    #expect(report.exitCode == code)
    #expect((report.summary == nil) == (results.count == 1))
  }

  @Test
  func answersAreReadableAndShortenTheToken() {
    var report = SendReport(app: AppSettings(), isJSON: false)
    #expect(report.line(adding: Self.result(.delivered, 200)) == "✓ 740f…25d4: delivered, apns-id 5f0c")
    var refused = Self.result(.rejected, 400, "BadDeviceToken")
    refused.unregisteredAt = UnixTime(seconds: 0)
    let line = report.line(adding: refused)
    #expect(line.hasPrefix("✗ 740f…25d4: rejected: 400 BadDeviceToken since 1970-01-01T00:00:00.000Z, apns-id 5f0c"))
    #expect(line.contains("it belongs to the sandbox environment"))
    var list = SendReport(app: AppSettings(), isJSON: true)
    let expected = #""token":"740f4707bebcf74f9b7c25d4","status":"rejected","http_status":400"#
    #expect(list.line(adding: refused).contains(expected))
  }
}
