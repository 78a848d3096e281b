import Service
import Wire

/// How far a long input has been read, on one line of a terminal that is written over and over.
struct ProgressBar {
  private static let pause = Duration.milliseconds(100)
  private static let cells = 30

  /// Bytes of the whole input; `nil`: not known.
  private let total: Int?
  private var begun: Instant?
  private var shownAt: Instant?

  init(total: Int?) { self.total = total }

  /// Shows where reading is, unless it was shown a moment ago.
  mutating func show(bytes: Int, done: Int, refused: Int, at now: Instant) {
    let begun = begun ?? now
    self.begun = begun
    if let shownAt, now - shownAt < Self.pause { return }
    shownAt = now
    StandardError.write(Array("\r\u{1B}[K\(line(bytes: bytes, done: done, refused: refused, after: now - begun))".utf8))
  }

  /// Leaves the line empty.
  mutating func clear() {
    guard shownAt != nil else { return }
    shownAt = nil
    StandardError.write(Array("\r\u{1B}[K".utf8))
  }

  /// `[##########--------------------]  33%  120000 read, 3 refused, 98000/s`
  func line(bytes: Int, done: Int, refused: Int, after time: Duration) -> String {
    let seconds = Double(time.nanoseconds) / 1e9
    let count = done + refused
    let rate = seconds > 0 ? Int(Double(count) / seconds) : 0
    let text = "\(count) read, \(refused) refused, \(rate)/s"
    guard let total, total > 0 else { return text }
    let part = min(1, Double(bytes) / Double(total))
    let full = Int(part * Double(Self.cells))
    let percent = String(Int(part * 100))
    return "[" + String(repeating: "#", count: full) + String(repeating: "-", count: Self.cells - full) + "] "
      + String(repeating: " ", count: max(0, 3 - percent.count)) + "\(percent)%  \(text)"
  }
}
