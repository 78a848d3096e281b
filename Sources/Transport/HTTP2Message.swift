/// What was received on one stream: its header fields and its body, in buffers that are used again.
struct HTTP2Message: Sendable {
  var fields = HeaderList()
  var body: [UInt8] = []
  /// The body's length as received; more than `body.count` where the limit cut it.
  var bodyLength = 0
  var status: UInt16 = 0

  mutating func removeAll() {
    fields.removeAll()
    body.removeAll(keepingCapacity: true)
    bodyLength = 0
    status = 0
  }
}

/// A complete response. It is cheap to pass on; keeping a copy is allowed and costs the buffers.
package struct HTTP2Response: Sendable {
  var message: HTTP2Message

  package var status: UInt16 { message.status }
  package var fields: HeaderList { message.fields }
  /// The body, cut at the limit.
  package var body: [UInt8] { message.body }

  /// The value of the first field of that name (lower case), borrowed; no copy.
  @_lifetime(borrow self)
  package borrowing func value(of name: StaticString) -> Span<UInt8>? {
    message.fields.value(of: name)
  }

  /// The value of the first field of that name as text.
  package func text(of name: StaticString) -> String? { message.fields.text(of: name) }
}

/// A complete request as a server sees it.
package struct HTTP2Request: Sendable {
  var message: HTTP2Message

  package var fields: HeaderList { message.fields }
  /// The body, cut at the limit.
  package var body: [UInt8] { message.body }
  /// The body's length as sent, beyond the limit too.
  package var bodyLength: Int { message.bodyLength }
  package var method: String { message.fields.text(of: ":method") ?? "" }
  package var path: String { message.fields.text(of: ":path") ?? "" }

  /// The value of the first field of that name (lower case), borrowed; no copy.
  @_lifetime(borrow self)
  package borrowing func value(of name: StaticString) -> Span<UInt8>? {
    message.fields.value(of: name)
  }

  /// The value of the first field of that name as text.
  package func text(of name: StaticString) -> String? { message.fields.text(of: name) }
}

/// Why a request got no complete response.
package enum StreamFailure: Hashable, Sendable {
  /// The peer surely did not process it: REFUSED_STREAM, or a stream above the last one that GOAWAY names
  /// (RFC 9113 sections 6.8 and 8.7). It may be sent again.
  case refused
  /// The stream was reset, by the peer or by us (header fields too large); the code is one of `HTTP2Code`.
  case reset(code: UInt32)
  /// The connection ended first.
  case connectionLost
}

/// Error codes of RST_STREAM and GOAWAY (RFC 9113 section 7).
package enum HTTP2Code {
  package static let noError: UInt32 = 0x0
  package static let protocolError: UInt32 = 0x1
  package static let internalError: UInt32 = 0x2
  package static let flowControlError: UInt32 = 0x3
  package static let settingsTimeout: UInt32 = 0x4
  package static let streamClosed: UInt32 = 0x5
  package static let frameSizeError: UInt32 = 0x6
  package static let refusedStream: UInt32 = 0x7
  package static let cancel: UInt32 = 0x8
  package static let compressionError: UInt32 = 0x9
  package static let connectError: UInt32 = 0xa
  package static let enhanceYourCalm: UInt32 = 0xb
  package static let inadequateSecurity: UInt32 = 0xc
  package static let http11Required: UInt32 = 0xd

  /// The code's name in the RFC, for messages.
  package static func name(_ code: UInt32) -> String {
    let names = [
      "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
      "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
      "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]
    return code < UInt32(names.count) ? names[Int(code)] : "code \(code)"
  }
}

/// The bounds of one HTTP/2 connection: what a peer can make us hold or do.
package struct HTTP2Limits: Sendable {
  /// The largest list of header fields accepted on a stream, by the rule of `HeaderList.listSize`; a larger one
  /// resets the stream. Announced as SETTINGS_MAX_HEADER_LIST_SIZE.
  package var headerListSize = 16 * 1024
  /// The most body bytes kept of one message; of a longer body the start is delivered.
  package var bodySize = 64 * 1024
  /// SETTINGS_INITIAL_WINDOW_SIZE: what the peer may send on a stream before we say more, in bytes.
  package var streamWindow = 65_535
  /// What the peer may send on the whole connection before we say more, in bytes. Large, so that many small messages
  /// never wait for us.
  package var connectionWindow = 16 * 1024 * 1024
  /// SETTINGS and PING acknowledgements that may wait to be sent; a peer that asks for more and does not read is
  /// cut off.
  package var pendingAcknowledgements = 256
  /// Client: how many streams may be opened before the peer's SETTINGS say how many.
  package var streamsBeforeSettings = 1
  /// Client: the most streams open at once, whatever the peer allows. Server: announced to the peer.
  package var concurrentStreams = 1000
  /// Server: streams that the client may reset at once, and per second in the long run (RFC 9113 section 10.5). A
  /// client's own streams may be reset by its server as often as it likes: that is no attack.
  package var resetBurst = 20_000
  package var resetsPerSecond = 2_000
  /// The most debug data kept of a GOAWAY frame, in bytes.
  package var debugDataSize = 4096

  package init() {}
}
