import Glibc

/// Waits, on the thread that calls, until a consumer has something to poll: for commands that have no event loop.
///
/// It takes the place of any other `Consumer.wake`. Poll once after it is made, and then until nothing is left before
/// each `wait`.
package final class WakeUp {
  private let descriptor: Int32
  private let consumer: Consumer

  package init(for consumer: Consumer) throws(KafkaError) {
    self.consumer = consumer
    descriptor = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
    guard descriptor >= 0 else { throw .configuration("wake", "no event descriptor could be made") }
    consumer.wake(fileDescriptor: descriptor)
  }

  deinit {
    consumer.wake(fileDescriptor: -1)
    close(descriptor)
  }

  /// Returns when there is something, or after `time`, or when a signal comes.
  package func wait(atMost time: Duration) {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    _ = unsafe poll(&entry, 1, time.clampedMilliseconds)
    var count: UInt64 = 0
    _ = unsafe read(descriptor, &count, MemoryLayout<UInt64>.size)
  }
}
