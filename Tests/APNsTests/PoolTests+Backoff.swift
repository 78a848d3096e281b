import APNs
import Testing
import Wire

// How pools fare when connections cannot be made, credentials change or the end comes.
extension PoolTests {
  // MARK: Backoff

  @Test func failedAttemptsAreSpacedAndReported() throws {
    var driver = PoolDriver(limits: limits(), seed: 42)
    driver.demand(100)
    var longest: Duration = .zero
    for attempt in 1...200 {
      let id = try #require(driver.connecting)
      driver.closed(id, .tls)
      #expect(driver.pool.lastFailure == .tls)
      if let until = driver.pool.unreachableUntil {
        let delay = until - driver.now
        let ceiling: Duration = .milliseconds(500 * (1 << min(attempt - 1, 6)))
        #expect(delay <= min(ceiling, .seconds(30)))
        longest = max(longest, delay)
        #expect(driver.connecting == nil)
        driver.demand(100)
        #expect(driver.connecting == nil, "no attempt while backing off")
        driver.run(for: delay)
      }
    }
    #expect(longest > .seconds(20))
    let id = try #require(driver.connecting)
    driver.connected(id)
    #expect(driver.pool.unreachableUntil == nil)
    #expect(driver.take() == id)
  }

  @Test func anAttemptWithoutAnEndTimesOut() throws {
    var driver = PoolDriver(limits: limits())
    driver.demand(1)
    let id = try #require(driver.connecting)
    driver.run(for: .seconds(10))
    #expect(driver.actions.contains(.close(id)))
    #expect(driver.pool.lastFailure == .unreachable)
    driver.closed(id)
    driver.run(for: .seconds(1))
    #expect(driver.connects == 2)
  }

  @Test func aPoolWithAUsableConnectionIsNotUnreachable() throws {
    var driver = PoolDriver(limits: limits(2))
    driver.demand(1000)
    let first = try #require(driver.connecting)
    driver.connected(first)
    driver.closed(try #require(driver.connecting), .unreachable)
    #expect(driver.pool.unreachableUntil == nil)
    #expect(driver.take() == first)
  }

  @Test func connectionsThatComeToNothingAreNotMadeAgainAtOnce() throws {
    var driver = PoolDriver(limits: limits(), seed: 3)
    driver.demand(1000)
    for _ in 0..<600 {
      if let id = driver.connecting {
        driver.connected(id)
        driver.goAway(id)
      }
      for case .close(let id) in driver.takenActions() { driver.closed(id) }
      driver.run(for: .seconds(1))
      driver.demand(1000)
    }
    #expect(driver.connects < 100)
    #expect(driver.connects > 20)
  }

  // MARK: Credentials

  @Test func aConnectionChangesItsTokenAtMostOnceInTwentyMinutes() throws {
    var driver = PoolDriver(limits: limits())
    let id = try driver.open(limit: 100)[0]
    var changes: [Instant] = []
    var last = driver.pool.token(of: id)
    for minute in 1...90 {
      driver.pool.use(TokenVersion(UInt32(minute)), now: driver.now)
      driver.take()
      driver.answered(id)
      let version = driver.pool.token(of: id)
      if version != last { changes.append(driver.now) }
      last = version
      driver.pass(.seconds(60))
    }
    #expect(changes.count == 4, "the first token counts as one")
    for (earlier, later) in zip(changes, changes.dropFirst()) { #expect(later - earlier >= .seconds(1200)) }
    #expect(driver.connects == 1)
  }

  /// APNs refuses a token of an hour, and a connection that changes its token too soon. Both clocks together.
  @Test(arguments: 1...20)
  func whateverAConnectionMayCarryIsNeverTooOld(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let rules = ProviderToken.Rules()
    var connections: [ConnectionState] = []
    var carried: [ConnectionID: (token: TokenVersion, since: Instant)] = [:]
    var signed: [Instant] = []
    for minute in 0..<600 {
      let now = Instant(nanoseconds: Int64(minute) * 60_000_000_000)
      if signed.last.map({ now - $0 >= rules.refreshAge }) ?? true { signed.append(now) }
      let current = TokenVersion(UInt32(signed.count))
      if random.chance(0.1) {
        var connection = ConnectionState(
          id: ConnectionID(UInt32(minute)), authentication: .token, token: current, limits: limits(), now: now)
        connection.connected(retireAt: .distantFuture, now: now)
        connections.append(connection)
      }
      for index in connections.indices where random.chance(0.3) {
        connections[index].offer(current, limits: limits(), now: now)
        _ = connections[index].streamOpened(limits: limits(), now: now)
        _ = connections[index].streamEnded()
        let (id, token) = (connections[index].id, connections[index].token)
        #expect(now - signed[Int(token.number) - 1] < rules.usableAge)
        guard carried[id]?.token != token else { continue }
        if let earlier = carried[id] { #expect(now - earlier.since >= rules.minimumInterval) }
        carried[id] = (token, now)
      }
    }
    #expect(connections.count > 20)
  }

  // MARK: The end of the pool

  @Test func aDrainedPoolEndsWhenItsStreamsHave() throws {
    var driver = PoolDriver(limits: limits(3))
    let ids = try driver.open(limit: 100)
    driver.take()
    driver.take()
    driver.pool.drain(by: driver.now + .seconds(20))
    driver.settle()
    #expect(driver.take() == nil)
    driver.demand(5)
    driver.answered(ids[0])
    for case .close(let id) in driver.takenActions() { driver.closed(id) }
    #expect(!driver.pool.isFinished)
    driver.run(for: .seconds(20))
    #expect(driver.takenActions() == [.close(ids[1])])
    driver.closed(ids[1])
    #expect(driver.pool.isFinished)
    #expect(driver.connects == 3)
    #expect(driver.pool.nextDeadline == .distantFuture)
  }
}
