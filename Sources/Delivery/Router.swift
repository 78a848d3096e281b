import Wire

/// Which lane a push goes to.
///
/// An app has a home lane, so that a thousand quiet apps make a thousand connections and not that many for each lane.
/// With load it spreads: one lane more for every `spread` pushes in flight, the least loaded of them first.
struct Router: Sendable {
  let laneCount: Int
  let lanesPerApp: Int
  let spread: Int
  /// In flight by app and lane: `app * laneCount + lane`.
  private var inFlight: [Int32] = []

  init(laneCount: Int, lanesPerApp: Int, spread: Int = 256) {
    precondition(laneCount > 0 && lanesPerApp > 0)
    self.laneCount = laneCount
    self.lanesPerApp = min(laneCount, lanesPerApp)
    self.spread = spread
  }

  mutating func grow(appCount: Int) {
    let missing = appCount * laneCount - inFlight.count
    if missing > 0 { inFlight.append(contentsOf: repeatElement(0, count: missing)) }
  }

  /// Chooses a lane and counts the push on it.
  ///
  /// - Parameter maxLanes: how many lanes this app may use, if it is fewer than others.
  mutating func route(_ app: AppIndex, appInFlight: Int, maxLanes: Int? = nil) -> LaneIndex {
    let first = Int(app.value) * laneCount
    let width = min(lanesPerApp, maxLanes ?? lanesPerApp, 1 + appInFlight / spread)
    var best = Int(app.value) % laneCount
    for step in 1..<max(width, 1) {
      let lane = (Int(app.value) + step) % laneCount
      if inFlight[first + lane] < inFlight[first + best] { best = lane }
    }
    inFlight[first + best] += 1
    return LaneIndex(Int32(best))
  }

  /// A push has come back from its lane.
  mutating func release(_ app: AppIndex, _ lane: LaneIndex) {
    inFlight[Int(app.value) * laneCount + Int(lane.value)] -= 1
  }
}
