import Glibc

/// Standard output without the C library's buffer: what is written is there for a pipe's reader at once.
enum StandardOutput {
  /// Writes all bytes and empties the buffer.
  ///
  /// - Returns: `false` when nobody reads any more (the pipe is closed); the signal for that is ignored meanwhile.
  static func write(_ bytes: inout [UInt8]) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let rest = bytes[sent...]
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR || errno == EAGAIN { continue }
      guard count > 0 else { return false }
      sent += count
    }
    bytes.removeAll(keepingCapacity: true)
    return true
  }
}

/// Ends the process without looking back: for a second signal.
func endProcess(_ status: Int32) -> Never { _exit(status) }
