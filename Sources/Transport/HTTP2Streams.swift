import Wire

/// What happened on the connection, collected while bytes are read and looked at afterwards.
enum HTTP2Event {
  /// Client: the response is complete though the request's body is not: the stream is still open on our side.
  case earlyResponse(slot: Int32)
  /// Server: a request is complete.
  case request(slot: Int32)
  /// The stream is closed and its slot may be given back. `code` is 0 after a regular end.
  case streamClosed(slot: Int32, code: UInt32)
  /// The peer's SETTINGS arrived; its limit on the streams that we may open. `UInt32.max`: no limit.
  case settings(concurrentStreams: UInt32)
  case settingsAcknowledged
  case pingAcknowledged
  /// A GOAWAY arrived: an index into the session's `goAways`.
  case goAway(index: Int32)
}

/// A GOAWAY frame as it arrived, its debug data cut at the limit.
struct HTTP2GoAway {
  var lastStream: Int32
  var code: UInt32
  var debugData: [UInt8]
}

/// What the session knows of one open stream.
struct HTTP2Stream {
  struct Marks: OptionSet {
    let rawValue: UInt8
    /// The peer has ended its side: the message is complete.
    static let messageComplete = Marks(rawValue: 1)
    /// The message has been handed to whoever waits for it.
    static let delivered = Marks(rawValue: 2)
    /// We gave the stream up; nobody waits for word of it.
    static let abandoned = Marks(rawValue: 4)
    /// The request never left: nghttp2 refused to open the stream.
    static let neverOpened = Marks(rawValue: 8)
    /// Fields that arrive now are trailers or of an interim response: not kept.
    static let ignoresFields = Marks(rawValue: 16)
    /// The final response's (or the request's) head is there.
    static let headComplete = Marks(rawValue: 32)
    /// We were asked to answer and did.
    static let answered = Marks(rawValue: 64)
  }

  /// 0: the slot is free.
  var id: Int32 = 0
  var marks: Marks = []
  var tag: UInt64 = 0
  /// The body to send, held until its last byte is framed.
  var outgoing = Bytes([])
  var sent = 0
  var message = HTTP2Message()
}

/// The open streams in a slab: a small integer finds a stream, and a freed slot keeps its buffers for the next one.
struct HTTP2StreamTable {
  private(set) var slots: [HTTP2Stream] = []
  private var free: [Int32] = []
  private(set) var count = 0

  subscript(slot: Int32) -> HTTP2Stream {
    get { slots[Int(slot)] }
    _modify { yield &slots[Int(slot)] }
  }

  /// Buffers larger than this are not kept for the next stream.
  private static let keptCapacity = 4096

  mutating func take() -> Int32 {
    count += 1
    if let slot = free.popLast() { return slot }
    slots.append(HTTP2Stream())
    return Int32(slots.count - 1)
  }

  mutating func giveBack(_ slot: Int32) {
    count -= 1
    free.append(slot)
    slots[Int(slot)].id = 0
    slots[Int(slot)].marks = []
    slots[Int(slot)].tag = 0
    slots[Int(slot)].outgoing = Bytes([])
    slots[Int(slot)].sent = 0
    let message = (slots[Int(slot)].message.body.capacity, slots[Int(slot)].message.fields.capacity)
    if max(message.0, message.1) > Self.keptCapacity {
      slots[Int(slot)].message = HTTP2Message()
    } else {
      slots[Int(slot)].message.removeAll()
    }
  }

  /// The open stream with that tag: a search, for the rare case (a timeout).
  func slot(tag: UInt64) -> Int32? {
    slots.firstIndex { $0.id != 0 && $0.tag == tag && !$0.marks.contains(.abandoned) }.map { Int32($0) }
  }
}
