import APNs
import Testing
import Wire

/// Two clocks that are set by hand.
private struct Clocks {
  var instant = Instant(nanoseconds: 5_000_000_000)
  var time = UnixTime(seconds: 1_790_000_000)

  var now: Moment { Moment(instant: instant, time: time) }

  /// Time passes.
  mutating func pass(minutes: Int64) {
    instant = instant + .seconds(minutes * 60)
    jump(minutes: minutes)
  }

  /// The wall clock is set; no time passes.
  mutating func jump(minutes: Int64) {
    time.milliseconds += minutes * 60_000
  }
}

@Suite struct ProviderTokenTests {
  private struct KeyGone: Error {}

  private static func signature(_ text: Span<UInt8>) -> [UInt8] { Array(repeating: 0xfb, count: 64) }

  private func token(_ clocks: Clocks) throws -> ProviderToken {
    var token = ProviderToken(keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
    #expect(token.needsSigning(at: clocks.now))
    #expect(!token.isUsable(at: clocks.now))
    try token.sign(at: clocks.now, signer: Self.signature)
    return token
  }

  @Test func theTextIsAJWT() throws {
    var seen: [UInt8] = []
    let text = try ProviderToken.text(
      keyID: "ABC123DEFG", teamID: "DEF123GHIJ", issuedAt: UnixTime(milliseconds: 1_790_000_000_999)
    ) { input in
      seen.append(span: input)
      return Self.signature(input)
    }
    let parts = String(decoding: text, as: UTF8.self).split(separator: ".", omittingEmptySubsequences: false)
    try #require(parts.count == 3)
    func decoded(_ part: Substring) -> String {
      var bytes: [UInt8] = []
      let isValid = Base64URL.decode(Array(part.utf8).span, into: &bytes)
      return isValid ? String(decoding: bytes, as: UTF8.self) : "invalid"
    }
    #expect(decoded(parts[0]) == #"{"alg":"ES256","kid":"ABC123DEFG"}"#)
    #expect(decoded(parts[1]) == #"{"iss":"DEF123GHIJ","iat":1790000000}"#)
    #expect(parts[2].count == 86 && !parts[2].contains("="))
    #expect(String(decoding: seen, as: UTF8.self) == "\(parts[0]).\(parts[1])")
  }

  @Test func aTokenIsRefreshedAtThirtyNineMinutesAndUsableForFiftyNine() throws {
    var clocks = Clocks()
    let token = try token(clocks)
    #expect(token.current?.version == TokenVersion(1))
    #expect(token.current?.authorization.starts(with: "bearer ey".utf8) == true)
    for minute in 0..<70 {
      #expect(token.needsSigning(at: clocks.now) == (minute >= 39), "minute \(minute)")
      #expect(token.isUsable(at: clocks.now) == (minute < 59), "minute \(minute)")
      clocks.pass(minutes: 1)
    }
  }

  @Test func theLastTwoAreKept() throws {
    var clocks = Clocks()
    var token = try token(clocks)
    let first = try #require(token.current)
    clocks.pass(minutes: 45)
    try token.sign(at: clocks.now, signer: Self.signature)
    let second = try #require(token.current)
    #expect(second.version == TokenVersion(2))
    #expect(second.issuedAt == UnixTime(seconds: clocks.time.seconds))
    #expect(token.signed(first.version)?.authorization == first.authorization)
    #expect(token.signed(second.version)?.authorization == second.authorization)
    clocks.pass(minutes: 45)
    try token.sign(at: clocks.now, signer: Self.signature)
    #expect(token.signed(first.version) == nil)
  }

  @Test func aFailureToSignKeepsTheTokenAndPauses() throws {
    var clocks = Clocks()
    var token = try token(clocks)
    clocks.pass(minutes: 46)
    #expect(throws: KeyGone.self) { try token.sign(at: clocks.now) { _ in throw KeyGone() } }
    #expect(!token.needsSigning(at: clocks.now))
    #expect(token.isUsable(at: clocks.now))
    clocks.instant = clocks.instant + .seconds(5)
    #expect(token.needsSigning(at: clocks.now))
    #expect(throws: ProviderToken.SigningError.badSignatureLength(70)) {
      try token.sign(at: clocks.now) { _ in Array(repeating: 1, count: 70) }
    }
    #expect(token.current?.version.number == 1)
  }

  // MARK: Clocks that jump

  @Test func aTokenFromTheFutureIsStale() throws {
    var clocks = Clocks()
    var token = try token(clocks)
    clocks.pass(minutes: 5)
    clocks.jump(minutes: -180)
    #expect(token.needsSigning(at: clocks.now))
    #expect(!token.isUsable(at: clocks.now))
    try token.sign(at: clocks.now, signer: Self.signature)
    #expect(token.isUsable(at: clocks.now))
    #expect(!token.needsSigning(at: clocks.now))
  }

  @Test func aSmallStepBackChangesNothing() throws {
    var clocks = Clocks()
    let token = try token(clocks)
    clocks.time.milliseconds -= 30_000
    #expect(!token.needsSigning(at: clocks.now))
    #expect(token.isUsable(at: clocks.now))
  }

  @Test func aClockSetBackDoesNotMakeATokenYounger() throws {
    var clocks = Clocks()
    let token = try token(clocks)
    clocks.pass(minutes: 34)
    clocks.jump(minutes: -30)
    #expect(!token.needsSigning(at: clocks.now))
    clocks.pass(minutes: 5)
    #expect(token.needsSigning(at: clocks.now))
  }

  @Test func aJumpForwardOrASuspendedMachineMakesATokenStale() throws {
    var clocks = Clocks()
    let token = try token(clocks)
    clocks.pass(minutes: 1)
    clocks.jump(minutes: 600)
    #expect(token.needsSigning(at: clocks.now))
    #expect(!token.isUsable(at: clocks.now))
  }

  @Test func aClockThatJumpsToAndFroMakesFewTokens() throws {
    var clocks = Clocks()
    var token = try token(clocks)
    var signed = 1
    for minute in 0..<240 {
      clocks.pass(minutes: 1)
      clocks.jump(minutes: minute.isMultiple(of: 2) ? 300 : -300)
      if token.needsSigning(at: clocks.now) {
        try token.sign(at: clocks.now, signer: Self.signature)
        signed += 1
      }
    }
    // At most one regular and one early token in each 20 minutes.
    #expect(signed <= 1 + 2 * 240 / 20)
    #expect(signed >= 240 / 45)
  }

  // MARK: ExpiredProviderToken

  @Test func oneRefreshServesAStormOfReports() throws {
    var clocks = Clocks()
    var token = try token(clocks)
    let first = try #require(token.current?.version)
    token.reportedAccepted(first)
    clocks.pass(minutes: 30)
    var answers: [ProviderToken.ExpiryReport] = []
    var signed = 0
    for _ in 0..<1000 {
      answers.append(token.reportedExpired(first, at: clocks.now))
      if token.needsSigning(at: clocks.now) {
        try token.sign(at: clocks.now, signer: Self.signature)
        signed += 1
      }
    }
    #expect(signed == 1)
    #expect(answers.filter { $0 == .refresh }.count == 1)
    #expect(answers.filter { $0 == .ignored }.count == 999)
    #expect(token.current?.replacesRefused == true && token.previous?.replacesRefused == false)
  }

  @Test func aFreshTokenThatWasNeverAcceptedPointsToTheClock() throws {
    var clocks = Clocks()
    var token = try token(clocks)
    let first = try #require(token.current?.version)
    #expect(token.reportedExpired(first, at: clocks.now) == .clockSkew)
    #expect(token.reportedExpired(first, at: clocks.now) == .ignored)
    var signed = 0
    var version = first
    for _ in 0..<120 {
      clocks.pass(minutes: 1)
      if token.needsSigning(at: clocks.now) {
        try token.sign(at: clocks.now, signer: Self.signature)
        signed += 1
        version = try #require(token.current?.version)
      }
      _ = token.reportedExpired(version, at: clocks.now)
    }
    #expect(signed == 6, "one each 20 minutes")
    token.reportedAccepted(version)
    #expect(!token.needsSigning(at: clocks.now))
  }

  @Test func aFreshTokenThatWasAcceptedElsewherePointsToTheConnection() throws {
    var clocks = Clocks()
    var token = try token(clocks)
    let first = try #require(token.current?.version)
    token.reportedAccepted(first)
    clocks.pass(minutes: 10)
    #expect(token.reportedExpired(first, at: clocks.now) == .connectionAtFault)
    #expect(!token.needsSigning(at: clocks.now))
  }

  @Test func reportsAboutOtherTokensAreIgnored() throws {
    var clocks = Clocks()
    var token = try token(clocks)
    clocks.pass(minutes: 50)
    try token.sign(at: clocks.now, signer: Self.signature)
    #expect(token.reportedExpired(TokenVersion(1), at: clocks.now) == .ignored)
    #expect(token.reportedExpired(TokenVersion(3), at: clocks.now) == .ignored)
    #expect(!token.needsSigning(at: clocks.now))
  }
}
