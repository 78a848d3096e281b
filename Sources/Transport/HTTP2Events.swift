/// What a client hears from its session. Each submitted request gets exactly one of `responded` and `failed`, unless it
/// was cancelled.
protocol HTTP2ClientEvents: AnyObject {
  func responded(tag: UInt64, _ response: HTTP2Response)
  func failed(tag: UInt64, _ failure: StreamFailure)
  func settingsArrived(concurrentStreams: UInt32)
  func goAwayArrived(_ goAway: HTTP2GoAway)
  func pingAcknowledged()
}

/// What a server hears from its session.
protocol HTTP2ServerEvents: AnyObject {
  func requested(_ stream: HTTP2StreamID, _ request: HTTP2Request)
  /// A stream whose request was handed over is closed; `answered` tells whether we had answered by then.
  func streamClosed(_ stream: HTTP2StreamID, code: UInt32, answered: Bool)
  func settingsAcknowledged()
  func goAwayArrived(_ goAway: HTTP2GoAway)
  func pingAcknowledged()
}

/// A stream of a server's connection: the number on the wire, and the place where the session keeps it.
package struct HTTP2StreamID: Hashable, Sendable {
  package var number: Int32
  var slot: Int32
}

extension HTTP2Session {
  /// Hands the events over and gives the slots of closed streams back. The handler may submit, cancel and reset.
  func handEvents(toClient handler: some HTTP2ClientEvents) {
    var index = 0
    while index < events.count {
      switch events[index] {
      case .earlyResponse(let slot):
        guard streams[slot].marks.isDisjoint(with: [.abandoned, .delivered]) else { break }
        hand(slot, to: handler)
        // The peer has answered without the rest of the body: it need not be sent.
        if isOpen(slot: slot) { reset(slot: slot, code: HTTP2Code.cancel) }
      case .streamClosed(let slot, let code):
        if streams[slot].marks.isDisjoint(with: [.abandoned, .delivered]) { close(slot, code, handler) }
        streams.giveBack(slot)
      case .settings(let concurrentStreams): handler.settingsArrived(concurrentStreams: concurrentStreams)
      case .goAway(let place): handler.goAwayArrived(goAways[Int(place)])
      case .pingAcknowledged: handler.pingAcknowledged()
      case .settingsAcknowledged, .request: break
      }
      index += 1
    }
    finishEvents()
  }

  private func close(_ slot: Int32, _ code: UInt32, _ handler: some HTTP2ClientEvents) {
    let marks = streams[slot].marks
    if marks.contains(.messageComplete) {
      hand(slot, to: handler)
    } else if marks.contains(.neverOpened) || code == HTTP2Code.refusedStream {
      handler.failed(tag: streams[slot].tag, .refused)
    } else {
      handler.failed(tag: streams[slot].tag, .reset(code: code))
    }
  }

  /// The message is moved out while the handler looks at it, and its buffers come back for the next stream.
  private func hand(_ slot: Int32, to handler: some HTTP2ClientEvents) {
    streams[slot].marks.insert(.delivered)
    var response = HTTP2Response(message: HTTP2Message())
    swap(&response.message, &streams[slot].message)
    handler.responded(tag: streams[slot].tag, response)
    swap(&response.message, &streams[slot].message)
  }

  /// The connection is gone: each request that waits hears so. Events that were there go first.
  func failAll(_ handler: some HTTP2ClientEvents) {
    shut()
    handEvents(toClient: handler)
    for slot in streams.slots.indices.map({ Int32($0) }) where streams[slot].id != 0 {
      if streams[slot].marks.isDisjoint(with: [.abandoned, .delivered]) {
        handler.failed(tag: streams[slot].tag, .connectionLost)
      }
      streams.giveBack(slot)
    }
  }

  /// Hands the events over and gives the slots of closed streams back. The handler may answer and reset.
  func handEvents(toServer handler: some HTTP2ServerEvents) {
    var index = 0
    while index < events.count {
      switch events[index] {
      case .request(let slot):
        streams[slot].marks.insert(.delivered)
        var request = HTTP2Request(message: HTTP2Message())
        swap(&request.message, &streams[slot].message)
        handler.requested(HTTP2StreamID(number: streams[slot].id, slot: slot), request)
        swap(&request.message, &streams[slot].message)
      case .streamClosed(let slot, let code):
        let marks = streams[slot].marks
        if marks.contains(.delivered) {
          handler.streamClosed(
            HTTP2StreamID(number: streams[slot].id, slot: slot), code: code, answered: marks.contains(.answered))
        }
        streams.giveBack(slot)
      case .goAway(let place): handler.goAwayArrived(goAways[Int(place)])
      case .pingAcknowledged: handler.pingAcknowledged()
      case .settingsAcknowledged: handler.settingsAcknowledged()
      case .settings, .earlyResponse: break
      }
      index += 1
    }
    finishEvents()
  }

  /// Whether the stream that a server's handler was told of is still there.
  func knows(_ stream: HTTP2StreamID) -> Bool {
    stream.slot >= 0 && Int(stream.slot) < streams.slots.count && streams[stream.slot].id == stream.number
  }
}
