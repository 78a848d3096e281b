import APNs
import Testing
import Wire

/// Why a pool gives up a connection, and what it says of the app's way to APNs.
@Suite struct PoolEndReasonTests {
  private func limits(_ connections: Int = 1) -> PoolLimits {
    var limits = PoolLimits()
    limits.maxConnections = connections
    return limits
  }

  @Test func aPingWithoutAnAnswer() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 10)[0]
    driver.run(for: .seconds(60))
    #expect(driver.pool.endReason(of: id) == nil)
    driver.run(for: .seconds(10))
    #expect(driver.takenActions().last == .close(id))
    #expect(driver.pool.endReason(of: id) == .unresponsive)
  }

  @Test func aPingWithoutAnAnswerWhileItIsReplaced() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 10)[0]
    driver.take()
    driver.take()
    driver.timedOut(id)
    driver.pool.use(TokenVersion(2), isRefused: true, now: driver.now)
    #expect(driver.pool.endReason(of: id) == .replaced)
    driver.run(for: .seconds(5))
    #expect(driver.actions.contains(.close(id)))
    #expect(driver.pool.endReason(of: id) == .unresponsive)
  }

  @Test func anAttemptThatTakesTooLong() throws {
    var driver = PoolDriver(limits: limits())
    driver.demand(1)
    let id = try #require(driver.connecting)
    driver.run(for: .seconds(10))
    #expect(driver.actions.contains(.close(id)))
    #expect(driver.pool.endReason(of: id) == .notMade)
  }

  @Test func errorsInARow() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 10)[0]
    for _ in 0..<4 { driver.take() }
    for _ in 0..<3 { driver.answered(id, 500, .internalServerError) }
    #expect(driver.actions.contains(.drain(id)))
    #expect(driver.pool.endReason(of: id) == .replaced)
    // What comes later changes nothing.
    driver.pool.drain(by: driver.now + .seconds(1))
    #expect(driver.pool.endReason(of: id) == .replaced)
  }

  @Test func noStreamsToGive() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 10)[0]
    driver.settings(id, 0)
    driver.run(for: .seconds(31))
    #expect(driver.actions.contains(.close(id)))
    #expect(driver.pool.endReason(of: id) == .replaced)
  }

  @Test func aRefusedToken() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 10)[0]
    driver.pool.use(TokenVersion(2), isRefused: true, now: driver.now)
    #expect(driver.pool.endReason(of: id) == .replaced)
  }

  @Test func moreConnectionsThanAreNeeded() throws {
    var driver = PoolDriver(limits: limits(2))
    let ids = try driver.open(limit: 10)
    for _ in 0..<60 {
      driver.run(for: .seconds(20))
      for case .ping(let id) in driver.takenActions() { driver.acknowledgePing(id) }
    }
    #expect(driver.pool.openCount == 1)
    #expect(ids.compactMap { driver.pool.endReason(of: $0) } == [.unneeded])
  }

  @Test func theEndOfTheApp() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 10)[0]
    driver.pool.drain(by: driver.now + .seconds(1))
    #expect(driver.pool.endReason(of: id) == .unneeded)
    #expect(driver.pool.endReason(of: ConnectionID(77)) == nil)
  }

  @Test func anAnswerShowsThatAPNsIsReached() throws {
    var driver = PoolDriver(limits: limits())
    driver.demand(1)
    driver.closed(try #require(driver.connecting), .tls)
    #expect(driver.pool.lastFailure == .tls)
    driver.run(for: .seconds(1))
    let id = try #require(driver.connecting)
    driver.connected(id)
    driver.settings(id, 10)
    #expect(driver.pool.lastFailure == .tls, "APNs may take the connection and say nothing for ever")
    driver.take()
    driver.answered(id)
    #expect(driver.pool.lastFailure == nil)
  }
}
