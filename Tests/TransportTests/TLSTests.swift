import Synchronization
import TestSupport
import Testing
import Wire

@testable import Transport

@Suite struct TLSTests {
  private struct Ends {
    var client: Recorder.Log
    var server: Recorder.Log
  }

  private let authority: CertificateAuthority

  init() throws { authority = try CertificateAuthority(name: "Root") }

  private func server(
    _ names: [String] = ["localhost"], validity: CertificateAuthority.Validity = .current,
    protocols: [String] = ["h2", "http/1.1"], clients: ClientAuthentication = .none
  ) throws -> TLSContext {
    try .server(
      identity: try authority.issueServer(names: names, validity: validity), applicationProtocols: protocols,
      clientAuthentication: clients)
  }

  private func client(
    identity: Identity? = nil, protocols: [String] = ["h2"], trust: CertificateAuthority? = nil
  ) throws -> TLSContext {
    try .client(
      trust: .pem(try (trust ?? authority).pem()), identity: identity, applicationProtocols: protocols)
  }

  /// Connects, exchanges a greeting if the handshake works, closes, and answers with what both ends noted.
  private func meet(_ client: TLSContext, _ server: TLSContext, name: String = "localhost") throws -> Ends {
    let fixture = try LoopFixture()
    let far = Recorder(received: { stream, bytes in stream.write(bytes) })
    let listener = try fixture.listen(tls: server) { far }
    let near = Recorder(opened: { stream in write("hi", to: stream) }, received: { stream, _ in stream.close() })
    fixture.connect(to: listener.endpoint, tls: client, serverName: name, near)
    return Ends(client: try #require(near.waitForEnd()), server: try #require(far.waitForEnd()))
  }

  @Test(arguments: [(["h2"], "h2"), (["http/1.1", "h2"], "h2"), (["http/1.1"], "http/1.1")])
  func theServersFirstChoiceAmongTheOfferedProtocolsIsTaken(_ offered: [String], _ chosen: String) throws {
    let ends = try meet(try client(protocols: offered), try server())
    #expect(ends.client.applicationProtocol == chosen)
    #expect(ends.server.applicationProtocol == chosen)
    #expect(ends.client.error == nil && ends.server.error == nil)
  }

  @Test func aCommonProtocolIsRequired() throws {
    let refused = try meet(try client(protocols: ["h2"]), try server(protocols: ["http/1.1"]))
    #expect(refused.client.error?.kind == .applicationProtocol)
    #expect(refused.server.error?.kind == .applicationProtocol)
    #expect(refused.client.opened == 0 && refused.server.opened == 0)
    // A server that does not know ALPN chooses nothing.
    let silent = try meet(try client(protocols: ["h2"]), try server(protocols: []))
    #expect(silent.client.error?.kind == .applicationProtocol)
    #expect(silent.client.error?.cause.contains("h2") == true)
  }

  @Test func aCertificateForAnotherNameIsRefused() throws {
    let ends = try meet(try client(), try server(["other.example"]))
    #expect(ends.client.error?.kind == .certificateRefused)
    #expect(ends.client.error?.subject == "localhost")
    #expect(ends.client.error?.cause.contains("hostname mismatch") == true)
    #expect(ends.server.error?.kind == .alert)
  }

  @Test func aCertificateForAnotherAddressIsRefused() throws {
    let ends = try meet(try client(), try server(["127.0.0.2"]), name: "127.0.0.1")
    #expect(ends.client.error?.kind == .certificateRefused)
    #expect(ends.client.error?.cause.contains("IP address mismatch") == true)
    #expect(try meet(try client(), try server(["127.0.0.1"]), name: "127.0.0.1").client.error == nil)
  }

  @Test func aWildcardCoversOneLabel() throws {
    #expect(try meet(try client(), try server(["*.push.example"]), name: "api.push.example").client.error == nil)
    let deeper = try meet(try client(), try server(["*.push.example"]), name: "a.b.push.example")
    #expect(deeper.client.error?.kind == .certificateRefused)
  }

  @Test func anUnknownAuthorityIsRefused() throws {
    let ends = try meet(try client(trust: try CertificateAuthority(name: "Other")), try server())
    #expect(ends.client.error?.kind == .certificateRefused)
    #expect(ends.client.error?.cause.contains("unable to get local issuer certificate") == true)
    let system = try meet(try TLSContext.client(trust: .system), try server())
    #expect(system.client.error?.kind == .certificateRefused)
  }

  @Test func anExpiredCertificateIsRefused() throws {
    let past = CertificateAuthority.Validity(
      from: UnixTime(seconds: 1_500_000_000), until: UnixTime(seconds: 1_600_000_000))
    let ends = try meet(try client(), try server(validity: past))
    #expect(ends.client.error?.kind == .certificateRefused)
    #expect(ends.client.error?.cause.contains("certificate has expired") == true)
    #expect(ends.client.error?.grade == .configuration)
  }

  @Test func aClientsCertificateIsCheckedAndItsSubjectKnown() throws {
    let identity = try authority.issueClient(name: "push", userID: "com.example.app")
    let required = try server(clients: .required(.pem(try authority.pem())))
    let good = try meet(try client(identity: identity), required)
    #expect(good.client.error == nil)
    #expect(good.server.peerSubject?.contains("UID=com.example.app") == true)

    let missing = try meet(try client(), required)
    #expect(missing.server.error?.kind == .certificateRefused)
    #expect(missing.client.error?.kind == .alert)

    let stranger = try CertificateAuthority(name: "Other").issueClient(name: "stranger")
    let refused = try meet(try client(identity: stranger), required)
    #expect(refused.server.error?.kind == .certificateRefused)
    #expect(refused.client.error?.kind == .alert)

    let welcome = try server(clients: .requested(.pem(try authority.pem())))
    #expect(try meet(try client(), welcome).client.error == nil)
    #expect(try meet(try client(identity: identity), welcome).server.peerSubject != nil)
  }

  @Test(arguments: [("-tls1_1", false), ("-tls1_2", true), ("-tls1_3", true)])
  func versionsBelow1Point2AreRefused(_ version: String, _ works: Bool) throws {
    let fixture = try LoopFixture()
    let far = Recorder(opened: { stream in stream.close() })
    let listener = try fixture.listen(tls: try server()) { far }
    let command = "openssl s_client -connect \(listener.endpoint) \(version) -cipher ALL:@SECLEVEL=0 -brief"
    shell("\(command) < /dev/null")
    let log = try #require(far.waitForEnd())
    #expect((log.opened == 1) == works)
    if !works { #expect(log.error?.kind == .handshake) }
  }

  @Test func bytesThatAreNotTLSAreRefused() throws {
    let fixture = try LoopFixture()
    let far = Recorder()
    let listener = try fixture.listen(tls: try server()) { far }
    let near = Recorder(opened: { stream in write("GET / HTTP/1.1\r\n\r\n", to: stream) })
    fixture.connect(to: listener.endpoint, near)
    #expect(try #require(far.waitForEnd()).error?.kind == .handshake)
    #expect(near.waitForEnd() != nil)
  }

  @Test func aMissingTrustFileIsNamed() throws {
    let error = try #require(throws: TransportError.self) {
      _ = try TLSContext.client(trust: .file("/nonexistent/ca.pem"))
    }
    #expect(error.kind == .file && error.subject == "/nonexistent/ca.pem")
  }
}
