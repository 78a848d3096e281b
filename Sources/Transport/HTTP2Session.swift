import CNGHTTP2
import Wire

/// The protocol went wrong: the connection cannot go on.
struct HTTP2SessionError: Error, Hashable, CustomStringConvertible {
  /// What we told the peer, one of `HTTP2Code`.
  var code: UInt32
  var reason: String

  var description: String { "HTTP/2 \(HTTP2Code.name(code)): \(reason)" }
}

/// HTTP/2 without a socket: bytes of the peer in, events out; requests or answers in, bytes for the peer out.
///
/// One nghttp2 session is owned here and freed at the end. nghttp2 calls back while it reads or frames; those calls
/// only note events and gather data, and the owner looks at the events afterwards, at its own pace: submitting,
/// resetting or closing while it does so is safe. All calls come from one thread.
///
/// The C handle never leaves this class, and is alive as long as it is: that makes the class safe to use.
@safe final class HTTP2Session {
  enum Role { case client, server }

  let role: Role
  let limits: HTTP2Limits
  let handle: OpaquePointer

  /// In memory of its own rather than a property: that way the callbacks' many small changes go without the run-time
  /// check for overlapping accesses, which took a tenth of a client's time. It holds without: one thread, and no change
  /// calls nghttp2's reading and sending, or a handler, before it is complete.
  private let place: UnsafeMutablePointer<HTTP2SessionState>
  private var failure: HTTP2SessionError?
  /// nghttp2 itself gave up, or the connection is gone: the handle may only be freed now.
  private var isBroken = false
  /// How much is framed at a time, in bytes: a few TLS records.
  private static let flushSize = 64 * 1024
  /// `:status` as it was sent last: mostly it is the same again.
  var statusFields = HeaderList()
  var statusInFields: UInt16 = 0
  static let noFields = HeaderList()

  /// Fails only when memory runs out.
  init(role: Role, limits: HTTP2Limits = HTTP2Limits()) throws {
    self.role = role
    self.limits = limits
    let options = try unsafe HTTP2Callbacks.makeOptions(limits)
    defer { unsafe nghttp2_option_del(options) }
    let callbacks = try unsafe HTTP2Callbacks.make()
    defer { unsafe nghttp2_session_callbacks_del(callbacks) }
    var session: OpaquePointer?
    let result =
      switch role {
      case .client: unsafe nghttp2_session_client_new2(&session, callbacks, nil, options)
      case .server: unsafe nghttp2_session_server_new2(&session, callbacks, nil, options)
      }
    guard result == 0, let session = unsafe session else {
      throw HTTP2SessionError(code: HTTP2Code.internalError, reason: Self.text(result))
    }
    unsafe handle = session
    unsafe place = .allocate(capacity: 1)
    unsafe place.initialize(to: HTTP2SessionState(role: role, limits: limits, handle: session))
    // nghttp2 calls back only from within our own methods, during which we, and so the state, are alive.
    unsafe nghttp2_session_set_user_data(session, place)
    submitFirstSettings()
  }

  deinit {
    unsafe nghttp2_session_del(handle)
    unsafe place.deinitialize(count: 1)
    unsafe place.deallocate()
  }

  var state: HTTP2SessionState {
    _read { yield unsafe place.pointee }
    _modify { yield unsafe &place.pointee }
  }

  var streams: HTTP2StreamTable {
    _read { yield state.streams }
    _modify { yield &state.streams }
  }

  /// Bytes for the peer that nobody has taken yet.
  var output: [UInt8] {
    _read { yield state.output }
    _modify { yield &state.output }
  }

  var events: [HTTP2Event] { _read { yield state.events } }
  var goAways: [HTTP2GoAway] { state.goAways }
  var openStreams: Int { state.openStreams }
  var isGoingAway: Bool { state.isGoingAway }
  var peerConcurrentStreams: UInt32 { state.peerConcurrentStreams }

  static func text(_ result: Int32) -> String { unsafe String(cString: nghttp2_strerror(result)) }

  private func submitFirstSettings() {
    var entries = [
      setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, UInt32(clamping: limits.streamWindow)),
      setting(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, UInt32(clamping: limits.headerListSize)),
    ]
    switch role {
    case .client: entries.append(setting(NGHTTP2_SETTINGS_ENABLE_PUSH, 0))
    case .server:
      entries.append(setting(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, UInt32(clamping: limits.concurrentStreams)))
    }
    submit(settings: entries)
    _ = unsafe nghttp2_session_set_local_window_size(handle, 0, 0, Int32(clamping: limits.connectionWindow))
  }

  func setting(_ id: nghttp2_settings_id, _ value: UInt32) -> nghttp2_settings_entry {
    nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: value)
  }

  func submit(settings: [nghttp2_settings_entry]) {
    unsafe settings.withUnsafeBufferPointer {
      _ = unsafe nghttp2_submit_settings(handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), $0.baseAddress, $0.count)
    }
  }
}

// MARK: - Bytes in, bytes out

extension HTTP2Session {
  /// Reads what the peer sent. Events gather. After an error the connection is to be closed. (Most violations show only
  /// in `produce`, which then also frames the GOAWAY that says so.)
  func receive(_ bytes: Span<UInt8>) throws(HTTP2SessionError) {
    if let failure { throw failure }
    state.complaint = nil
    let result = unsafe bytes.withUnsafeBufferPointer {
      unsafe nghttp2_session_mem_recv(handle, $0.baseAddress, $0.count)
    }
    if result < 0 { try fail(Int32(result)) }
  }

  /// Frames what waits to be sent until `output` holds `limit` bytes (it may exceed that by a frame) or nothing is
  /// left. May add events. After an error the connection is to be closed once `output` and the events are dealt with.
  func produce(limit: Int) throws(HTTP2SessionError) {
    guard !isBroken else { return }
    state.outputLimit = limit
    while output.count < limit {
      var frame: UnsafePointer<UInt8>?
      let count = unsafe nghttp2_session_mem_send(handle, &frame)
      if count < 0 { try fail(Int32(count)) }
      guard count > 0, let frame = unsafe frame else { break }
      unsafe output.append(contentsOf: UnsafeBufferPointer(start: frame, count: Int(count)))
    }
    // After a violation nghttp2 frames a GOAWAY by itself and then reads no more.
    if unsafe nghttp2_session_want_read(handle) == 0, !isGoingAway || openStreams > 0 {
      state.isGoingAway = true
      isBroken = true
      let failure = HTTP2SessionError(
        code: HTTP2Code.protocolError, reason: state.complaint ?? "the peer broke the protocol")
      self.failure = failure
      throw failure
    }
  }

  private func fail(_ result: Int32) throws(HTTP2SessionError) {
    let code = result == NGHTTP2_ERR_FLOODED.rawValue ? HTTP2Code.enhanceYourCalm : HTTP2Code.protocolError
    let failure = HTTP2SessionError(code: code, reason: state.complaint ?? Self.text(result))
    self.failure = failure
    isBroken = true
    state.isGoingAway = true
    throw failure
  }

  /// Frames what waits and writes it to the stream, up to the stream's high-water mark. `look` is to deal with events.
  func flush(into stream: ByteStream, look: () -> Void) throws(HTTP2SessionError) {
    while stream.hasRoom {
      do {
        try produce(limit: Self.flushSize)
      } catch {
        stream.write(output.span)
        output.removeAll(keepingCapacity: true)
        throw error
      }
      let isEmpty = output.isEmpty
      stream.write(output.span)
      output.removeAll(keepingCapacity: true)
      look()
      if isEmpty { return }
    }
  }

  /// Frames wait to be sent. (Those that wait for the peer's window do not count.)
  var wantsToSend: Bool { unsafe !isBroken && nghttp2_session_want_write(handle) != 0 }

  /// Neither side has anything more to say: GOAWAY is through and no stream is open.
  var isFinished: Bool {
    unsafe nghttp2_session_want_read(handle) == 0 && nghttp2_session_want_write(handle) == 0
  }

  /// To be called after the events have been looked at.
  func finishEvents() {
    state.events.removeAll(keepingCapacity: true)
    if !state.goAways.isEmpty { state.goAways.removeAll() }
  }

  /// The connection is gone: nothing is opened, read or framed from here on.
  func shut() {
    state.isGoingAway = true
    isBroken = true
    failure = failure ?? HTTP2SessionError(code: HTTP2Code.noError, reason: "the connection is closed")
  }
}
