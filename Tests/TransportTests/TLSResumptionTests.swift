import Synchronization
import TestSupport
import Testing
import Wire

@testable import Transport

@Suite struct TLSResumptionTests {
  private let fixture: LoopFixture
  private let authority: CertificateAuthority

  init() throws {
    fixture = try LoopFixture()
    authority = try CertificateAuthority(name: "Root")
  }

  private func client(_ identity: Identity? = nil) throws -> TLSContext {
    try .client(trust: .pem(try authority.pem()), identity: identity, applicationProtocols: [])
  }

  private func listen(_ clients: ClientAuthentication = .none) throws -> Listener {
    let tls = try TLSContext.server(
      identity: try authority.issueServer(names: ["localhost"]), applicationProtocols: [],
      clientAuthentication: clients)
    return try fixture.listen(tls: tls) { echo() }
  }

  /// Connects, waits for an echo (behind which the server's sessions have come), and closes.
  /// - Returns: whether the handshake resumed a session.
  private func connect(_ listener: Listener, _ tls: TLSContext, _ sessions: TLSSessionCache?) throws -> Bool {
    let isResumed = Monitor<Bool?>(nil)
    let recorder = Recorder(
      opened: { stream in
        isResumed.update { $0 = stream.isResumed }
        write("hi", to: stream)
      }, received: { stream, _ in stream.close() })
    fixture.loop.execute { [loop = fixture.loop] in
      _ = ByteStream.connect(
        on: loop, to: listener.endpoint, tls: tls, sessions: sessions, serverName: "localhost",
        deadline: loop.now + .seconds(20), delegate: recorder)
    }
    let end = try #require(recorder.waitForEnd())
    #expect(end.error == nil)
    return try #require(isResumed.value as Bool?)
  }

  @Test func aSecondConnectionResumesTheSessionOfTheFirst() throws {
    let listener = try listen()
    let (tls, sessions) = (try client(), TLSSessionCache())
    #expect(try !connect(listener, tls, sessions))
    #expect(sessions.count > 0)
    for _ in 0..<5 { #expect(try connect(listener, tls, sessions)) }
  }

  @Test func withoutACacheEachHandshakeIsAFullOne() throws {
    let listener = try listen()
    let tls = try client()
    for _ in 0..<3 { #expect(try !connect(listener, tls, nil)) }
  }

  @Test func whatHasBeenLetGoIsNotResumed() throws {
    let listener = try listen()
    let (tls, sessions) = (try client(), TLSSessionCache())
    _ = try connect(listener, tls, sessions)
    sessions.removeAll()
    #expect(try !connect(listener, tls, sessions))
  }

  @Test func theCacheIsBoundedHoweverManySessionsAServerSends() throws {
    let listener = try listen()
    let (tls, sessions) = (try client(), TLSSessionCache())
    // Of each connection that resumes nothing, two sessions are left over.
    let others = (0..<10).map { _ in TLSSessionCache() }
    for other in others { _ = try connect(listener, tls, other) }
    for other in others { while let session = other.take() { sessions.put(session) } }
    #expect(sessions.count == TLSSessionCache.capacity)
    #expect(try connect(listener, tls, sessions))
  }

  @Test func aSessionOfTLS13IsGivenOnce() throws {
    let listener = try listen()
    let sessions = TLSSessionCache()
    _ = try connect(listener, try client(), sessions)
    let before = sessions.count
    let first = try #require(sessions.take())
    #expect(first.isForOneUse && sessions.count == before - 1)
    #expect(sessions.take() !== first)
  }

  /// A session goes on as whoever began it; with caches of their own, two identities never meet.
  @Test func aClientsCertificateIsThatOfItsSession() throws {
    let listener = try listen(.required(.pem(try authority.pem())))
    let contexts = try ["one", "two"].map { try client(try authority.issueClient(name: $0, userID: $0)) }
    let caches = [TLSSessionCache(), TLSSessionCache()]
    for round in 0..<3 {
      for index in contexts.indices {
        #expect(try connect(listener, contexts[index], caches[index]) == (round > 0))
      }
    }
  }

  /// The certificate is looked at when a session begins: another authority cannot be slipped in later.
  @Test func aSessionThatTheServerDoesNotKnowIsNoWayAroundTheCheck() throws {
    let first = try listen()
    let sessions = TLSSessionCache()
    let tls = try client()
    _ = try connect(first, tls, sessions)
    let stranger = try TLSContext.server(
      identity: try CertificateAuthority(name: "Other").issueServer(names: ["localhost"]), applicationProtocols: [])
    let second = try fixture.listen(tls: stranger) { echo() }
    let recorder = Recorder()
    fixture.loop.execute { [loop = fixture.loop] in
      _ = ByteStream.connect(
        on: loop, to: second.endpoint, tls: tls, sessions: sessions, serverName: "localhost",
        deadline: loop.now + .seconds(20), delegate: recorder)
    }
    #expect(try #require(recorder.waitForEnd()).error?.kind == .certificateRefused)
  }
}
