import Glibc
import Service
import Testing
import Transport
import Wire

@testable import martlet

struct HealthCommandTests {
  /// Listens until the end of the body, and answers each path with a status.
  private func withEndpoint<Result>(
    _ statuses: [String: UInt16], at endpoint: Endpoint = Endpoint(host: "127.0.0.1", port: 0),
    _ body: (Endpoint) async throws -> Result
  ) async throws -> Result {
    let loop = try EventLoop.start(name: "endpoint")
    defer { loop.stop() }
    let responder = try HTTP1Responder.listen(on: loop, at: endpoint) { request in
      HTTP1Response(status: statuses[request.path] ?? 404, text: "{}\n")
    }
    defer { responder.close() }
    return try await body(try #require(responder.endpoint))
  }

  private func ask(_ words: String...) async throws -> ExitCode {
    try await HealthCommand.command.run(try Arguments(words[...], for: HealthCommand.command))
  }

  @Test func theExitCodeTells() async throws {
    try await withEndpoint(["/healthz": 200, "/readyz": 503]) { (endpoint: Endpoint) async throws -> Void in
      let address = "\(endpoint)"
      #expect(try await ask("--address", address, "--quiet") == .ok)
      #expect(try await ask("--address", address, "--quiet", "--ready") == .unavailable)
    }
    try await withEndpoint(["/healthz": 500, "/readyz": 200]) { (endpoint: Endpoint) async throws -> Void in
      #expect(try await ask("--address", "\(endpoint)", "--quiet") == .unavailable)
      #expect(try await ask("--address", ":\(endpoint.port)", "--quiet", "--ready") == .ok)
    }
  }

  @Test func aUnixSocketIsAskedToo() async throws {
    let directory = try LocalFile.makeTemporaryDirectory()
    let path = "\(directory)/martlet.sock"
    defer { LocalFile.remove(file: path, directory: directory) }
    try await withEndpoint(["/healthz": 200], at: Endpoint(unixPath: path)) { (_: Endpoint) async throws -> Void in
      #expect(try await ask("--address", "unix:\(path)", "--quiet") == .ok)
    }
  }

  @Test func nobodyThereIsUnavailable() async throws {
    let port = try await withEndpoint([:]) { $0.port }
    #expect(try await ask("--address", "127.0.0.1:\(port)", "--quiet", "--timeout", "2s") == .unavailable)
    #expect(try await ask("--address", "unix:/nowhere/at/all", "--quiet") == .unavailable)
  }

  @Test func whoDoesNotAnswerIsNotWaitedForForEver() async throws {
    let directory = try LocalFile.makeTemporaryDirectory()
    let path = "\(directory)/silent.sock"
    defer { LocalFile.remove(file: path, directory: directory) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: Array(path.utf8)) }
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(listener) }
    let bound = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    // It lets a connection be made, and never takes it up.
    try #require(bound == 0 && listen(listener, 1) == 0)
    #expect(throws: TransportError(.timedOut, "unix:\(path)", "no answer in time")) {
      try HTTP1Probe.get("/healthz", from: Endpoint(unixPath: path), timeout: .milliseconds(50))
    }
  }

  @Test func theConfigurationMayBeBrokenElsewhere() async throws {
    try await withEndpoint(["/healthz": 200]) { (endpoint: Endpoint) async throws -> Void in
      let directory = try LocalFile.makeTemporaryDirectory()
      let file = "\(directory)/martlet.json5"
      defer { LocalFile.remove(file: file, directory: directory) }
      let listen = "0.0.0.0:\(endpoint.port)"
      try LocalFile.write(Array("{ http: { listen: '\(listen)' }, kafka: {}, nonsense: 1 }".utf8), to: file)
      #expect(try await ask("--config", file, "--quiet") == .ok)
      try LocalFile.write(Array("{ http: { listen: 'nowhere' } }".utf8), to: file)
      await #expect(throws: ConfigurationError.self) { try await ask("--config", file, "--quiet") }
      try LocalFile.write(Array("{ http: ".utf8), to: file)
      await #expect(throws: ConfigurationError.self) { try await ask("--config", file, "--quiet") }
    }
  }

  @Test func oneOfConfigurationAndAddressIsNeeded() async throws {
    await #expect(throws: UsageError.self) { try await ask() }
    await #expect(throws: UsageError.self) { try await ask("--config", "a", "--address", "b:1") }
    await #expect(throws: UsageError.self) { try await ask("--address", "b") }
  }

  @Test func allInterfacesAreReachedThroughThisMachine() {
    #expect(ListenAddress(host: "0.0.0.0", port: 1).reachable == Endpoint(host: "127.0.0.1", port: 1))
    #expect(ListenAddress(host: "::", port: 1).reachable == Endpoint(host: "::1", port: 1))
    #expect(ListenAddress(host: "10.0.0.1", port: 1).reachable == Endpoint(host: "10.0.0.1", port: 1))
  }

  @Test func anAnswerInPiecesOrOfAnotherProtocolIsSeen() throws {
    let endpoint = Endpoint(host: "x", port: 1)
    let text = "HTTP/1.1 503 Service Unavailable\r\nA: b\r\n\r\nbody"
    let answer = try HTTP1Probe.answer(in: Array(text.utf8), of: endpoint)
    #expect(answer.status == 503 && answer.body == Array("body".utf8))
    for text in ["", "SSH-2.0-OpenSSH", "HTTP/1.1", "HTTP/2 200", "HTTP/1.1 20 OK"] {
      #expect(throws: TransportError.self) { try HTTP1Probe.answer(in: Array(text.utf8), of: endpoint) }
    }
  }
}
