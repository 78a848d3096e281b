import CRdKafka
import Glibc

/// Has the library fetch again in time, in versions that forget to.
///
/// Before 2.2, a broker's thread that found enough records fetched ahead (`queued.min.messages`,
/// `queued.max.messages.kbytes`) sleeps for up to a second, and nobody wakes it when the records are gone: the flow stops
/// for a good part of each second as soon as it is faster than the bound is large. Any request to that broker wakes its
/// thread, which then looks at the bound anew. So when half of what was fetched ahead is gone, each leader is asked for
/// offsets, which any member may ask for; the answer is of no interest.
///
/// The library has no call that asks without waiting, so a short-lived thread waits, one at a time.
///
/// `@unchecked Sendable` holds: the thread uses the library's handle alone, which any thread may, and all else is the
/// consumer's thread's.
final class FetchWaker: @unchecked Sendable {
  /// A request that is not answered within the timeout would cost the connection, so it is a long one.
  private static let timeout: Int32 = 10_000

  private let client: KafkaClient
  private var level = FetchLevel()
  private var thread: pthread_t?

  init(client: KafkaClient) { self.client = client }

  /// Whether the library needs this.
  static var isNeeded: Bool { KafkaLibrary.versionNumber < 0x0202_0000 }

  /// To be told after each poll how many records are left.
  func left(_ count: Int) {
    guard level.mustWake(left: count) else { return }
    if let thread {
      // It asks still: that is one wake-up already.
      guard pthread_tryjoin_np(thread, nil) == 0 else { return }
      self.thread = nil
    }
    let retained = unsafe Unmanaged.passRetained(self)
    var started = pthread_t()
    let status = unsafe pthread_create(
      &started, nil,
      { context in
        guard let context = unsafe context else { return nil }
        unsafe Unmanaged<FetchWaker>.fromOpaque(context).takeRetainedValue().ask()
        return nil
      }, retained.toOpaque())
    if status == 0 {
      thread = started
    } else {
      unsafe retained.release()
    }
  }

  /// Waits for the last thread. Before the client is freed.
  func finish() {
    guard let thread else { return }
    pthread_join(thread, nil)
    self.thread = nil
  }

  private func ask() {
    var assigned: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?
    guard unsafe rd_kafka_assignment(client.handle, &assigned) == RD_KAFKA_RESP_ERR_NO_ERROR,
      let assigned = unsafe assigned
    else { return }
    defer { unsafe rd_kafka_topic_partition_list_destroy(assigned) }
    // The timestamp -1 asks for the end of each partition.
    for index in 0..<Int(unsafe assigned.pointee.cnt) { unsafe assigned.pointee.elems[index].offset = -1 }
    if unsafe assigned.pointee.cnt > 0 { _ = unsafe rd_kafka_offsets_for_times(client.handle, assigned, Self.timeout) }
  }
}

/// When to wake the fetching: each time that half of the records which once waited are gone.
struct FetchLevel {
  /// Fewer than this are gone before a wake-up could help.
  static let floor = 1024

  private var peak = 0

  /// - Parameter left: records that wait now.
  mutating func mustWake(left: Int) -> Bool {
    if left >= peak {
      peak = left
      return false
    }
    guard peak >= Self.floor, left <= peak / 2 else { return false }
    peak = left
    return true
  }
}
