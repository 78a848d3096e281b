import CLinux
import Glibc
package import Wire

/// The gate to the kernel: every call that can be interrupted or would block is settled here, so that the rest of the
/// module sees neither `errno` nor `EINTR`.
enum Syscalls {
  /// How a read or a write on a non-blocking descriptor ended.
  enum Transfer {
    /// So many bytes; 0 from a read is the end of the stream.
    case bytes(Int)
    case wouldBlock
    /// Failed with this `errno`.
    case failed(Int32)
  }

  /// A call that answered with a value, or with -1 and an `errno`.
  enum Outcome {
    case value(Int32)
    case failed(Int32)
  }

  @inline(__always)
  private static func retrying(_ call: () -> Int) -> Transfer {
    while true {
      let count = call()
      if count >= 0 { return .bytes(count) }
      let number = errno
      if number == EINTR { continue }
      return number == EAGAIN || number == EWOULDBLOCK ? .wouldBlock : .failed(number)
    }
  }

  /// Calls until the answer is not `EINTR`.
  @inline(__always)
  static func outcome(_ call: () -> Int32) -> Outcome {
    while true {
      let value = call()
      if value >= 0 { return .value(value) }
      let number = errno
      if number != EINTR { return .failed(number) }
    }
  }

  @inline(__always)
  @unsafe static func receive(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
    retrying { unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0) }
  }

  /// The same, but the bytes stay in the socket.
  @unsafe static func peek(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
    retrying { unsafe recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_PEEK)) }
  }

  /// Sends what the kernel takes. A broken connection answers `EPIPE` instead of raising `SIGPIPE`.
  @inline(__always)
  @unsafe static func send(_ descriptor: Int32, _ buffer: UnsafeRawBufferPointer) -> Transfer {
    retrying { unsafe Glibc.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL)) }
  }

  /// Closes; an interrupted close has closed all the same on Linux, so it is not repeated.
  static func close(_ descriptor: Int32) {
    _ = Glibc.close(descriptor)
  }

  /// Adds 1 to an eventfd, which wakes whoever waits for it.
  static func signal(_ eventDescriptor: Int32) {
    var one: UInt64 = 1
    _ = retrying { unsafe write(eventDescriptor, &one, MemoryLayout<UInt64>.size) }
  }

  static func makeEventDescriptor() -> Outcome {
    outcome { eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK)) }
  }

  static func monotonicNow() -> Instant {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Instant(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
  }

  static func wallClockNow() -> UnixTime {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
    return UnixTime(milliseconds: Int64(time.tv_sec) &* 1000 &+ Int64(time.tv_nsec) / 1_000_000)
  }

  /// The system's words for an `errno`.
  static func describe(_ number: Int32) -> String {
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let base = buffer.baseAddress, unsafe strerror_r(number, base, 256) == 0 else {
        return "error \(number)"
      }
      return unsafe String(cString: base)
    }
  }
}

/// Readings of the system's clocks, for code that does not run on an event loop.
package enum Clock {
  package static var moment: Moment { Moment(instant: now, time: time) }
  /// `CLOCK_MONOTONIC`.
  package static var now: Instant { Syscalls.monotonicNow() }
  /// `CLOCK_REALTIME`.
  package static var time: UnixTime { Syscalls.wallClockNow() }
}
