import Glibc

/// Waits, on the thread that calls, until a consumer has something to poll: for commands that have no event loop.
///
/// It takes the place of any other `Consumer.wake`. Poll until nothing is left before each `wait`.
package final class ConsumerWait {
  /// The library writes to the one, which makes the other readable.
  private let (readEnd, writeEnd): (Int32, Int32)
  private let consumer: Consumer

  package init(for consumer: Consumer) throws(KafkaError) {
    var ends: [Int32] = [-1, -1]
    guard unsafe pipe(&ends) == 0 else { throw .configuration("wake", "no pipe could be made") }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      // A full pipe is readable already; the library must not wait for room.
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    (readEnd, writeEnd) = (ends[0], ends[1])
    self.consumer = consumer
    consumer.wake(fileDescriptor: writeEnd)
  }

  deinit {
    consumer.wake(fileDescriptor: -1)
    close(readEnd)
    close(writeEnd)
  }

  /// Returns when there is something, or after `time`, or when a signal comes.
  package func wait(atMost time: Duration) {
    var entry = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
    _ = unsafe poll(&entry, 1, time.clampedMilliseconds)
    var written: [UInt8] = Array(repeating: 0, count: 4096)
    _ = unsafe read(readEnd, &written, 4096)
  }
}
