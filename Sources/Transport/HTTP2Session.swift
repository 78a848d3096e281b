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
  private let handle: OpaquePointer

  var streams = HTTP2StreamTable()
  /// What happened since `finishEvents`, in order.
  private(set) var events: [HTTP2Event] = []
  private(set) var goAways: [HTTP2GoAway] = []
  /// Bytes for the peer that nobody has taken yet.
  var output: [UInt8] = []

  /// The peer's limit on streams that we open.
  private(set) var peerConcurrentStreams: UInt32
  /// Set once either side has sent GOAWAY: no stream is opened any more.
  private(set) var isGoingAway = false
  /// Streams that are open for the peer and us, as far as nghttp2 has told.
  private(set) var openStreams = 0
  private var outputLimit = 0
  /// How much is framed at a time, in bytes: a few TLS records.
  private static let flushSize = 64 * 1024
  private var pingsOutstanding = 0
  /// What nghttp2 said last about a fault.
  private var complaint: String?
  private var failure: HTTP2SessionError?
  /// nghttp2 itself gave up: it may only be freed now.
  private var isBroken = false
  /// Names that have entered the dynamic table by `FieldIndexing.firstUseOnly`.
  private var indexedNames: [String] = []
  private var fieldScratch: [nghttp2_nv] = unsafe []
  /// `:status` as it was sent last: mostly it is the same again.
  private var statusFields = HeaderList()
  private var statusInFields: UInt16 = 0
  private static let noFields = HeaderList()
  /// The stream that the last callback was about, for the next one mostly is about the same.
  private var recentID: Int32 = 0
  private var recentSlot: Int32 = 0

  /// Fails only when memory runs out.
  init(role: Role, limits: HTTP2Limits = HTTP2Limits()) throws {
    self.role = role
    self.limits = limits
    self.peerConcurrentStreams = UInt32(clamping: limits.streamsBeforeSettings)
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
    // Unretained: nghttp2 calls back only from within our own methods, during which we are alive.
    unsafe nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
    submitFirstSettings()
  }

  deinit { unsafe nghttp2_session_del(handle) }

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

  private func setting(_ id: nghttp2_settings_id, _ value: UInt32) -> nghttp2_settings_entry {
    nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: value)
  }

  private func submit(settings: [nghttp2_settings_entry]) {
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
    let result = unsafe bytes.withUnsafeBufferPointer {
      unsafe nghttp2_session_mem_recv(handle, $0.baseAddress, $0.count)
    }
    if result < 0 { try fail(Int32(result)) }
  }

  /// Frames what waits to be sent until `output` holds `limit` bytes (it may exceed that by a frame) or nothing is left.
  /// May add events. After an error the connection is to be closed once `output` and the events are dealt with.
  func produce(limit: Int) throws(HTTP2SessionError) {
    guard !isBroken else { return }
    outputLimit = limit
    while output.count < limit {
      var frame: UnsafePointer<UInt8>?
      let count = unsafe nghttp2_session_mem_send(handle, &frame)
      if count < 0 { try fail(Int32(count)) }
      guard count > 0, let frame = unsafe frame else { break }
      unsafe output.append(contentsOf: UnsafeBufferPointer(start: frame, count: Int(count)))
    }
    // After a violation nghttp2 frames a GOAWAY by itself and then reads no more.
    if unsafe nghttp2_session_want_read(handle) == 0, !isGoingAway || openStreams > 0 {
      isGoingAway = true
      isBroken = true
      let failure = HTTP2SessionError(
        code: HTTP2Code.protocolError, reason: complaint ?? "the peer broke the protocol")
      self.failure = failure
      throw failure
    }
  }

  private func fail(_ result: Int32) throws(HTTP2SessionError) {
    let code = result == NGHTTP2_ERR_FLOODED.rawValue ? HTTP2Code.enhanceYourCalm : HTTP2Code.protocolError
    let failure = HTTP2SessionError(code: code, reason: complaint ?? Self.text(result))
    self.failure = failure
    isBroken = true
    isGoingAway = true
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
    events.removeAll(keepingCapacity: true)
    if !goAways.isEmpty { goAways.removeAll() }
  }
}

// MARK: - Requests and answers

extension HTTP2Session {
  /// Room for one more stream, by the peer's limit and ours.
  var hasRoom: Bool {
    !isGoingAway && openStreams < min(Int(clamping: peerConcurrentStreams), limits.concurrentStreams)
  }

  /// Client: opens a stream. The fields go out in this order: pseudo-fields of `shared`, of `own`, then the others of
  /// `shared`, of `own`. The lists are free to change when this returns; `body` is held until it is sent.
  ///
  /// Returns `nil` when no stream may be opened or there is no room.
  func submitRequest(shared: HeaderList, own: HeaderList, body: Bytes, tag: UInt64) -> Int32? {
    guard hasRoom else { return nil }
    let slot = streams.take()
    let id = unsafe withFields(shared, own) { fields in
      unsafe withProvider(slot, isNeeded: !body.isEmpty) {
        unsafe nghttp2_submit_request(handle, nil, fields.baseAddress, fields.count, $0, userData(slot))
      }
    }
    guard id > 0 else {
      streams.giveBack(slot)
      // The ids of this connection are used up (2^30 streams): another has to take over.
      if id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE.rawValue { isGoingAway = true }
      return nil
    }
    openStreams += 1
    streams[slot].id = id
    streams[slot].tag = tag
    if !body.isEmpty { streams[slot].outgoing = body }
    return slot
  }

  /// Server: answers a request, once. `fields` go without `:status`.
  func submitResponse(slot: Int32, status: UInt16, fields: HeaderList?, body: Bytes) -> Bool {
    guard streams[slot].id != 0, !streams[slot].marks.contains(.answered) else { return false }
    let id = streams[slot].id
    if status != statusInFields {
      statusInFields = status
      statusFields.removeAll()
      statusFields.append(name: ":status", value: String(status))
    }
    let result = unsafe withFields(statusFields, fields ?? Self.noFields) { fields in
      unsafe withProvider(slot, isNeeded: !body.isEmpty) {
        unsafe nghttp2_submit_response(handle, id, fields.baseAddress, fields.count, $0)
      }
    }
    guard result == 0 else { return false }
    streams[slot].marks.insert(.answered)
    if !body.isEmpty { streams[slot].outgoing = body }
    return true
  }

  func reset(slot: Int32, code: UInt32) {
    guard streams[slot].id != 0 else { return }
    _ = unsafe nghttp2_submit_rst_stream(handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), streams[slot].id, code)
  }

  /// Client: gives the request with that tag up. No word of it will come. False if there is none.
  func cancel(tag: UInt64) -> Bool {
    guard let slot = streams.slot(tag: tag), !streams[slot].marks.contains(.delivered) else { return false }
    streams[slot].marks.insert(.abandoned)
    reset(slot: slot, code: HTTP2Code.cancel)
    return true
  }

  /// Whether nghttp2 still has the stream: events of one batch may name streams that ended later in the same batch.
  func isOpen(slot: Int32) -> Bool {
    unsafe streams[slot].id != 0 && nghttp2_session_get_stream_local_close(handle, streams[slot].id) >= 0
  }

  /// The connection is gone: nothing is opened, read or framed from here on.
  func shut() {
    isGoingAway = true
    isBroken = true
    failure = failure ?? HTTP2SessionError(code: HTTP2Code.noError, reason: "the connection is closed")
  }

  func ping() {
    pingsOutstanding += 1
    _ = unsafe nghttp2_submit_ping(handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
  }

  /// Sends GOAWAY. `lastStream` `nil`: the newest stream that the peer has opened. Streams above it are closed.
  func goAway(lastStream: Int32? = nil, code: UInt32, debugData: [UInt8] = []) {
    isGoingAway = true
    let last = unsafe lastStream ?? nghttp2_session_get_last_proc_stream_id(handle)
    unsafe debugData.withUnsafeBufferPointer {
      _ = unsafe nghttp2_submit_goaway(
        handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), last, code, $0.baseAddress, $0.count)
    }
  }

  /// Server: announces a new limit on the client's streams; nghttp2 holds the client to it once it has acknowledged.
  func announce(concurrentStreams: Int) {
    submit(settings: [setting(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, UInt32(clamping: concurrentStreams))])
  }

  private func withProvider(
    _ slot: Int32, isNeeded: Bool, _ body: (UnsafePointer<nghttp2_data_provider>?) -> Int32
  ) -> Int32 {
    guard isNeeded else { return body(nil) }
    return unsafe withUnsafePointer(to: HTTP2Callbacks.bodyProvider(slot: slot)) { unsafe body($0) }
  }

  private func userData(_ slot: Int32) -> UnsafeMutableRawPointer? {
    unsafe UnsafeMutableRawPointer(bitPattern: Int(slot) + 1)
  }

  /// Lays both lists out for nghttp2, which copies them before it returns.
  private func withFields(
    _ first: HeaderList, _ second: HeaderList, _ body: (UnsafeBufferPointer<nghttp2_nv>) -> Int32
  ) -> Int32 {
    unsafe first.bytes.withUnsafeBufferPointer { firstBytes in
      unsafe second.bytes.withUnsafeBufferPointer { secondBytes in
        unsafe fieldScratch.removeAll(keepingCapacity: true)
        unsafe lay(first, firstBytes, 0..<first.pseudoCount)
        unsafe lay(second, secondBytes, 0..<second.pseudoCount)
        unsafe lay(first, firstBytes, first.pseudoCount..<first.count)
        unsafe lay(second, secondBytes, second.pseudoCount..<second.count)
        return unsafe fieldScratch.withUnsafeBufferPointer { unsafe body($0) }
      }
    }
  }

  private func lay(_ list: HeaderList, _ bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) {
    guard !range.isEmpty, let base = unsafe UnsafeMutablePointer(mutating: bytes.baseAddress) else { return }
    for index in range {
      let field = list.fields[index]
      let indexed =
        switch field.indexing {
        case .always: true
        case .never: false
        case .firstUseOnly: isFirstUse(list, field)
        }
      unsafe fieldScratch.append(
        nghttp2_nv(
          name: base + field.name.lowerBound, value: base + field.value.lowerBound, namelen: Int(field.nameCount),
          valuelen: Int(field.valueCount),
          flags: UInt8((indexed ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX).rawValue)))
    }
  }

  private func isFirstUse(_ list: HeaderList, _ field: HeaderList.Field) -> Bool {
    let name = list.bytes[field.name]
    for known in indexedNames where known.utf8.elementsEqual(name) { return false }
    // A bound, should someone use it for names without end.
    guard indexedNames.count < 16 else { return false }
    indexedNames.append(String(decoding: name, as: UTF8.self))
    return true
  }
}

// MARK: - What nghttp2 tells (see HTTP2Callbacks); each is called from within `receive` or `produce`

extension HTTP2Session {
  private func slot(of id: Int32) -> Int32? {
    if id == recentID { return recentSlot }
    guard id > 0, let pointer = unsafe nghttp2_session_get_stream_user_data(handle, id) else { return nil }
    recentID = id
    recentSlot = Int32(truncatingIfNeeded: Int(bitPattern: pointer) - 1)
    return recentSlot
  }

  func headersBegan(_ id: Int32, category: nghttp2_headers_category) {
    switch category {
    case NGHTTP2_HCAT_REQUEST:
      let slot = streams.take()
      openStreams += 1
      streams[slot].id = id
      _ = unsafe nghttp2_session_set_stream_user_data(handle, id, userData(slot))
    case NGHTTP2_HCAT_RESPONSE: break
    default:
      guard let slot = slot(of: id) else { return }
      if streams[slot].marks.contains(.headComplete) {
        streams[slot].marks.insert(.ignoresFields)  // trailers
      } else {
        streams[slot].message.removeAll()  // after an interim response
      }
    }
  }

  /// One field. False refuses the stream: its fields are too many.
  func field(_ id: Int32, name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let slot = slot(of: id), !streams[slot].marks.contains(.ignoresFields) else { return true }
    if role == .client, name.count == 7, unsafe name[0] == UInt8(ascii: ":") {
      streams[slot].message.status = unsafe value.prefix(3).reduce(0) { $0 * 10 + UInt16($1 &- 48) % 10 }
      return true
    }
    unsafe streams[slot].message.fields.append(name: name, value: value)
    return streams[slot].message.fields.listSize <= limits.headerListSize
  }

  func dataArrived(_ id: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
    guard let slot = slot(of: id) else { return }
    streams[slot].message.bodyLength += bytes.count
    let room = limits.bodySize - streams[slot].message.body.count
    unsafe streams[slot].message.body.append(contentsOf: bytes.prefix(max(0, room)))
    if role == .client, streams[slot].message.bodyLength > limits.bodySize { reset(slot: slot, code: HTTP2Code.cancel) }
  }

  func headersComplete(_ id: Int32, ended: Bool) {
    guard let slot = slot(of: id) else { return }
    let isInterim = role == .client && streams[slot].message.status < 200
    if !isInterim { streams[slot].marks.insert(.headComplete) }
    if ended { messageEnded(id, slot) }
  }

  func dataEnded(_ id: Int32) {
    if let slot = slot(of: id) { messageEnded(id, slot) }
  }

  private func messageEnded(_ id: Int32, _ slot: Int32) {
    streams[slot].marks.insert(.messageComplete)
    switch role {
    case .server: events.append(.request(slot: slot))
    case .client:
      // nghttp2 closes the stream right after this when our side is closed too, and that event then says it all.
      if unsafe nghttp2_session_get_stream_local_close(handle, id) == 0 { events.append(.earlyResponse(slot: slot)) }
    }
  }

  func streamClosed(_ id: Int32, code: UInt32) {
    guard let slot = slot(of: id) else { return }
    recentID = 0
    openStreams -= 1
    events.append(.streamClosed(slot: slot, code: code))
  }

  func requestNotSent(_ id: Int32) {
    if let slot = slot(of: id) { streams[slot].marks.insert(.neverOpened) }
  }

  func settingsArrived() {
    let limit = unsafe nghttp2_session_get_remote_settings(handle, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
    peerConcurrentStreams = limit
    events.append(.settings(concurrentStreams: limit))
  }

  func settingsAcknowledged() { events.append(.settingsAcknowledged) }

  func pingAcknowledged() {
    guard pingsOutstanding > 0 else { return }
    pingsOutstanding -= 1
    events.append(.pingAcknowledged)
  }

  func goAwayArrived(lastStream: Int32, code: UInt32, debugData: UnsafeBufferPointer<UInt8>) {
    isGoingAway = true
    let kept = unsafe [UInt8](debugData.prefix(limits.debugDataSize))
    goAways.append(HTTP2GoAway(lastStream: lastStream, code: code, debugData: kept))
    events.append(.goAway(index: Int32(goAways.count - 1)))
  }

  func complained(_ text: String) { complaint = text }

  /// The next stretch of a body: how much may go now, and whether that is the end.
  func bodyStretch(slot: Int32, room: Int) -> (count: Int, isLast: Bool) {
    let left = streams[slot].outgoing.count - streams[slot].sent
    let count = max(0, min(left, room))
    return (count, count == left)
  }

  /// Frames a stretch of the body, straight into the output, unless that is full: nghttp2 then asks again.
  func sendBody(slot: Int32, frameHeader: UnsafeBufferPointer<UInt8>, count: Int) -> Int32 {
    guard output.count < outputLimit else { return NGHTTP2_ERR_WOULDBLOCK.rawValue }
    let outgoing = streams[slot].outgoing
    let start = Int(outgoing.range.start) + streams[slot].sent
    guard count <= outgoing.count - streams[slot].sent else { return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue }
    unsafe output.append(contentsOf: frameHeader)
    output.append(contentsOf: outgoing.storage[start..<start + count])
    streams[slot].sent += count
    if streams[slot].sent == outgoing.count {
      streams[slot].outgoing = Bytes([])
      streams[slot].sent = 0
    }
    return 0
  }
}
