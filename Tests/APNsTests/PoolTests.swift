import APNs
import Testing
import Wire

@Suite struct PoolTests {
  func limits(_ connections: Int = 1, _ change: (inout PoolLimits) -> Void = { _ in }) -> PoolLimits {
    var limits = PoolLimits()
    limits.maxConnections = connections
    change(&limits)
    return limits
  }

  func takeAll(_ driver: inout PoolDriver) -> [ConnectionID] {
    var ids: [ConnectionID] = []
    while let id = driver.take() { ids.append(id) }
    return ids
  }

  // MARK: Stream limits

  @Test func aTokenConnectionHasOneStreamUntilTheFirstAnswer() throws {
    var driver = PoolDriver(limits: limits())
    driver.demand(500)
    let id = try #require(driver.connecting)
    driver.connected(id)
    #expect(takeAll(&driver) == [id])
    driver.settings(id, 1000)
    #expect(driver.take() == nil, "SETTINGS alone do not unlock it")
    driver.answered(id)
    #expect(takeAll(&driver).count == 500)
  }

  @Test func beforeSettingsATokenConnectionHasOneStreamAndACertificateAHundred() throws {
    for (authentication, count) in [(Authentication.token, 1), (.certificate, 100)] {
      var driver = PoolDriver(limits: limits(), authentication: authentication)
      driver.demand(500)
      driver.connected(try #require(driver.connecting))
      #expect(takeAll(&driver).count == count)
    }
  }

  @Test(
    arguments: [
      (400, .badDeviceToken, 1000), (410, .unregistered, 1000), (403, .invalidProviderToken, 1),
    ] as [(UInt16, Reason, Int)])
  func aFirstAnswerThatIsAnErrorUnlocksUnlessItIsOfTheCredentials(status: UInt16, reason: Reason, free: Int) throws {
    var driver = PoolDriver(limits: limits { $0.maxStreamsPerConnection = 2000 })
    driver.demand(5)
    let id = try #require(driver.connecting)
    driver.connected(id)
    driver.settings(id, 1000)
    driver.take()
    driver.answered(id, status, reason)
    #expect(driver.pool.free == free)
  }

  @Test func aLimitThatStaysAtOneLetsPushesThroughOneByOne() throws {
    var driver = PoolDriver(limits: limits())
    driver.demand(10)
    let id = try #require(driver.connecting)
    driver.connected(id)
    driver.settings(id, 1)
    for _ in 0..<10 {
      #expect(takeAll(&driver) == [id])
      driver.answered(id, 400, .badDeviceToken)
    }
  }

  @Test func theLimitIsFollowedUpAndDownAndToZero() throws {
    var driver = PoolDriver(limits: limits { $0.maxStreamsPerConnection = 100 })
    let id = try driver.open(limit: 1000)[0]
    #expect(takeAll(&driver).count == 100, "ours is lower")
    driver.settings(id, 1)
    for _ in 0..<99 { driver.answered(id) }
    #expect(driver.take() == nil)
    driver.answered(id)
    #expect(takeAll(&driver).count == 1)
    driver.settings(id, 0)
    driver.answered(id)
    #expect(driver.take() == nil)
    driver.settings(id, 7)
    #expect(takeAll(&driver).count == 7)
    driver.settings(id, .max)
    #expect(takeAll(&driver).count == 93)
  }

  @Test func aConnectionThatStaysAtZeroIsReplaced() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 10)[0]
    driver.settings(id, 0)
    driver.demand(5)
    driver.run(for: .seconds(31))
    #expect(driver.actions.contains(.close(id)))
    #expect(driver.connecting != nil)
  }

  // MARK: Choice and growth

  @Test func theLeastLoadedConnectionIsTaken() throws {
    var driver = PoolDriver(limits: limits(3))
    let ids = try driver.open(limit: 10)
    for _ in 0..<30 { driver.take() }
    for id in ids { #expect(driver.shadows[id]?.streams == 10) }
    driver.answered(ids[1])
    #expect(driver.take() == ids[1])
  }

  @Test func connectionsGrowOneByOneWithDemandUpToTheCap() throws {
    var driver = PoolDriver(limits: limits(3))
    driver.demand(1_000_000)
    var ids: [ConnectionID] = []
    for count in 1...3 {
      #expect(driver.connects == count)
      driver.demand(1_000_000)
      #expect(driver.connects == count, "one at a time")
      let id = try #require(driver.connecting)
      ids.append(id)
      driver.connected(id)
    }
    #expect(driver.connecting == nil)
    #expect(driver.pool.openCount == 3)
  }

  @Test func littleDemandNeedsOneConnection() throws {
    var driver = PoolDriver(limits: limits(4))
    driver.demand(50)
    let id = try #require(driver.connecting)
    driver.connected(id)
    driver.settings(id, 1)
    #expect(driver.connecting == nil, "it will soon give more than its one stream")
    driver.take()
    driver.answered(id)
    #expect(driver.connecting == nil, "SETTINGS may come a little after the answer")
    driver.settings(id, 1000)
    driver.demand(400)
    #expect(driver.connects == 1)
    driver.demand(501)
    #expect(driver.connects == 2)
  }

  @Test func aPushEveryNinetySecondsUsesOneConnection() throws {
    var driver = PoolDriver(limits: limits(4))
    for _ in 0..<40 {
      driver.demand(1)
      if let id = driver.connecting { driver.connected(id) }
      let taken = driver.take()
      let id = try #require(taken)
      driver.answered(id)
      for _ in 0..<90 {
        driver.run(for: .seconds(1))
        for case .ping(let id) in driver.takenActions() { driver.acknowledgePing(id) }
      }
    }
    #expect(driver.connects == 1)
  }

  @Test func surplusConnectionsCloseAfterIdlingButNotTheLast() throws {
    var driver = PoolDriver(limits: limits(3))
    _ = try driver.open(limit: 100)
    for _ in 0..<1300 {
      driver.run(for: .seconds(1))
      for action in driver.takenActions() {
        if case .ping(let id) = action { driver.acknowledgePing(id) }
        if case .close(let id) = action { driver.closed(id) }
      }
    }
    #expect(driver.pool.connections.count == 1)
    #expect(driver.connects == 3)
  }

  // MARK: The end of connections

  @Test func afterGoAwayNothingNewGoesOntoTheConnection() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    driver.demand(3)
    driver.take()
    driver.take()
    driver.goAway(id)
    driver.demand(1)
    #expect(driver.take() == nil)
    let next = try #require(driver.connecting)
    #expect(next != id, "the successor does not wait for the old socket")
    driver.goAway(id)
    driver.answered(id)
    driver.streamEnded(id)
    #expect(driver.actions.filter { $0 == .close(id) }.count == 1)
    driver.closed(id)
    driver.connected(next)
    #expect(driver.take() == next)
  }

  @Test func streamsThatAGoAwayLeavesSilentEndInTime() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    for _ in 0..<5 { driver.take() }
    driver.goAway(id)
    driver.run(for: .seconds(29))
    #expect(!driver.actions.contains(.close(id)))
    driver.run(for: .seconds(1))
    #expect(driver.actions.contains(.close(id)))
  }

  @Test(
    arguments: [
      (403, .expiredProviderToken), (429, .tooManyProviderTokenUpdates), (400, .idleTimeout), (503, .shutdown),
      (403, .unrelatedKeyIDInToken),
    ] as [(UInt16, Reason)])
  func someAnswersDrainTheConnectionAtOnce(status: UInt16, reason: Reason) throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    driver.demand(3)
    driver.take()
    driver.take()
    driver.answered(id, status, reason)
    #expect(driver.actions == [.drain(id), .connect(try #require(driver.connecting))])
    driver.answered(id)
    #expect(driver.actions.last == .close(id))
  }

  @Test func threeServerErrorsInARowReplaceTheConnection() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    driver.demand(20)
    for _ in 0..<10 { driver.take() }
    for status: UInt16 in [500, 503, 200, 500, 500, 410] { driver.answered(id, status) }
    #expect(driver.pool.openCount == 1)
    #expect(driver.actions.contains(.ping(id)), "a server error must be followed by a proof of life")
    for _ in 0..<3 { driver.answered(id, 500, .internalServerError) }
    #expect(driver.actions.suffix(2) == [.drain(id), .connect(try #require(driver.connecting))])
  }

  @Test func anUnansweredRequestFreesItsStreamAndAsksForAProof() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 2)[0]
    for _ in 0..<2 { driver.take() }
    driver.pass(.seconds(30))
    driver.timedOut(id)
    #expect(driver.actions == [.ping(id)])
    #expect(driver.pool.free == 1)
    driver.run(for: .seconds(4))
    #expect(driver.actions == [.ping(id)])
    driver.run(for: .seconds(1))
    #expect(driver.actions.last == .close(id))
    #expect(driver.pool.lastFailure == .silent)
  }

  @Test func everyTenthUnansweredRequestKeepsTheConnection() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    for round in 0..<2000 {
      #expect(driver.take() == id)
      driver.pass(.milliseconds(300))
      if round.isMultiple(of: 10) { driver.timedOut(id) } else { driver.answered(id) }
      for case .ping(let id) in driver.takenActions() { driver.acknowledgePing(id) }
    }
    #expect(driver.pool.streams == 0)
    #expect(driver.connects == 1)
  }

  /// The one that resets them has always the fewest streams. Refused ones count once in five seconds.
  @Test(arguments: [false, true])
  func aConnectionThatResetsItsStreamsIsReplaced(isRefused: Bool) throws {
    var driver = PoolDriver(limits: limits(4))
    let ids = try driver.open(limit: 100)
    driver.demand(1000)
    var resets = 0
    while driver.pool.endReason(of: ids[1]) == nil, resets < 1000 {
      guard let id = driver.take() else { break }
      if id == ids[1] {
        driver.streamReset(id, isRefused: isRefused)
        driver.acknowledgePing(id)
        resets += 1
      }
      driver.pass(.milliseconds(100))
    }
    #expect(driver.pool.endReason(of: ids[1]) == .replaced)
    #expect(resets <= (isRefused ? 110 : 3))
    for id in ids where id != ids[1] { #expect(driver.pool.endReason(of: id) == nil) }
  }

  @Test func manyStreamsThatAreRefusedAtOnceAreOneFault() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    for _ in 0..<50 { driver.take() }
    for _ in 0..<50 { driver.streamReset(id, isRefused: true) }
    #expect(driver.pool.endReason(of: id) == nil)
    #expect(driver.pool.streams == 0)
  }

  @Test func resetStreamsAreGivenBack() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    for _ in 0..<20 {
      #expect(takeAll(&driver).count == 100)
      for _ in 0..<100 { driver.streamEnded(id) }
    }
    #expect(driver.pool.streams == 0)
  }

  @Test func aSilentConnectionMustAnswerAPing() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    driver.run(for: .seconds(59))
    #expect(driver.actions.isEmpty)
    driver.run(for: .seconds(1))
    #expect(driver.takenActions() == [.ping(id)])
    driver.acknowledgePing(id)
    driver.run(for: .seconds(60))
    #expect(driver.takenActions() == [.ping(id)])
    driver.run(for: .seconds(10))
    #expect(driver.takenActions() == [.close(id)])
  }

  @Test func aPushOnASilentConnectionTakesAPingAlong() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    driver.run(for: .seconds(10))
    driver.take()
    driver.take()
    #expect(driver.takenActions() == [.ping(id)])
    driver.run(for: .seconds(5))
    #expect(driver.takenActions() == [.close(id)], "the path was cut: known long before the request's timeout")
  }

  @Test func agedConnectionsHandOverToTheirSuccessor() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    for _ in 0..<(7 * 3600 / 20) where driver.connecting == nil {
      driver.run(for: .seconds(20))
      if driver.connecting != nil { break }
      #expect(driver.take() == id)
      driver.answered(id)
      _ = driver.takenActions()
    }
    let next = try #require(driver.connecting)
    let age = driver.now - Instant(nanoseconds: 1_000_000_000)
    #expect(age >= .seconds(6 * 3240) && age <= .seconds(6 * 3960 + 20))
    #expect(driver.take() == id, "until then the old one works on")
    driver.connected(next)
    #expect(driver.actions.contains(.drain(id)))
    #expect(driver.take() == next)
    #expect(driver.take() == nil)
  }
}
