package final class TLSContext: Sendable {}
final class TLSSession {
  enum Handshake { case needsInput, done, failed(TransportError) }
  enum ReadResult { case bytes(Int), needsInput, closed, failed(TransportError) }
  var output = OutputBuffer()
  let peerClosed = false
  let applicationProtocol: String? = nil
  init(_ c: TLSContext, peer: String, serverName: String) throws(TransportError) {}
  func handshake() -> Handshake { .done }
  func receive(_ b: UnsafeRawBufferPointer) {}
  func read(into b: UnsafeMutableRawBufferPointer) -> ReadResult { .needsInput }
  func write(_ b: UnsafeRawBufferPointer) -> TransportError? { nil }
  func close() {}
}
