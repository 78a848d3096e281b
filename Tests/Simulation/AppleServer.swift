import APNs
import Delivery
import Wire

/// Apple's side of one app: a mood that changes, and what it answers in it.
final class AppleServer {
  let world: World
  let oracle: Oracle
  private let isSick: Bool
  private(set) var mood: Fault?
  private(set) var streamLimit = 100

  private static let moods: [Fault] = [
    .refused, .handshake, .blackHole, .silent, .throttled, .serverErrors, .badCredentials, .slowAnswers,
  ]

  init(world: World, oracle: Oracle, isSick: Bool) {
    self.world = world
    self.oracle = oracle
    self.isSick = isSick
    changeMood()
  }

  private func changeMood() {
    mood = isSick ? Self.moods.filter { world.strikes($0) }.randomElement(using: &world.random) : nil
    if isSick || world.faults.weights[.streamLimit] != nil {
      streamLimit = world.pick([1, 2, 5, 20, 100, 1000])
    }
    guard !world.isCalm else {
      mood = nil
      streamLimit = 100
      return
    }
    world.after(min(world.between(.seconds(1), .seconds(25)), world.faultsEnd - world.now)) { self.changeMood() }
  }

  /// What the server says to a request that has reached it, and when; `nil`: nothing, ever.
  func answer(to item: Int) -> (Response, Duration)? {
    var delay = world.between(.milliseconds(5), .milliseconds(60))
    switch mood {
    case .silent where world.random.chance(0.8), .blackHole: return nil
    case .slowAnswers: delay = world.between(.seconds(1), .seconds(40))
    case .throttled where world.random.chance(0.7):
      let wait: Duration? =
        world.random.chance(0.3) ? .seconds(world.random.uniform(below: 90)) : nil
      return (Response(status: 429, reason: .tooManyRequests, retryAfter: wait), delay)
    case .serverErrors where world.random.chance(0.7):
      let reasons: [(UInt16, Reason)] = [
        (500, .internalServerError), (503, .serviceUnavailable), (503, .shutdown), (403, .expiredProviderToken),
      ]
      let (status, reason) = world.pick(reasons)
      return (Response(status: status, reason: reason), delay)
    case .badCredentials: return (Response(status: 403, reason: .invalidProviderToken), delay)
    default: break
    }
    if world.strikes(.deadTokens) {
      return (Response(status: 410, reason: .unregistered, timestamp: world.time), delay)
    }
    oracle[item].accepted += 1
    return (Response(status: 200), delay)
  }
}

/// One connection of a lane to Apple.
final class AppleConnection {
  struct Stream {
    var tag: UInt64
    var item: Int
  }

  let id: ConnectionID
  private let server: AppleServer
  private unowned let client: SimulatedLaneApp
  /// Nothing comes back any more, though nobody says so.
  private var isCut = false
  private var isGoingAway = false
  private(set) var isGone = false
  private var streams: [Stream] = []
  private var world: World { server.world }

  init(id: ConnectionID, server: AppleServer, client: SimulatedLaneApp) {
    self.id = id
    self.server = server
    self.client = client
  }

  func connect() {
    let delay = world.between(.milliseconds(5), .milliseconds(80))
    switch server.mood {
    case .blackHole: return
    case .refused: world.after(delay) { self.end(.unreachable) }
    case .handshake: world.after(delay) { self.end(.tls) }
    default:
      world.after(delay) { [self] in
        guard !isGone else { return }
        isCut = server.mood == .silent && world.random.chance(0.3)
        client.ready(self)
        world.after(.milliseconds(2)) { self.sendSettings() }
      }
    }
  }

  private func sendSettings() {
    guard !isGone, !isCut else { return }
    client.settings(self, limit: server.streamLimit)
  }

  func open(_ stream: Stream) {
    streams.append(stream)
    guard !isCut else { return }
    if world.strikes(.connectionReset) {
      world.after(.milliseconds(3)) { self.reset() }
    } else if world.strikes(.goAway) {
      world.after(.milliseconds(3)) { self.goAway() }
    } else if world.strikes(.streamLimit) {
      world.after(.milliseconds(3)) { [self] in
        guard !isGone, !isCut else { return }
        client.settings(self, limit: world.pick([0, 1, 3, 50]))
        world.after(.seconds(3)) { self.sendSettings() }
      }
    }
    world.after(.milliseconds(2)) { self.arrived(stream) }
  }

  private func arrived(_ stream: Stream) {
    guard has(stream.tag) else { return }
    if world.strikes(.streamReset) {
      let isRefused = world.random.chance(0.5)
      // It may have been taken all the same.
      if !isRefused { server.oracle[stream.item].accepted += 1 }
      fail(stream.tag, isRefused ? .notSent(.streamRefused) : .lost(.streamRefused))
      return
    }
    guard let (response, delay) = server.answer(to: stream.item) else { return }
    world.after(delay) { [self] in
      guard !isCut, remove(stream.tag) else { return }
      client.answered(self, stream.tag, response)
    }
  }

  private func goAway() {
    guard !isGone, !isGoingAway else { return }
    isGoingAway = true
    let unprocessed = streams.suffix(world.random.uniform(below: streams.count + 1))
    for stream in unprocessed { fail(stream.tag, .notSent(.streamRefused)) }
    client.wentAway(self)
    world.after(world.between(.milliseconds(1), .seconds(3))) { self.reset() }
  }

  private func reset() { end(.closed) }

  /// The client gives a stream up.
  func cancel(_ tag: UInt64) { _ = remove(tag) }

  func ping() {
    world.after(.milliseconds(20)) { [self] in
      guard !isGone, !isCut, server.mood != .blackHole else { return }
      client.pingAcknowledged(self)
    }
  }

  /// The client ends it: what is open is lost.
  func close() { world.after(.milliseconds(1)) { self.end(.closed) } }

  /// The process at the client's end is gone.
  func vanish() {
    isGone = true
    streams = []
  }

  private func end(_ failure: ConnectionFailure) {
    guard !isGone else { return }
    let lost = streams
    streams = []
    for stream in lost { client.failed(self, stream.tag, .lost(.connectionClosed)) }
    isGone = true
    client.closed(self, failure)
  }

  private func fail(_ tag: UInt64, _ result: SendResult) {
    if remove(tag) { client.failed(self, tag, result) }
  }

  private func has(_ tag: UInt64) -> Bool { !isGone && streams.contains { $0.tag == tag } }

  private func remove(_ tag: UInt64) -> Bool {
    guard !isGone, let index = streams.firstIndex(where: { $0.tag == tag }) else { return false }
    streams.remove(at: index)
    return true
  }
}
