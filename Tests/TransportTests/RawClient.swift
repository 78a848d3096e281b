import TestSupport
import Wire

@testable import Transport

/// A client that sends bytes as they are and keeps all that it is sent.
///
/// `@unchecked Sendable` holds because all but `state`, which has a lock, is touched on the loop only.
final class RawClient: ByteStreamDelegate, @unchecked Sendable {
  struct State: Sendable {
    var opened = false
    var received: [UInt8] = []
    var closed = false
    var error: TransportError?
  }

  let loop: EventLoop
  let state = Monitor(State())
  private var stream: ByteStream?

  init(_ loop: EventLoop, _ endpoint: Endpoint, sending text: [UInt8] = [], paused: Bool = false) {
    self.loop = loop
    loop.execute {
      let stream = ByteStream.connect(
        on: loop, to: endpoint, tls: nil, deadline: loop.now + .seconds(20), delegate: self)
      self.stream = stream
      stream.write(text.span)
      if paused { stream.pauseReading() }
    }
  }

  func send(_ text: String) { loop.execute { self.stream?.write(Array(text.utf8).span) } }
  func abort() { loop.execute { self.stream?.abort() } }

  func streamOpened(_ stream: ByteStream) { state.update { $0.opened = true } }
  func streamReceived(_ stream: ByteStream, _ bytes: Span<UInt8>) {
    var copy: [UInt8] = []
    for index in bytes.indices { copy.append(bytes[index]) }
    state.update { [copy] in $0.received += copy }
  }
  func streamHasRoom(_ stream: ByteStream) {}
  func streamClosed(_ stream: ByteStream, _ error: TransportError?) {
    state.update {
      $0.closed = true
      $0.error = error
    }
  }

  /// All that was received until the server closed.
  func textAtTheEnd() -> String {
    _ = state.wait { $0.closed }
    return String(decoding: state.value.received, as: UTF8.self)
  }

  func waitFor(_ text: String, times: Int = 1) -> Bool {
    state.wait { state in
      String(decoding: state.received, as: UTF8.self).split(separator: text, omittingEmptySubsequences: false).count
        > times
    }
  }
}
