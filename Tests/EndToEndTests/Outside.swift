import Glibc
import TestSupport
import Transport
import Wire

/// The program in a process of its own, for what no thread survives.
struct Program {
  private let process: pid_t

  /// The build's own program: it lies beside the bundle of the tests.
  init(_ arguments: [String]) throws {
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = unsafe readlink("/proc/self/exe", &buffer, buffer.count)
    let own = String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let path = (own.lastIndex(of: "/").map { String(own[...$0]) } ?? "") + "martlet"
    let words = unsafe ([path] + arguments).map { unsafe strdup($0) } + [nil]
    defer { unsafe words.forEach { word in unsafe free(word) } }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    var process: pid_t = 0
    let code = unsafe posix_spawn(&process, path, &actions, nil, words, environ)
    guard code == 0 else { throw SystemFailure(code: code) }
    self.process = process
  }

  /// Sends a signal and waits for the end.
  ///
  /// - Returns: the exit code, or the signal that ended it, below zero.
  func end(_ signal: Int32) -> Int32 {
    kill(process, signal)
    var status: Int32 = 0
    while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
    return status & 0x7f == 0 ? (status >> 8) & 0xff : -(status & 0x7f)
  }
}

/// One request over plain HTTP/1.1.
///
/// `@unchecked Sendable` holds because all but `state`, which may be shared, is touched on the loop only.
final class HTTPGet: ByteStreamDelegate, @unchecked Sendable {
  private let state = Monitor<(text: [UInt8], isClosed: Bool)>(([], false))
  private var stream: ByteStream?

  /// - Returns: the status line's code and the body.
  static func get(_ path: String, port: UInt16) async throws -> (status: Int, body: String) {
    let loop = try EventLoop.start(name: "get")
    defer { loop.stop() }
    let get = HTTPGet()
    loop.execute {
      let stream = ByteStream.connect(
        on: loop, to: Endpoint(host: "127.0.0.1", port: port), tls: nil, deadline: loop.now + .seconds(30),
        delegate: get)
      get.stream = stream
      stream.write(Array("GET \(path) HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".utf8).span)
    }
    _ = await eventually { get.state.value.isClosed }
    let text = String(decoding: get.state.value.text, as: UTF8.self)
    let status = text.split(separator: " ", maxSplits: 2).dropFirst().first.flatMap { Int($0) } ?? 0
    let body = text.firstRange(of: "\r\n\r\n").map { String(text[$0.upperBound...]) } ?? ""
    return (status, body)
  }

  func streamOpened(_ stream: ByteStream) {}
  func streamReceived(_ stream: ByteStream, _ bytes: Span<UInt8>) {
    var copy: [UInt8] = []
    for index in bytes.indices { copy.append(bytes[index]) }
    state.update { [copy] in $0.text += copy }
  }
  func streamHasRoom(_ stream: ByteStream) {}
  func streamClosed(_ stream: ByteStream, _ error: TransportError?) { state.update { $0.isClosed = true } }
}
