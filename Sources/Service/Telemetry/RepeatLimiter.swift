package import Wire

/// Decides which repeats of a log line are written: the first few of each kind in a window of time, and no more.
///
/// A kind is a code and an app. What was left out is counted and told with the next line of the kind, or in a line of
/// its own when none comes.
package struct RepeatLimiter: Sendable {
  /// What makes two lines repeats of each other.
  package struct Kind: Hashable, Sendable {
    package var code: String
    package var app: String?

    package init(code: String, app: String?) {
      self.code = code
      self.app = app
    }
  }

  private struct Window {
    var start: Instant
    var written = 0
    var suppressed = 0
  }

  /// How long a window lasts.
  package var window: Duration
  /// Lines of one kind that a window lets through.
  package var burst: Int
  /// Kinds that are remembered; beyond that, all others are one kind.
  package var mostKinds: Int

  private var windows: [Kind: Window] = [:]
  private var lastSweep = Instant(nanoseconds: 0)

  package init(window: Duration = .seconds(10), burst: Int = 5, mostKinds: Int = 4096) {
    self.window = window
    self.burst = burst
    self.mostKinds = mostKinds
  }

  /// Whether a line may be written: `nil`: no; otherwise how many of its kind were left out before it.
  package mutating func admit(_ kind: Kind, at now: Instant) -> Int? {
    let kind = windows[kind] == nil && windows.count >= mostKinds ? Kind(code: kind.code, app: nil) : kind
    var current = windows[kind] ?? Window(start: now)
    var before = 0
    if now - current.start >= window {
      before = current.suppressed
      current = Window(start: now)
    }
    guard current.written < burst else {
      current.suppressed += 1
      windows[kind] = current
      return nil
    }
    current.written += 1
    windows[kind] = current
    return before
  }

  /// The kinds whose window is over with lines left out that no later line told of; they are forgotten with that.
  ///
  /// - Parameter all: whether windows that are not over count too, as they do at the end of the process.
  package mutating func sweep(at now: Instant, all: Bool = false) -> [(kind: Kind, suppressed: Int)] {
    guard all || now - lastSweep >= window else { return [] }
    lastSweep = now
    var told: [(kind: Kind, suppressed: Int)] = []
    for (kind, current) in windows where all || now - current.start >= window {
      if current.suppressed > 0 { told.append((kind, current.suppressed)) }
      windows[kind] = nil
    }
    return told.sorted { ($0.kind.code, $0.kind.app ?? "") < ($1.kind.code, $1.kind.app ?? "") }
  }
}
