import Glibc
import Wire

/// Reads lines from a descriptor, a chunk at a time, so that input of any length takes the same memory.
struct LineReader {
  /// What the next step brought.
  enum Step {
    /// A line without its end; never empty and never longer than the bound.
    case line([UInt8], number: Int)
    case tooLong(number: Int)
    /// Nothing for now; ask again.
    case pause
    case end
  }

  private let descriptor: Int32
  private let name: String
  private let longest: Int
  private var chunk: [UInt8]
  private var position = 0
  private var count = 0
  /// The beginning of a line whose end has not been read.
  private var partial: [UInt8] = []
  private var isSkipping = false
  private var isAtEnd = false
  private var number = 0
  /// Bytes read so far.
  private(set) var bytes = 0

  /// - Parameters:
  ///   - name: for errors.
  ///   - longest: bytes of a line.
  init(descriptor: Int32, name: String, longest: Int, chunkSize: Int = 256 * 1024) {
    self.descriptor = descriptor
    self.name = name
    self.longest = longest
    chunk = [UInt8](repeating: 0, count: chunkSize)
  }

  /// The next line that is not empty. Waits for input, a tenth of a second at most.
  mutating func next() throws(LocalFileError) -> Step {
    while true {
      if position < count {
        if let step = scan() { return step }
        continue
      }
      if isAtEnd { return last() }
      guard isReadable() else { return .pause }
      try fill()
    }
  }

  /// Takes what is left of the chunk up to the next line end; `nil`: there was none, or the line was empty.
  private mutating func scan() -> Step? {
    let start = position
    var end = start
    while end < count, chunk[end] != 0x0A { end += 1 }
    let hasEnded = end < count
    position = hasEnded ? end + 1 : end
    if !isSkipping, partial.count + (end - start) > longest {
      isSkipping = true
      partial.removeAll()
    }
    if !isSkipping { partial += chunk[start..<end] }
    return hasEnded ? finish() : nil
  }

  private mutating func finish() -> Step? {
    number += 1
    defer { isSkipping = false }
    if isSkipping { return .tooLong(number: number) }
    if partial.last == 0x0D { partial.removeLast() }
    let line = exchange(&partial, with: [])
    return line.allSatisfy { $0 == 0x20 || $0 == 0x09 } ? nil : .line(line, number: number)
  }

  private mutating func last() -> Step {
    guard isSkipping || !partial.isEmpty else { return .end }
    return finish() ?? .end
  }

  private func isReadable() -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    // A file is always readable, and what poll does not know of, read tells.
    return unsafe poll(&entry, 1, 100) != 0
  }

  private mutating func fill() throws(LocalFileError) {
    let size = chunk.count
    let got = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, size) }
    guard got >= 0 || errno == EINTR || errno == EAGAIN else { throw LocalFileError(path: name, number: errno) }
    position = 0
    count = max(0, got)
    bytes += count
    isAtEnd = got == 0
  }
}
