import APNs
import Delivery
import Wire

/// A request that is on a connection and has not been answered.
struct LaneRequest {
  var slot: PushSlot
  /// Of the `LaneApp` on its lane.
  var seat: Int32
  var connection: ConnectionID
  var sentAt: Instant
  /// The provider token that it was sent with.
  var token: TokenVersion

  init(slot: PushSlot, seat: Int32, connection: ConnectionID, sentAt: Instant, token: TokenVersion) {
    self.slot = slot
    self.seat = seat
    self.connection = connection
    self.sentAt = sentAt
    self.token = token
  }

  fileprivate var generation: UInt32 = 0
  fileprivate var older: Int32 = -1
  fileprivate var newer: Int32 = -1
  fileprivate var isInUse = false
}

/// The open requests of a lane: places that are used again, chained from the oldest to the newest, so that the one that
/// times out next is always at hand and no request costs an allocation or a timer of its own.
struct RequestTable {
  private var places: [LaneRequest] = []
  private var free: [Int32] = []
  private var oldest: Int32 = -1
  private var newest: Int32 = -1

  var count: Int { places.count - free.count }

  /// - Returns: the tag to submit it with.
  mutating func insert(_ request: LaneRequest) -> UInt64 {
    let index: Int32
    if let last = free.popLast() {
      index = last
      let generation = places[Int(index)].generation &+ 1
      places[Int(index)] = request
      places[Int(index)].generation = generation
    } else {
      index = Int32(places.count)
      places.append(request)
    }
    places[Int(index)].isInUse = true
    places[Int(index)].older = newest
    places[Int(index)].newer = -1
    if newest >= 0 { places[Int(newest)].newer = index } else { oldest = index }
    newest = index
    return tag(index)
  }

  /// Takes a request out; `nil` if the tag has had its word already.
  mutating func remove(_ tag: UInt64) -> LaneRequest? {
    let index = Int(UInt32(truncatingIfNeeded: tag))
    guard index < places.count, places[index].isInUse, places[index].generation == UInt32(tag >> 32) else { return nil }
    let request = places[index]
    if request.older >= 0 { places[Int(request.older)].newer = request.newer } else { oldest = request.newer }
    if request.newer >= 0 { places[Int(request.newer)].older = request.older } else { newest = request.older }
    places[index].isInUse = false
    free.append(Int32(index))
    return request
  }

  /// The tag of the request that has waited longest, and since when.
  var first: (tag: UInt64, sentAt: Instant)? {
    oldest < 0 ? nil : (tag(oldest), places[Int(oldest)].sentAt)
  }

  private func tag(_ index: Int32) -> UInt64 {
    UInt64(places[Int(index)].generation) << 32 | UInt64(UInt32(bitPattern: index))
  }
}
