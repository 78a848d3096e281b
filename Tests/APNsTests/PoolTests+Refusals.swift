import APNs
import Testing
import Wire

// Answers that cast doubt on a connection rather than on the push.
extension PoolTests {
  @Test(
    arguments: [
      (403, .invalidProviderToken), (403, .badCertificate), (400, .topicDisallowed), (403, .forbidden),
    ] as [(UInt16, Reason)])
  func anOldConnectionOnWhichTheCredentialsAreRefusedIsReplaced(status: UInt16, reason: Reason) throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    driver.demand(1)
    for _ in 0..<20 {
      #expect(driver.take() == id)
      driver.answered(id, status, reason)
    }
    #expect(driver.pool.openCount == 1, "a young one is kept: the next would fare no better")

    driver.run(for: .seconds(50))
    for _ in 0..<5 {
      driver.acknowledgePing(id)
      driver.run(for: .seconds(50))
    }
    driver.acknowledgePing(id)
    #expect(driver.take() == id)
    driver.answered(id, status, reason)
    driver.demand(1)
    let next = try #require(driver.connecting)
    #expect(next != id && driver.connects == 2)
    driver.closed(id)
    driver.connected(next)
    for _ in 0..<20 {
      #expect(driver.take() == next)
      driver.answered(next, status, reason)
    }
    #expect(driver.connects == 2)
  }

  @Test func someRefusalsAmongGoodAnswersKeepTheConnection() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    for round in 0..<2000 {
      driver.pass(.seconds(1))
      #expect(driver.take() == id)
      if round % 3 == 0 { driver.answered(id) } else { driver.answered(id, 400, .topicDisallowed) }
      _ = driver.takenActions()
    }
    #expect(driver.connects == 1)
  }

  @Test(arguments: [500, 503] as [UInt16])
  func aServerErrorAfterARestReplacesTheConnection(status: UInt16) throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    driver.run(for: .seconds(60))
    driver.acknowledgePing(id)
    _ = driver.takenActions()
    #expect(driver.take() == id)
    driver.demand(1)
    driver.answered(id, status)
    #expect(driver.actions.contains(.close(id)))
    #expect(driver.connecting != nil && driver.connecting != id)
  }

  @Test func aGoodAnswerAfterARestRestoresTrust() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    driver.run(for: .seconds(60))
    driver.acknowledgePing(id)
    for status: UInt16 in [200, 500, 500, 200, 500] {
      #expect(driver.take() == id)
      driver.answered(id, status)
    }
    #expect(driver.pool.openCount == 1 && driver.connects == 1)
  }

  @Test func aRefusedProviderTokenReplacesEveryConnection() throws {
    var driver = PoolDriver(limits: limits(3))
    let ids = try driver.open(limit: 100)
    driver.demand(3)
    #expect(driver.take() == ids[0])
    driver.pool.use(TokenVersion(2), now: driver.now)
    driver.settle()
    #expect(driver.actions.isEmpty, "a token that is only old is no reason")
    driver.pool.use(TokenVersion(3), isRefused: true, now: driver.now)
    driver.settle()
    #expect(driver.actions.prefix(3) == [.drain(ids[0]), .close(ids[1]), .close(ids[2])])
    let next = try #require(driver.connecting)
    #expect(driver.pool.token(of: next) == TokenVersion(3))
  }
}
