import CNGHTTP2
import Wire

// Requests, answers, and what else a session is told to send.

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
        unsafe nghttp2_submit_request(handle, nil, fields.baseAddress, fields.count, $0, state.userData(slot))
      }
    }
    guard id > 0 else {
      streams.giveBack(slot)
      // The ids of this connection are used up (2^30 streams).
      if id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE.rawValue { state.isGoingAway = true }
      return nil
    }
    state.openStreams += 1
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

  func reset(slot: Int32, code: UInt32) { state.reset(slot: slot, code: code) }

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

  func ping() {
    state.pingsOutstanding += 1
    _ = unsafe nghttp2_submit_ping(handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
  }

  /// Sends GOAWAY. `lastStream` `nil`: the newest stream that the peer has opened. Streams above it are closed.
  func goAway(lastStream: Int32? = nil, code: UInt32, debugData: [UInt8] = []) {
    state.isGoingAway = true
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

  /// Lays both lists out for nghttp2, which copies them before it returns.
  private func withFields(
    _ first: HeaderList, _ second: HeaderList, _ body: (UnsafeBufferPointer<nghttp2_nv>) -> Int32
  ) -> Int32 {
    unsafe first.bytes.withUnsafeBufferPointer { firstBytes in
      unsafe second.bytes.withUnsafeBufferPointer { secondBytes in
        unsafe state.fieldScratch.removeAll(keepingCapacity: true)
        unsafe state.lay(first, firstBytes, 0..<first.pseudoCount)
        unsafe state.lay(second, secondBytes, 0..<second.pseudoCount)
        unsafe state.lay(first, firstBytes, first.pseudoCount..<first.count)
        unsafe state.lay(second, secondBytes, second.pseudoCount..<second.count)
        return unsafe state.fieldScratch.withUnsafeBufferPointer { unsafe body($0) }
      }
    }
  }
}
