import CNGHTTP2
import Wire

/// What a session holds and gathers, apart from nghttp2's own.
///
/// nghttp2's callbacks work on this alone, several for each frame. The methods that they reach are called from within
/// `nghttp2_session_mem_recv` and `nghttp2_session_mem_send`, and themselves only call functions of nghttp2 that look
/// something up or queue a frame: none of those calls back.
@safe struct HTTP2SessionState {
  let role: HTTP2Session.Role
  let limits: HTTP2Limits
  /// The session's; it lives as long as the session that holds this state.
  let handle: OpaquePointer

  var streams = HTTP2StreamTable()
  /// What happened since the events were last looked at, in order.
  var events: [HTTP2Event] = []
  var goAways: [HTTP2GoAway] = []
  /// Bytes for the peer that nobody has taken yet.
  var output: [UInt8] = []
  var outputLimit = 0

  /// The peer's limit on streams that we open.
  var peerConcurrentStreams: UInt32
  /// Set once either side has sent GOAWAY: no stream is opened any more.
  var isGoingAway = false
  /// Streams that are open for the peer and us, as far as nghttp2 has told.
  var openStreams = 0
  var pingsOutstanding = 0
  /// What nghttp2 said last about a fault of what was read last. Most are of single streams, and end nothing.
  var complaint: String?
  var fieldScratch: [nghttp2_nv] = unsafe []
  /// Names that have entered the dynamic table by `FieldIndexing.firstUseOnly`.
  private var indexedNames: [String] = []
  /// The stream that the last callback was about, for the next one mostly is about the same.
  private var recentID: Int32 = 0
  private var recentSlot: Int32 = 0

  init(role: HTTP2Session.Role, limits: HTTP2Limits, handle: OpaquePointer) {
    self.role = role
    self.limits = limits
    unsafe self.handle = handle
    peerConcurrentStreams = UInt32(clamping: limits.streamsBeforeSettings)
  }

  func userData(_ slot: Int32) -> UnsafeMutableRawPointer? {
    unsafe UnsafeMutableRawPointer(bitPattern: Int(slot) + 1)
  }

  func reset(slot: Int32, code: UInt32) {
    guard streams[slot].id != 0 else { return }
    _ = unsafe nghttp2_submit_rst_stream(handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), streams[slot].id, code)
  }
}

// MARK: - Fields to send

extension HTTP2SessionState {
  mutating func lay(_ list: HeaderList, _ bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) {
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

  private mutating func isFirstUse(_ list: HeaderList, _ field: HeaderList.Field) -> Bool {
    let name = list.bytes[field.name]
    for known in indexedNames where known.utf8.elementsEqual(name) { return false }
    // A bound, should someone use it for names without end.
    guard indexedNames.count < 16 else { return false }
    indexedNames.append(String(decoding: name, as: UTF8.self))
    return true
  }
}

// MARK: - What nghttp2 tells (see HTTP2Callbacks)

extension HTTP2SessionState {
  private mutating func slot(of id: Int32) -> Int32? {
    if id == recentID { return recentSlot }
    guard id > 0, let pointer = unsafe nghttp2_session_get_stream_user_data(handle, id) else { return nil }
    recentID = id
    recentSlot = Int32(truncatingIfNeeded: Int(bitPattern: pointer) - 1)
    return recentSlot
  }

  mutating func headersBegan(_ id: Int32, category: nghttp2_headers_category) {
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
  mutating func field(_ id: Int32, name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let slot = slot(of: id), !streams[slot].marks.contains(.ignoresFields) else { return true }
    if role == .client, name.count == 7, unsafe name[0] == UInt8(ascii: ":") {
      streams[slot].message.status = unsafe value.prefix(3).reduce(0) { $0 * 10 + UInt16($1 &- 48) % 10 }
      return true
    }
    unsafe streams[slot].message.fields.append(name: name, value: value)
    return streams[slot].message.fields.listSize <= limits.headerListSize
  }

  mutating func dataArrived(_ id: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
    guard let slot = slot(of: id) else { return }
    streams[slot].message.bodyLength += bytes.count
    let room = limits.bodySize - streams[slot].message.body.count
    unsafe streams[slot].message.body.append(contentsOf: bytes.prefix(max(0, room)))
  }

  mutating func headersComplete(_ id: Int32, ended: Bool) {
    guard let slot = slot(of: id) else { return }
    let isInterim = role == .client && streams[slot].message.status < 200
    if !isInterim { streams[slot].marks.insert(.headComplete) }
    if ended { messageEnded(id, slot) }
  }

  mutating func dataEnded(_ id: Int32) {
    if let slot = slot(of: id) { messageEnded(id, slot) }
  }

  private mutating func messageEnded(_ id: Int32, _ slot: Int32) {
    streams[slot].marks.insert(.messageComplete)
    switch role {
    case .server: events.append(.request(slot: slot))
    case .client:
      // nghttp2 closes the stream right after this when our side is closed too, and that event then says it all.
      if unsafe nghttp2_session_get_stream_local_close(handle, id) == 0 { events.append(.earlyResponse(slot: slot)) }
    }
  }

  mutating func streamClosed(_ id: Int32, code: UInt32) {
    guard let slot = slot(of: id) else { return }
    recentID = 0
    openStreams -= 1
    events.append(.streamClosed(slot: slot, code: code))
  }

  mutating func requestNotSent(_ id: Int32) {
    if let slot = slot(of: id) { streams[slot].marks.insert(.neverOpened) }
  }

  mutating func settingsArrived() {
    let limit = unsafe nghttp2_session_get_remote_settings(handle, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
    peerConcurrentStreams = limit
    events.append(.settings(concurrentStreams: limit))
  }

  mutating func settingsAcknowledged() { events.append(.settingsAcknowledged) }

  mutating func pingAcknowledged() {
    guard pingsOutstanding > 0 else { return }
    pingsOutstanding -= 1
    events.append(.pingAcknowledged)
  }

  mutating func goAwayArrived(lastStream: Int32, code: UInt32, debugData: UnsafeBufferPointer<UInt8>) {
    isGoingAway = true
    let kept = unsafe [UInt8](debugData.prefix(limits.debugDataSize))
    goAways.append(HTTP2GoAway(lastStream: lastStream, code: code, debugData: kept))
    events.append(.goAway(index: Int32(goAways.count - 1)))
  }

  mutating func complained(_ text: String) { complaint = text }

  /// The next stretch of a body: how much may go now, and whether that is the end.
  func bodyStretch(slot: Int32, room: Int) -> (count: Int, isLast: Bool) {
    let left = streams[slot].outgoing.count - streams[slot].sent
    let count = max(0, min(left, room))
    return (count, count == left)
  }

  /// Frames a stretch of the body, straight into the output, unless that is full: nghttp2 then asks again.
  mutating func sendBody(slot: Int32, frameHeader: UnsafeBufferPointer<UInt8>, count: Int) -> Int32 {
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
