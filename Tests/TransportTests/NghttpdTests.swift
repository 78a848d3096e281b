import Glibc
import TestSupport
import Testing
import Wire

@testable import Transport

/// Our client against a server that we did not write: `nghttpd` of the nghttp2 project.
@Suite struct NghttpdTests {
  private static let program = ["/usr/sbin/nghttpd", "/usr/bin/nghttpd"].first { (path: String) in
    unsafe access(path, X_OK) == 0
  }

  @Test(.enabled(if: program != nil, "nghttpd (Debian package nghttp2-server) is not installed"))
  func requestsAreAnsweredByNghttpd() throws {
    try Self.run(["--echo-upload", "-m", "50"]) { loop, endpoint, tls in
      let client = SocketClient(loop, endpoint, tls: tls)
      client.send(0..<2000, body: "body of a notification")
      #expect(client.waitForWords(2000))
      client.act { $0.ping() }
      #expect(client.state.wait { $0.pings == 1 })
      client.act { $0.drain() }
      #expect(client.waitForEnd())
      let state = client.state.value
      #expect(state.limits == [50])
      #expect(state.words.count == 2000)
      #expect(state.words.values.allSatisfy { $0 == [.response(status: 200, body: "body of a notification")] })
      #expect(state.error == nil)
    }
  }

  @Test(.enabled(if: program != nil, "nghttpd (Debian package nghttp2-server) is not installed"))
  func smallWindowsAndPaddingOfNghttpd() throws {
    try Self.run(["--echo-upload", "-w", "10", "-W", "16", "-b", "100"]) { loop, endpoint, tls in
      let client = SocketClient(loop, endpoint, tls: tls)
      let body = String(repeating: "p", count: 4096)
      client.send(0..<100, body: body)
      #expect(client.waitForWords(100))
      #expect(client.state.value.words.values.allSatisfy { $0 == [.response(status: 200, body: body)] })
      client.act { $0.close() }
      #expect(client.waitForEnd())
    }
  }

  /// Runs `body` with an nghttpd that takes connections, and ends it afterwards.
  private static func run(
    _ options: [String], _ body: (EventLoop, Endpoint, TLSContext) throws -> Void
  ) throws {
    let loop = try EventLoop.start(name: "nghttpd-test")
    defer { loop.stop() }
    let authority = try CertificateAuthority(name: "test authority")
    let identity = try authority.issueServer(names: ["localhost"])
    let files = try TemporaryFiles()
    defer { withExtendedLifetime(files) {} }
    let key = try files.write("key.pem", identity.privateKeyPEM())
    let certificate = try files.write("certificate.pem", identity.certificatePEM())
    let tls = try TLSContext.client(trust: .pem(try authority.pem()))
    // It cannot be told to take any free port: one that was free a moment ago is tried, and another if it was taken.
    for _ in 0..<5 {
      let endpoint = try freeEndpoint(loop)
      let process = try start(
        options + ["-a", "127.0.0.1", String(endpoint.port), key, certificate])
      defer { process.end() }
      guard waitUntil({ takesConnections(loop, endpoint) || process.hasEnded }), !process.hasEnded else { continue }
      return try body(loop, endpoint, tls)
    }
    Issue.record("nghttpd did not start")
  }

  private static func freeEndpoint(_ loop: EventLoop) throws -> Endpoint {
    let listener = try Listener.listen(on: [loop], at: Endpoint(host: "127.0.0.1", port: 0)) { _ in Quiet() }
    listener.close()
    let isClosed = Monitor(false)
    loop.execute { isClosed.update { $0 = true } }
    _ = isClosed.wait { $0 }
    return listener.endpoint
  }

  private static func takesConnections(_ loop: EventLoop, _ endpoint: Endpoint) -> Bool {
    let quiet = Quiet()
    loop.execute {
      _ = ByteStream.connect(on: loop, to: endpoint, tls: nil, deadline: loop.now + .seconds(5), delegate: quiet)
    }
    _ = quiet.state.wait { $0 != nil }
    return quiet.state.value == true
  }

  private static func start(_ options: [String]) throws -> Child {
    let path = try #require(program)
    var arguments: [UnsafeMutablePointer<CChar>?] = unsafe ([path] + options).map { unsafe strdup($0) }
    unsafe arguments.append(nil)
    defer { unsafe arguments.forEach { unsafe free($0) } }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    unsafe posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    var process: pid_t = 0
    let status = unsafe posix_spawn(&process, path, &actions, nil, arguments, environ)
    try #require(status == 0)
    return Child(process)
  }

  private final class Child {
    private let process: pid_t
    private var isReaped = false

    init(_ process: pid_t) { self.process = process }

    var hasEnded: Bool {
      if !isReaped, waitpid(process, nil, WNOHANG) == process { isReaped = true }
      return isReaped
    }

    func end() {
      guard !hasEnded else { return }
      // Not SIGTERM: it inherits the signal mask of the thread that starts it, and that thread may block it.
      kill(process, SIGKILL)
      _ = waitpid(process, nil, 0)
    }
  }

  /// Tells only whether a connection was made, and ends it.
  private final class Quiet: ByteStreamDelegate, Sendable {
    let state = Monitor<Bool?>(nil)
    func streamOpened(_ stream: ByteStream) {
      state.update { $0 = true }
      stream.abort()
    }
    func streamReceived(_ stream: ByteStream, _ bytes: Span<UInt8>) {}
    func streamHasRoom(_ stream: ByteStream) {}
    func streamClosed(_ stream: ByteStream, _ error: TransportError?) { state.update { $0 = $0 ?? false } }
  }
}
