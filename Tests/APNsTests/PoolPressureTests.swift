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
    driver.pool.unblocked(first)
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
    driver.pool.unblocked(ids[1])
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

  @Test func settingsAndPingsMakeAFullConnectionWorthATry() throws {
    var driver = PoolDriver(limits: PoolLimits(), authentication: .certificate)
    driver.demand(50)
    let id = try #require(driver.connecting)
    driver.connected(id)
    for (index, words) in ["SETTINGS", "PING"].enumerated() {
      driver.take()
      driver.take()
      // Before its SETTINGS HTTP/2 takes one request; none was answered yet.
      driver.blocked(id)
      #expect(driver.take() == nil)
      index == 0 ? driver.settings(id, 1000) : driver.acknowledgePing(id)
      #expect(driver.take() == id, "\(words)")
    }
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

  // MARK: Short lives

  /// A server that answers so many pushes well on each connection and then ends it; how often was it connected to?
  private func connects(
    answers: Int, life: Duration, in time: Duration, seed: UInt64, end: (inout PoolDriver, ConnectionID) -> Void
  ) -> Int {
    var driver = driver(connections: 1, seed: seed)
    let until = driver.now + time
    while driver.now < until {
      driver.demand(1000)
      if let id = driver.connecting {
        driver.connected(id)
        driver.settings(id, 1)
        for _ in 0..<answers {
          driver.take()
          driver.answered(id)
        }
        driver.pass(life)
        end(&driver, id)
        for case .close(let id) in driver.takenActions() { driver.closed(id) }
      }
      driver.run(for: .milliseconds(10))
    }
    return driver.connects
  }

  @Test(arguments: 1...10 as ClosedRange<UInt64>)
  func aServerThatClosesAfterEachPushIsNotStormed(seed: UInt64) {
    let count = connects(answers: 1, life: .milliseconds(5), in: .seconds(600), seed: seed) { driver, id in
      driver.closed(id)
    }
    #expect(count < 100)
    #expect(count > 10, "it goes on being tried")
  }

  @Test(arguments: 1...10 as ClosedRange<UInt64>)
  func norIsOneThatSaysGoAwayAfterEachPush(seed: UInt64) {
    let count = connects(answers: 1, life: .milliseconds(5), in: .seconds(600), seed: seed) { driver, id in
      driver.goAway(id)
    }
    #expect(count < 100)
    #expect(count > 10)
  }

  @Test func aServerThatClosesAfterManyPushesOrAWhileIsConnectedToAtOnce() {
    let busy = connects(answers: 100, life: .milliseconds(10), in: .seconds(10), seed: 1) { $0.closed($1) }
    #expect(busy > 400)
    let slow = connects(answers: 1, life: .seconds(5), in: .seconds(600), seed: 1) { $0.closed($1) }
    #expect(slow > 115)
  }

  @Test func anOlderConnectionDoesNotExcuseTheYoungerOnes() throws {
    var driver = driver(connections: 2, seed: 5)
    let ids = try driver.open(limit: 2)
    driver.closed(ids[1])
    for _ in 0..<60_000 {
      driver.demand(1000)
      if let id = driver.connecting {
        driver.connected(id)
        driver.closed(id)
      }
      if driver.shadows[ids[0]]?.streams == 0 { driver.take() }
      driver.answered(ids[0])
      driver.pass(.milliseconds(10))
      driver.pool.tick(now: driver.now)
      driver.settle()
    }
    #expect(driver.connects < 100)
    #expect(driver.connects > 10)
  }

  @Test func aConnectionThatLastsEndsTheWait() throws {
    var driver = driver(connections: 1)
    for _ in 0..<20 {
      driver.demand(10)
      if let id = driver.connecting {
        driver.connected(id)
        driver.closed(id)
      }
      driver.run(for: .seconds(31))
    }
    driver.demand(10)
    let id = try #require(driver.connecting)
    driver.connected(id)
    driver.run(for: .seconds(6))
    driver.take()
    driver.answered(id)
    driver.demand(10)
    driver.closed(id)
    driver.demand(10)
    #expect(driver.connecting != nil, "once may happen")
  }
}
