import Glibc
import Synchronization
import TestSupport
import Wire

@testable import Transport

/// A stream's delegate that notes all it hears, and does what a test asks for.
///
/// `@unchecked Sendable` holds because the closures are set before the stream starts and run on its loop only.
final class Recorder: ByteStreamDelegate, @unchecked Sendable {
  struct Log: Sendable {
    var opened = 0
    var applicationProtocol: String?
    var peerSubject: String?
    var bytes: [UInt8] = []
    var count = 0
    var roomTold = 0
    var closed = 0
    var error: TransportError?
    var callsAfterClose = 0
  }

  let log = Monitor(Log())
  private let onOpened: (ByteStream) -> Void
  private let onReceived: (ByteStream, Span<UInt8>) -> Void
  private let onRoom: (ByteStream) -> Void
  private let keepsBytes: Bool

  init(
    keepsBytes: Bool = true, opened: @escaping (ByteStream) -> Void = { _ in },
    received: @escaping (ByteStream, Span<UInt8>) -> Void = { _, _ in },
    hasRoom: @escaping (ByteStream) -> Void = { _ in }
  ) {
    self.keepsBytes = keepsBytes
    onOpened = opened
    onReceived = received
    onRoom = hasRoom
  }

  func streamOpened(_ stream: ByteStream) {
    let subject = stream.peerCertificateSubject
    log.update { log in
      log.opened += 1
      log.applicationProtocol = stream.applicationProtocol
      log.peerSubject = subject
      if log.closed > 0 { log.callsAfterClose += 1 }
    }
    onOpened(stream)
  }

  func streamReceived(_ stream: ByteStream, _ bytes: Span<UInt8>) {
    let copy = keepsBytes ? copied(bytes) : []
    let count = bytes.count
    log.update { log in
      log.bytes += copy
      log.count += count
      if log.closed > 0 { log.callsAfterClose += 1 }
    }
    onReceived(stream, bytes)
  }

  func streamHasRoom(_ stream: ByteStream) {
    log.update { $0.roomTold += 1 }
    onRoom(stream)
  }

  func streamClosed(_ stream: ByteStream, _ error: TransportError?) {
    log.update { log in
      log.closed += 1
      log.error = error
    }
  }

  func waitForEnd() -> Log? {
    log.wait { $0.closed > 0 } ? log.value : nil
  }
}

func copied(_ span: Span<UInt8>) -> [UInt8] {
  var copy: [UInt8] = []
  copy.reserveCapacity(span.count)
  for index in span.indices { copy.append(span[index]) }
  return copy
}

/// Sends back what it gets.
func echo() -> Recorder {
  Recorder(keepsBytes: false, received: { stream, bytes in stream.write(bytes) })
}

func write(_ text: String, to stream: ByteStream) {
  let bytes = Array(text.utf8)
  stream.write(bytes.span)
}

/// One loop that ends with the test.
final class LoopFixture: Sendable {
  let loop: EventLoop

  init() throws { loop = try EventLoop.start(name: "test") }

  deinit { loop.stop() }

  func listen(
    tls: TLSContext? = nil, limit: Int = 1024, at endpoint: Endpoint = Endpoint(host: "127.0.0.1", port: 0),
    _ delegate: @escaping @Sendable () -> Recorder
  ) throws -> Listener {
    try Listener.listen(on: [loop], at: endpoint, tls: tls, limit: limit) { _ in delegate() }
  }

  func connect(
    to endpoint: Endpoint, tls: TLSContext? = nil, serverName: String? = nil, within limit: Duration = .seconds(20),
    _ recorder: Recorder
  ) {
    loop.execute { [loop] in
      _ = ByteStream.connect(
        on: loop, to: endpoint, tls: tls, serverName: serverName, deadline: loop.now + limit, delegate: recorder)
    }
  }

  /// Keeps the loop inside one piece of work until the answer is set to true; what comes meanwhile comes together.
  func block() -> Monitor<Bool> {
    let entered = Monitor(false)
    let gate = Monitor(false)
    loop.execute {
      entered.update { $0 = true }
      _ = gate.wait { $0 }
    }
    _ = entered.wait { $0 }
    return gate
  }

  /// Runs `work` on the loop and waits for its value.
  func onLoop<Value: Sendable>(_ work: @escaping @Sendable () -> Value) -> Value? {
    let result = Monitor<Value?>(nil)
    loop.execute {
      let value = work()
      result.update { $0 = value }
    }
    _ = result.wait { $0 != nil }
    return result.value
  }
}

/// Runs a command, and answers with its exit status and output.
@discardableResult
func shell(_ command: String) -> (status: Int32, output: String) {
  guard let pipe = unsafe popen("\(command) 2>&1", "r") else { return (-1, "") }
  var output: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 4096)
  while true {
    let count = unsafe fread(&chunk, 1, 4096, pipe)
    if count == 0 { break }
    output += chunk[..<count]
  }
  return (unsafe pclose(pipe), String(decoding: output, as: UTF8.self))
}

/// The descriptors that this process has open.
func openDescriptors() -> Int {
  (0..<4096).count { fcntl(Int32($0), F_GETFD) >= 0 }
}

/// Deterministic bytes that do not repeat soon.
func pattern(_ count: Int) -> [UInt8] {
  var state: UInt32 = 12345
  return (0..<count).map { _ in
    state = state &* 1_664_525 &+ 1_013_904_223
    return UInt8(state >> 24)
  }
}
