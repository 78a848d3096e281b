import Glibc
import Wire

/// One blocking GET without TLS, for commands that ask a service of this machine how it is.
///
/// It follows no redirection and keeps no connection. An answer is read to the end of the connection, to a bound.
package enum HTTP1Probe {
  /// What was answered.
  package struct Answer: Sendable, Equatable {
    package var status: Int
    package var body: [UInt8]
  }

  /// More is not read.
  static let longestAnswer = 1_048_576

  /// Asks `endpoint` for `target`. Blocks, for `timeout` at most (a look-up of a name aside).
  ///
  /// - Throws: `TransportError` when nobody answers in time, or what answers does not speak HTTP/1.
  package static func get(
    _ target: String, from endpoint: Endpoint, timeout: Duration
  ) throws(TransportError) -> Answer {
    let deadline = Clock.now + timeout
    let descriptor = try connect(to: endpoint, until: deadline)
    defer { Syscalls.close(descriptor) }
    let host = endpoint.path == nil ? endpoint.description : "localhost"
    let request = "GET \(target) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n"
    try send(Array(request.utf8), descriptor, endpoint, until: deadline)
    return try answer(in: receive(descriptor, endpoint, until: deadline), of: endpoint)
  }

  private static func connect(to endpoint: Endpoint, until deadline: Instant) throws(TransportError) -> Int32 {
    let addresses: [SocketAddress]
    if let path = endpoint.path {
      guard let address = SocketAddress(path: path) else {
        throw TransportError(.connect, endpoint.description, "the path is too long for a Unix socket")
      }
      addresses = [address]
    } else {
      addresses = try Resolver.lookUp(endpoint.host, endpoint.port, flags: 0).get()
    }
    var last = TransportError(.connect, endpoint.description, "no address")
    for address in addresses {
      do throws(TransportError) {
        return try connect(to: address, endpoint, until: deadline)
      } catch {
        last = error
      }
    }
    throw last
  }

  private static func connect(
    to address: SocketAddress, _ endpoint: Endpoint, until deadline: Instant
  ) throws(TransportError) -> Int32 {
    let descriptor: Int32
    switch Socket.make(family: address.family) {
    case .value(let value): descriptor = value
    case .failed(let number): throw TransportError(.system, endpoint.description, "socket", errno: number)
    }
    do throws(TransportError) {
      if case .failed(let number) = Socket.connect(descriptor, to: address) {
        guard number == EINPROGRESS else {
          throw TransportError(.connect, endpoint.description, "connect", errno: number)
        }
        try wait(descriptor, Int16(POLLOUT), endpoint, until: deadline)
        let number = Socket.pendingError(descriptor)
        guard number == 0 else { throw TransportError(.connect, endpoint.description, "connect", errno: number) }
      }
      return descriptor
    } catch {
      Syscalls.close(descriptor)
      throw error
    }
  }

  private static func wait(
    _ descriptor: Int32, _ events: Int16, _ endpoint: Endpoint, until deadline: Instant
  ) throws(TransportError) {
    while true {
      let left = (deadline - Clock.now).nanoseconds / 1_000_000
      guard left > 0 else { throw TransportError(.timedOut, endpoint.description, "no answer in time") }
      var entry = pollfd(fd: descriptor, events: events, revents: 0)
      switch Syscalls.outcome({ unsafe poll(&entry, 1, Int32(clamping: left)) }) {
      case .value(0): continue
      case .value: return
      case .failed(let number): throw TransportError(.system, endpoint.description, "poll", errno: number)
      }
    }
  }

  private static func send(
    _ bytes: [UInt8], _ descriptor: Int32, _ endpoint: Endpoint, until deadline: Instant
  ) throws(TransportError) {
    var sent = 0
    while sent < bytes.count {
      let rest = bytes[sent...]
      switch unsafe rest.withUnsafeBytes({ unsafe Syscalls.send(descriptor, $0) }) {
      case .bytes(let count): sent += count
      case .wouldBlock: try wait(descriptor, Int16(POLLOUT), endpoint, until: deadline)
      case .failed(let number): throw TransportError(.reset, endpoint.description, "send", errno: number)
      }
    }
  }

  private static func receive(
    _ descriptor: Int32, _ endpoint: Endpoint, until deadline: Instant
  ) throws(TransportError) -> [UInt8] {
    var answer: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16 * 1024)
    while answer.count < longestAnswer {
      switch unsafe chunk.withUnsafeMutableBytes({ unsafe Syscalls.receive(descriptor, into: $0) }) {
      case .bytes(0): return answer
      case .bytes(let count): answer += chunk[..<count]
      case .wouldBlock: try wait(descriptor, Int16(POLLIN), endpoint, until: deadline)
      case .failed(let number): throw TransportError(.reset, endpoint.description, "receive", errno: number)
      }
    }
    return answer
  }

  /// Reads a status line (RFC 9112, section 4) and what follows the head.
  package static func answer(in bytes: [UInt8], of endpoint: Endpoint) throws(TransportError) -> Answer {
    let line = bytes.prefix { $0 != 0x0D && $0 != 0x0A }
    let words = String(decoding: line.prefix(100), as: UTF8.self).split(separator: " ", maxSplits: 2)
    guard words.count >= 2, words[0].hasPrefix("HTTP/1."), words[1].utf8.count == 3, let status = Int(words[1]) else {
      let found = bytes.isEmpty ? "nothing" : "'\(String(decoding: line.prefix(40), as: UTF8.self))'"
      throw TransportError(.protocolViolation, endpoint.description, "no answer of HTTP/1, found \(found)")
    }
    let end = Array("\r\n\r\n".utf8)
    var start = line.endIndex
    while start + end.count <= bytes.count, !bytes[start...].starts(with: end) { start += 1 }
    return Answer(status: status, body: Array(bytes.dropFirst(start + end.count)))
  }
}
