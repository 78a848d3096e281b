import Synchronization
package import Transport
import Wire

/// A look-alike of APNs: TLS, HTTP/2, Apple's rules, and whatever faults its script says.
///
/// It has threads of its own and can be asked and stopped from any thread but those.
package final class MockServer: Sendable {
  /// What it is to be.
  package struct Configuration: Sendable {
    /// Port 0: the kernel chooses.
    package var listen = Endpoint(host: "127.0.0.1", port: 0)
    /// The names and addresses that its certificate is for.
    package var hostNames = ["localhost", "127.0.0.1", "::1"]
    /// Who vouches for its certificate; `nil`: a new authority. A server that replaces another takes the same.
    package var authority: CertificateAuthority?
    /// Threads; connections are spread over them.
    package var loops = 1
    /// The keys that teams have registered.
    package var keys: [ProviderKey] = []
    /// Take every provider token that is well formed and of the right age, whoever signed it.
    package var acceptsAnyKey = false
    package var rules = Behaviour.Rules()
    /// The authority (PEM) of client certificates: a client that shows one needs no provider token. `nil`: none is asked.
    package var clientAuthority: String?
    package var script = Script()
    /// Of all that is random: same seed, same requests, same answers.
    package var seed: UInt64 = 1
    /// As the development environment: each answer has an `apns-unique-id`.
    package var isSandbox = false
    /// SETTINGS_MAX_CONCURRENT_STREAMS before the first request that is accepted.
    package var streamsAtFirst = 1
    /// SETTINGS_MAX_CONCURRENT_STREAMS after it.
    package var streamsLater = 1000
    package var journal = Journal.Limits()
    /// How far its wall clock is ahead of the machine's.
    package var clockOffset = Duration.zero

    package init() {}
  }

  /// Where clients connect to.
  package let endpoint: Endpoint
  /// The certificate to trust.
  package let authorityPEM: String
  /// What it saw; goes on to be readable after `stop`.
  package let journal: Journal
  private let server: HTTP2Server
  private let loops: [EventLoop]

  private init(endpoint: Endpoint, authorityPEM: String, journal: Journal, server: HTTP2Server, loops: [EventLoop]) {
    self.endpoint = endpoint
    self.authorityPEM = authorityPEM
    self.journal = journal
    self.server = server
    self.loops = loops
  }

  package var port: UInt16 { endpoint.port }
  /// Connections open now.
  package var connections: Int { server.connections }

  /// Makes certificates, starts the threads and listens.
  package static func start(_ configuration: Configuration) throws(TransportError) -> MockServer {
    let authority: CertificateAuthority
    if let given = configuration.authority {
      authority = given
    } else {
      authority = try CertificateAuthority(name: "APNs look-alike")
    }
    let identity = try authority.issueServer(names: configuration.hostNames)
    let tls = try TLSContext.server(
      identity: identity, applicationProtocols: ["h2"],
      clientAuthentication: configuration.clientAuthority.map { .requested(.pem($0)) } ?? .none)
    let shared = MockShared(configuration)
    var loops: [EventLoop] = []
    do throws(TransportError) {
      for number in 0..<max(1, configuration.loops) { loops.append(try EventLoop.start(name: "mock-apns-\(number)")) }
      let states = loops.enumerated().map { number, loop in
        LoopState(loop: loop, shared: shared, seed: configuration.seed &+ UInt64(number))
      }
      let server = try HTTP2Server.listen(
        on: loops, at: configuration.listen, tls: tls, limits: limits(configuration), connectionLimit: 16_384
      ) { connection in
        // There are a few loops at most, and the connection is on one of them.
        let state = states.first { $0.loop === connection.loop } ?? states[0]
        return MockConnection(state: state, number: shared.nextConnection())
      }
      return MockServer(
        endpoint: server.endpoint, authorityPEM: try authority.pem(), journal: shared.journal, server: server,
        loops: loops)
    } catch {
      for loop in loops { loop.stop() }
      throw error
    }
  }

  /// Apple's: header lists up to 8,000 bytes, bodies beyond all its limits cut.
  private static func limits(_ configuration: Configuration) -> HTTP2Limits {
    var limits = HTTP2Server.serverLimits
    limits.headerListSize = 8000
    limits.concurrentStreams = configuration.streamsAtFirst
    return limits
  }

  /// Stops listening, cuts all connections and ends the threads. Not from one of them.
  package func stop() {
    server.close()
    for loop in loops { loop.stop() }
  }
}

/// What all loops of a server share.
final class MockShared: Sendable {
  static let noBody = Bytes([])

  let configuration: MockServer.Configuration
  let judge: ProviderTokenJudge
  let behaviour: Behaviour
  let journal: Journal
  let channels = ChannelBook()
  let began = Clock.now
  private let offset: Int64
  private let numbered = Atomic<Int>(0)

  init(_ configuration: MockServer.Configuration) {
    self.configuration = configuration
    judge = ProviderTokenJudge(keys: configuration.keys, acceptsAnyKey: configuration.acceptsAnyKey)
    behaviour = Behaviour(judge: judge, rules: configuration.rules)
    journal = Journal(limits: configuration.journal)
    offset = configuration.clockOffset.nanoseconds / 1_000_000
  }

  func nextConnection() -> Int { numbered.add(1, ordering: .relaxed).newValue }

  func now(_ loop: EventLoop) -> Moment {
    var moment = loop.moment
    moment.time.milliseconds += offset
    return moment
  }
}
