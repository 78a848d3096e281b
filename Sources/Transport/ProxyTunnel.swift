import Glibc
import Wire

/// Makes one connection to a target through an HTTP proxy: connects to the proxy, asks it for a tunnel and reads its
/// answer, no byte more. What comes out is a descriptor that leads to the target.
///
/// `@unchecked Sendable` holds because every method runs on the loop; only the reference crosses threads.
final class ProxyTunnel: Connecting, EventHandler, @unchecked Sendable {
  private let loop: EventLoop
  private let proxy: Proxy
  private let target: Endpoint
  private var completion: Connector.Completion?
  private var connector: Connector?
  private var descriptor: Int32 = -1
  private var request: ArraySlice<UInt8>
  private var answer = ProxyAnswer()

  /// The same rules for `completion` as those of `Connector`.
  init(loop: EventLoop, proxy: Proxy, target: Endpoint, completion: @escaping Connector.Completion) {
    self.loop = loop
    self.proxy = proxy
    self.target = target
    self.completion = completion
    request = proxy.request(for: target)[...]
    connector = Connector(loop: loop, endpoint: proxy.endpoint) { [weak self] result in
      guard let self else {
        if case .success(let descriptor) = result { Syscalls.close(descriptor) }
        return
      }
      connector = nil
      switch result {
      case .success(let descriptor): ask(descriptor)
      case .failure(let error): fail(error.kind, error.cause, code: error.code)
      }
    }
  }

  var waitsFor: String { "\(proxy.description): \(connector?.waitsFor ?? "CONNECT")" }

  func cancel() {
    completion = nil
    connector?.cancel()
    connector = nil
    release()
  }

  private func ask(_ descriptor: Int32) {
    self.descriptor = descriptor
    do {
      try loop.register(descriptor, interest: .writable, handler: self)
    } catch {
      fail(error.kind, error.cause, code: error.code)
    }
  }

  func descriptorReady(_ descriptor: Int32, _ readiness: Readiness) {
    guard self.descriptor >= 0 else { return }
    if !request.isEmpty, readiness.contains(.writable) { sendRequest() }
    if self.descriptor >= 0, request.isEmpty || readiness.contains(.broken) { readAnswer() }
  }

  func loopStopped(_ loop: EventLoop) { fail(.cancelled, "the loop was stopped") }

  private func sendRequest() {
    let outcome = unsafe request.withUnsafeBytes { unsafe Syscalls.send(descriptor, $0) }
    switch outcome {
    case .bytes(let count):
      request = request.dropFirst(count)
      if request.isEmpty { loop.modify(descriptor, interest: .readable) }
    case .wouldBlock: break
    case .failed(let number): fail(.reset, "CONNECT: \(Syscalls.describe(number))", code: UInt(number.magnitude))
    }
  }

  /// Looks at what has come and takes only what belongs to the answer's head: a server that speaks first, as HTTP/2
  /// without TLS does, may have its bytes right behind it.
  private func readAnswer() {
    while descriptor >= 0 {
      switch unsafe Syscalls.peek(descriptor, into: loop.receiveBuffer) {
      case .bytes(0): return fail(.endedEarly, "the proxy closed the connection without an answer to CONNECT")
      case .bytes(let count):
        let progress = unsafe loop.receiveBuffer[..<count].withMemoryRebound(to: UInt8.self) { bytes in
          let span = unsafe bytes.span
          return answer.take(span)
        }
        guard take(progress, of: count) else { return }
      case .wouldBlock: return
      case .failed(let number):
        return fail(.reset, "CONNECT: \(Syscalls.describe(number))", code: UInt(number.magnitude))
      }
    }
  }

  /// - Returns: whether to look for more.
  private func take(_ progress: ProxyAnswer.Progress, of count: Int) -> Bool {
    switch progress {
    case .incomplete:
      return consume(count)
    case .ended(let status, let reason, let taken):
      guard (200..<300).contains(status) else {
        var words = reason.isEmpty ? "\(status)" : "\(status) \(reason)"
        if status == 407 {
          words +=
            proxy.authorization == nil
            ? "; it wants a user name and a password" : "; it does not take this user name and password"
        }
        fail(.proxyRefused, "refuses CONNECT: \(words)", code: UInt(status))
        return false
      }
      if consume(taken) { succeed() }
    case .tooLong:
      fail(.protocolViolation, "the answer to CONNECT is longer than \(ProxyAnswer.longestHead) bytes")
    case .malformed:
      fail(.protocolViolation, "the answer to CONNECT is no HTTP/1.1")
    }
    return false
  }

  /// Takes bytes that were looked at out of the socket, where they surely are.
  private func consume(_ count: Int) -> Bool {
    let outcome = unsafe Syscalls.receive(
      descriptor, into: UnsafeMutableRawBufferPointer(rebasing: loop.receiveBuffer[..<count]))
    if case .bytes(count) = outcome { return true }
    fail(.system, "CONNECT: bytes that were there are gone")
    return false
  }

  private func succeed() {
    loop.deregister(descriptor)
    let made = exchange(&descriptor, with: -1)
    exchange(&completion, with: nil)?(.success(made))
  }

  private func fail(_ kind: TransportError.Kind, _ cause: String, code: UInt = 0) {
    release()
    let error = TransportError(kind, target.description, "\(proxy.description): \(cause)", code: code)
    exchange(&completion, with: nil)?(.failure(error))
  }

  private func release() {
    guard descriptor >= 0 else { return }
    loop.deregister(descriptor)
    Syscalls.close(descriptor)
    descriptor = -1
  }
}
