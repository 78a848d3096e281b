import CNGHTTP2

/// The way from nghttp2 to a session's state.
///
/// nghttp2 calls these on the thread that is inside `nghttp2_session_mem_recv` or `nghttp2_session_mem_send`, that is
/// inside a method of the session whose state comes back as `user_data`: it is alive, and no other thread is in it.
/// Pointers that a callback is given die when it returns.
enum HTTP2Callbacks {
  /// The table of callbacks; whoever makes it frees it, nghttp2 copies it.
  @unsafe static func make() throws -> OpaquePointer {
    var made: OpaquePointer?
    let result = unsafe nghttp2_session_callbacks_new(&made)
    guard result == 0, let callbacks = unsafe made else {
      throw HTTP2SessionError(code: HTTP2Code.internalError, reason: HTTP2Session.text(result))
    }
    unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, onBeginHeaders)
    unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks, onHeader)
    unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, onData)
    unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, onFrame)
    unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, onStreamClose)
    unsafe nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, onFrameNotSent)
    unsafe nghttp2_session_callbacks_set_send_data_callback(callbacks, onSendData)
    unsafe nghttp2_session_callbacks_set_error_callback2(callbacks, onError)
    return unsafe callbacks
  }

  /// The options that bound what a peer can make us do; whoever makes them frees them.
  @unsafe static func makeOptions(_ limits: HTTP2Limits) throws -> OpaquePointer {
    var made: OpaquePointer?
    let result = unsafe nghttp2_option_new(&made)
    guard result == 0, let options = unsafe made else {
      throw HTTP2SessionError(code: HTTP2Code.internalError, reason: HTTP2Session.text(result))
    }
    // Closed streams need not be remembered: nobody uses priorities.
    unsafe nghttp2_option_set_no_closed_streams(options, 1)
    unsafe nghttp2_option_set_max_outbound_ack(options, limits.pendingAcknowledgements)
    unsafe nghttp2_option_set_peer_max_concurrent_streams(options, UInt32(clamping: limits.streamsBeforeSettings))
    // For servers only, by nghttp2's own rule; resets by our server never close a client.
    unsafe nghttp2_option_set_stream_reset_rate_limit(
      options, UInt64(clamping: limits.resetBurst), UInt64(clamping: limits.resetsPerSecond))
    return unsafe options
  }

  /// Tells nghttp2 that a body follows; its pieces are found by the slot.
  @unsafe static func bodyProvider(slot: Int32) -> nghttp2_data_provider {
    unsafe nghttp2_data_provider(source: nghttp2_data_source(fd: slot), read_callback: onReadBody)
  }

  /// Runs the method on the state that nghttp2 was given.
  @inline(__always)
  fileprivate static func withState<Result>(
    _ userData: UnsafeMutableRawPointer?, otherwise: Result, _ method: (inout HTTP2SessionState) -> Result
  ) -> Result {
    guard let userData = unsafe userData else { return otherwise }
    return unsafe method(&userData.assumingMemoryBound(to: HTTP2SessionState.self).pointee)
  }
}

private typealias Frame = UnsafePointer<nghttp2_frame>
private typealias UserData = UnsafeMutableRawPointer
private let callbackFailure = NGHTTP2_ERR_CALLBACK_FAILURE.rawValue

private func onBeginHeaders(_: OpaquePointer?, frame: Frame?, userData: UserData?) -> Int32 {
  guard let frame = unsafe frame else { return callbackFailure }
  return unsafe HTTP2Callbacks.withState(userData, otherwise: callbackFailure) {
    unsafe $0.headersBegan(frame.pointee.hd.stream_id, category: frame.pointee.headers.cat)
    return 0
  }
}

/// A stream whose fields are too many is reset; its other fields are still decoded, to keep HPACK in step, but not
/// kept.
private func onHeader(
  _: OpaquePointer?, frame: Frame?, name: UnsafePointer<UInt8>?, nameCount: Int, value: UnsafePointer<UInt8>?,
  valueCount: Int, flags: UInt8, userData: UserData?
) -> Int32 {
  guard let frame = unsafe frame else { return callbackFailure }
  return unsafe HTTP2Callbacks.withState(userData, otherwise: callbackFailure) {
    let isKept = unsafe $0.field(
      frame.pointee.hd.stream_id, name: UnsafeBufferPointer(start: name, count: nameCount),
      value: UnsafeBufferPointer(start: value, count: valueCount))
    return isKept ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
  }
}

private func onData(
  _: OpaquePointer?, flags: UInt8, id: Int32, data: UnsafePointer<UInt8>?, count: Int, userData: UserData?
) -> Int32 {
  unsafe HTTP2Callbacks.withState(userData, otherwise: callbackFailure) {
    unsafe $0.dataArrived(id, UnsafeBufferPointer(start: data, count: count))
    return 0
  }
}

private func onFrame(_: OpaquePointer?, frame: Frame?, userData: UserData?) -> Int32 {
  guard let frame = unsafe frame else { return callbackFailure }
  return unsafe HTTP2Callbacks.withState(userData, otherwise: callbackFailure) { state in
    let head = unsafe frame.pointee.hd
    let isEnd = head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
    let isAcknowledgement = head.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0
    switch UInt32(head.type) {
    case NGHTTP2_HEADERS.rawValue: state.headersComplete(head.stream_id, ended: isEnd)
    case NGHTTP2_DATA.rawValue: if isEnd { state.dataEnded(head.stream_id) }
    case NGHTTP2_SETTINGS.rawValue:
      if isAcknowledgement { state.settingsAcknowledged() } else { state.settingsArrived() }
    case NGHTTP2_PING.rawValue: if isAcknowledgement { state.pingAcknowledged() }
    case NGHTTP2_GOAWAY.rawValue:
      let goAway = unsafe frame.pointee.goaway
      unsafe state.goAwayArrived(
        lastStream: goAway.last_stream_id, code: goAway.error_code,
        debugData: UnsafeBufferPointer(start: goAway.opaque_data, count: goAway.opaque_data_len))
    default: break
    }
    return 0
  }
}

private func onStreamClose(_: OpaquePointer?, id: Int32, code: UInt32, userData: UserData?) -> Int32 {
  unsafe HTTP2Callbacks.withState(userData, otherwise: callbackFailure) {
    $0.streamClosed(id, code: code)
    return 0
  }
}

/// A request that cannot be sent any more (after GOAWAY, or taken back) surely never reached the peer.
private func onFrameNotSent(_: OpaquePointer?, frame: Frame?, error: Int32, userData: UserData?) -> Int32 {
  guard let frame = unsafe frame, unsafe UInt32(frame.pointee.hd.type) == NGHTTP2_HEADERS.rawValue else { return 0 }
  return unsafe HTTP2Callbacks.withState(userData, otherwise: callbackFailure) {
    unsafe $0.requestNotSent(frame.pointee.hd.stream_id)
    return 0
  }
}

/// Says how much of a body comes next; `onSendData` then frames it, without a copy through nghttp2's buffer.
private func onReadBody(
  _: OpaquePointer?, id: Int32, buffer: UnsafeMutablePointer<UInt8>?, room: Int, flags: UnsafeMutablePointer<UInt32>?,
  source: UnsafeMutablePointer<nghttp2_data_source>?, userData: UserData?
) -> Int {
  guard let flags = unsafe flags, let source = unsafe source else { return Int(callbackFailure) }
  return unsafe HTTP2Callbacks.withState(userData, otherwise: Int(callbackFailure)) {
    let (count, isLast) = unsafe $0.bodyStretch(slot: source.pointee.fd, room: room)
    unsafe flags.pointee |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue
    if isLast { unsafe flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
    return count
  }
}

private func onSendData(
  _: OpaquePointer?, frame: UnsafeMutablePointer<nghttp2_frame>?, frameHeader: UnsafePointer<UInt8>?, count: Int,
  source: UnsafeMutablePointer<nghttp2_data_source>?, userData: UserData?
) -> Int32 {
  guard let source = unsafe source else { return callbackFailure }
  return unsafe HTTP2Callbacks.withState(userData, otherwise: callbackFailure) {
    unsafe $0.sendBody(
      slot: source.pointee.fd, frameHeader: UnsafeBufferPointer(start: frameHeader, count: 9), count: count)
  }
}

/// nghttp2's own words on a fault, for our error's text.
private func onError(
  _: OpaquePointer?, code: Int32, message: UnsafePointer<CChar>?, count: Int, userData: UserData?
) -> Int32 {
  unsafe HTTP2Callbacks.withState(userData, otherwise: callbackFailure) {
    let text = unsafe UnsafeRawBufferPointer(start: message, count: min(count, 256))
    unsafe $0.complained(String(decoding: text, as: UTF8.self))
    return 0
  }
}
