import APNs
import Testing
import Wire

@testable import Delivery

@Suite struct RetryPolicyTests {
  private let now = UnixTime(seconds: 1_790_000_000)

  private func decide(
    _ result: SendResult, attempts: Int = 1, unsent: Int = 0, expiration: Int64? = nil, refreshes: Int = 0,
    age: Int64 = 0, seed: UInt64 = 1, policy: RetryPolicy = RetryPolicy()
  ) -> RetryPolicy.Decision {
    var random = SeededRandom(seed: seed)
    let facts = RetryPolicy.Facts(
      attempts: attempts, unsent: unsent, expiration: expiration, refreshes: refreshes,
      takenUpAt: UnixTime(seconds: now.seconds - age))
    return policy.decide(result, facts, now: now, using: &random)
  }

  private func status(_ decision: RetryPolicy.Decision) -> String {
    switch decision {
    case .end(let ending): ending.status.rawValue
    case .again: "again"
    case .park: "park"
    }
  }

  private func delay(_ decision: RetryPolicy.Decision) -> Duration? {
    switch decision {
    case .end: nil
    case .again(let delay), .park(let delay): delay
    }
  }

  @Test(arguments: Reason.allCases.filter { $0 != .unknown })
  func everyReasonEndsOrGoesOnAsItsVerdictSays(reason: Reason) throws {
    let status = try #require(reason.status)
    let response = Response(status: status, reason: reason)
    let first = self.status(decide(.answered(response)))
    switch response.verdict {
    case .delivered: #expect(first == "delivered")
    case .rejected, .invalidToken, .credentialFault: #expect(first == "rejected")
    case .refreshToken, .replaceConnection, .throttled, .retry:
      #expect(first == "again")
      let isSlow = response.verdict == .throttled || response.verdict == .retry
      #expect(self.status(decide(.answered(response), attempts: 4)) == (isSlow ? "park" : "again"))
      #expect(self.status(decide(.answered(response), attempts: 5)) == "failed")
    }
  }

  @Test func anAnswerOf200Ends() {
    #expect(status(decide(.answered(Response(status: 200)))) == "delivered")
  }

  @Test func whatWasPerhapsSentCountsAndWhatSurelyWasNotDoesNot() {
    #expect(status(decide(.lost(.connectionClosed), attempts: 5)) == "failed")
    #expect(status(decide(.timedOut, attempts: 5)) == "failed")
    #expect(status(decide(.notSent(.unreachable), attempts: 4, unsent: 400)) == "again")
  }

  @Test func anAppThatCannotBeReachedIsWaitedForUntilTheLimit() {
    #expect(status(decide(.notSent(.unreachable), unsent: 9, age: 3599)) == "again")
    #expect(status(decide(.notSent(.unreachable), unsent: 9, age: 3601)) == "failed")
  }

  @Test func anExpirationOfZeroMeansOneAttempt() {
    #expect(status(decide(.answered(Response(status: 503)), expiration: 0)) == "failed")
    #expect(status(decide(.lost(.connectionClosed), expiration: 0)) == "failed")
    #expect(status(decide(.timedOut, expiration: 0)) == "failed")
    // It never reached APNs: the one attempt is still to come.
    #expect(status(decide(.notSent(.streamRefused), attempts: 0, unsent: 1, expiration: 0)) == "again")
    #expect(!RetryPolicy.isExpired(0, now: now))
  }

  @Test(arguments: 0..<50)
  func noWaitGoesPastTheExpiration(seed: UInt64) throws {
    let wait = try #require(
      delay(decide(.answered(Response(status: 503)), attempts: 4, expiration: now.seconds + 1, seed: seed)))
    #expect(wait <= .seconds(1))
  }

  @Test func theExpirationItselfIsTooLate() {
    #expect(RetryPolicy.isExpired(now.seconds, now: now))
    #expect(!RetryPolicy.isExpired(now.seconds + 1, now: now))
    #expect(!RetryPolicy.isExpired(nil, now: now))
  }

  @Test(arguments: 1..<5)
  func backoffIsExponentialWithFullJitter(attempt: Int) throws {
    var policy = RetryPolicy()
    policy.lastingBackoff = .zero
    let ceiling = Duration.milliseconds(500 * (1 << (attempt - 1)))
    let delays = (0..<400).compactMap {
      delay(decide(.answered(Response(status: 500)), attempts: attempt, seed: UInt64($0), policy: policy))
    }
    #expect(delays.count == 400)
    #expect(delays.allSatisfy { $0 >= .zero && $0 <= ceiling })
    #expect(try #require(delays.max()) > ceiling * 9 / 10)
    #expect(try #require(delays.min()) < ceiling / 10)
  }

  @Test(arguments: [Response(status: 503), Response(status: 429, reason: .tooManyRequests)])
  func troubleThatLastsIsWaitedForFifteenMinutesAndThenLonger(response: Response) throws {
    var policy = RetryPolicy()
    for (most, quick) in [(4, 3), (5, 3), (6, 4), (20, 18)] {
      policy.attempts = most
      for (attempts, minutes) in [(quick, 15), (quick + 1, 30)] where attempts < most {
        for seed in 0..<20 as Range<UInt64> {
          let decision = decide(.answered(response), attempts: attempts, seed: seed, policy: policy)
          #expect(status(decision) == "park")
          let waited = try #require(delay(decision))
          #expect(waited >= .seconds(60 * minutes) && waited <= .seconds(75 * minutes))
        }
      }
      #expect(status(decide(.answered(response), attempts: quick - 1, policy: policy)) == "again")
    }
  }

  @Test func noWaitIsLongerThanTheLongestPause() throws {
    var policy = RetryPolicy()
    let longestAsked = Response(status: 503, retryAfter: Response.longestRetryAfter)
    #expect(delay(decide(.answered(longestAsked), attempts: 1, policy: policy)) == policy.longestPause)
    policy.lastingBackoff = .seconds(3600)
    #expect(policy.longestPause == .seconds(9000))
    let waits = try (0..<200 as Range<UInt64>).map { seed in
      try #require(delay(decide(.answered(Response(status: 503)), attempts: 4, seed: seed, policy: policy)))
    }
    let longest = try #require(waits.max())
    #expect(longest <= policy.longestPause && longest > .seconds(8800))
  }

  @Test func aServerThatNamesTheWaitIsTakenAtItsWord() {
    let response = Response(status: 503, retryAfter: .seconds(40))
    #expect(delay(decide(.answered(response), attempts: 4)) == .seconds(40))
  }

  @Test(arguments: [(901, "again"), (100_000, "park")] as [(Int64, String)])
  func whatWouldExpireInALongWaitGoesOnWithShortOnes(left: Int64, outcome: String) throws {
    let decision = decide(.answered(Response(status: 503)), attempts: 3, expiration: now.seconds + left)
    #expect(status(decision) == outcome)
    if outcome == "again" { #expect(try #require(delay(decision)) <= .seconds(2)) }
  }

  @Test func aThirdExpiredProviderTokenIsAFaultOfTheCredentials() {
    let response = Response(status: 403, reason: .expiredProviderToken)
    #expect(status(decide(.answered(response), attempts: 1, refreshes: 0)) == "again")
    #expect(status(decide(.answered(response), attempts: 2, refreshes: 1)) == "again")
    #expect(status(decide(.answered(response), attempts: 3, refreshes: 2)) == "rejected")
  }

  @Test func longWaitsAreParked() {
    let response = Response(status: 429, reason: .tooManyRequests, retryAfter: .seconds(900))
    #expect(status(decide(.answered(response))) == "park")
    #expect(delay(decide(.answered(response))) == .seconds(900))
    #expect(status(decide(.answered(Response(status: 429, retryAfter: .seconds(20))))) == "again")
  }
}
