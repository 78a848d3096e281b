package import Transport
import Wire

/// A small HTTP proxy for tests: answers each `CONNECT` as it is told, and makes real tunnels.
package final class ConnectProxy: Sendable {
  package enum Answer: Sendable {
    /// A tunnel to where the client wants to go.
    case tunnel
    /// These bytes, and then whatever comes is sent back: the proxy is the target too.
    case text(String)
    case silence
    case close
  }

  package struct State: Sendable {
    /// The head of each request, in order.
    package var requests: [String] = []
    /// What the next connections get; the last answer holds for all that follow.
    package var answers: [Answer]
  }

  package let state: Monitor<State>
  package let endpoint: Endpoint
  private let loop: EventLoop
  private let listener: Listener

  package init(_ answers: [Answer] = [.tunnel]) throws {
    let loop = try EventLoop.start(name: "proxy")
    let state = Monitor(State(answers: answers))
    self.loop = loop
    self.state = state
    listener = try Listener.listen(on: [loop], at: Endpoint(host: "127.0.0.1", port: 0)) { stream in
      ProxyLeg(client: stream, state: state)
    }
    endpoint = listener.endpoint
  }

  package func stop() {
    listener.close()
    loop.stop()
  }
}

/// The client's side of a tunnel. `@unchecked Sendable` holds because it is used on the proxy's loop only.
private final class ProxyLeg: ByteStreamDelegate, @unchecked Sendable {
  private let client: ByteStream
  private let state: Monitor<ConnectProxy.State>
  private var head: [UInt8] = []
  private var target: ByteStream?
  private var isEcho = false

  init(client: ByteStream, state: Monitor<ConnectProxy.State>) {
    self.client = client
    self.state = state
  }

  func streamOpened(_ stream: ByteStream) {}

  func streamReceived(_ stream: ByteStream, _ bytes: Span<UInt8>) {
    if let target { return target.write(bytes) }
    if isEcho { return stream.write(bytes) }
    for index in bytes.indices { head.append(bytes[index]) }
    if head.suffix(4) == [0x0d, 0x0a, 0x0d, 0x0a] { answer() }
  }

  func streamHasRoom(_ stream: ByteStream) {}

  func streamClosed(_ stream: ByteStream, _ error: TransportError?) { target?.close() }

  private func answer() {
    let text = String(decoding: head, as: UTF8.self)
    head = []
    let answer: ConnectProxy.Answer? = state.update { state in
      state.requests.append(text)
      return state.answers.count > 1 ? state.answers.removeFirst() : state.answers.first
    }
    switch answer {
    case .tunnel:
      let words = text.split(separator: " ")
      guard words.count > 1, let endpoint = Endpoint(parsing: String(words[1])) else { return client.close() }
      target = ByteStream.connect(
        on: client.loop, to: endpoint, tls: nil, deadline: client.loop.now + .seconds(20),
        delegate: TargetLeg(client: client))
    case .text(let text):
      isEcho = true
      client.write(text.utf8.span)
    case .silence: break
    case .close, nil: client.close()
    }
  }
}

/// The target's side.
private final class TargetLeg: ByteStreamDelegate {
  private let client: ByteStream

  init(client: ByteStream) { self.client = client }

  func streamOpened(_ stream: ByteStream) {
    client.write("HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n".utf8.span)
  }

  func streamReceived(_ stream: ByteStream, _ bytes: Span<UInt8>) { client.write(bytes) }

  func streamHasRoom(_ stream: ByteStream) {}

  func streamClosed(_ stream: ByteStream, _ error: TransportError?) { client.close() }
}
