import APNs
import Testing
import Wire

/// What the pool does when connections are full, or short-lived.
@Suite struct PoolPressureTests {
  private func driver(connections: Int, seed: UInt64 = 1) -> PoolDriver {
    var limits = PoolLimits()
    limits.maxConnections = connections
    return PoolDriver(limits: limits, seed: seed)
  }

  // MARK: Full outputs

  @Test func aFullConnectionIsPassedOverUntilItHasDrained() throws {
    var driver = driver(connections: 2)
    let ids = try driver.open(limit: 100)
    let taken = driver.take()
    let first = try #require(taken)
    driver.blocked(first)
    let other = try #require(ids.first { $0 != first })
    for _ in 0..<100 { #expect(driver.take() == other) }
    #expect(driver.take() == nil, "the other one has no stream left, and this one is full")
    driver.pool.drained(first)
    #expect(driver.take() == first)
    #expect(driver.pool.streams == 101)
  }

  @Test func whenAllAreFullNothingIsTaken() throws {
    var driver = driver(connections: 3)
    let ids = try driver.open(limit: 100)
    for _ in ids {
      let taken = driver.take()
      driver.blocked(try #require(taken))
    }
    #expect(driver.take() == nil)
    #expect(driver.pool.free == 0)
    #expect(driver.pool.streams == 0)
    driver.demand(50)
    #expect(driver.connecting == nil)
    driver.pool.drained(ids[1])
    #expect(driver.take() == ids[1])
  }

  @Test func anAnswerMakesAFullConnectionWorthATry() throws {
    var driver = driver(connections: 1)
    let id = try driver.open(limit: 100)[0]
    driver.take()
    driver.take()
    driver.blocked(id)
    #expect(driver.take() == nil)
    driver.answered(id)
    #expect(driver.take() == id)
  }

  @Test func aFullConnectionOpensNoOther() throws {
    var driver = driver(connections: 4)
    driver.demand(1)
    let id = try #require(driver.connecting)
    driver.connected(id)
    driver.settings(id, 100)
    driver.take()
    driver.answered(id)
    driver.settings(id, 100)
    driver.demand(50)
    driver.take()
    driver.blocked(id)
    driver.demand(50)
    #expect(driver.connects == 1)
  }

  @Test func aConnectionWithoutItsTokenIsReplaced() throws {
    var driver = driver(connections: 1)
    let id = try driver.open(limit: 100)[0]
    driver.demand(5)
    driver.take()
    driver.shadows[id]?.streams -= 1
    driver.pool.retire(id, now: driver.now)
    driver.settle()
    #expect(driver.actions.contains(.close(id)))
    #expect(driver.connecting != nil)
  }
}
