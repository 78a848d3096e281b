import CRdKafka
import Synchronization

/// Knows whether a member has asked to join its group and has not been told its part yet.
///
/// A commit that is sent in that time waits at the broker behind the join, and is then of a generation that is over: it
/// is refused, and a library before 2.10 gives up its whole assignment for it. The library has no call that tells of the
/// join, so its requests are watched on their way out and back.
///
/// Thread-safe: the library's threads write, the consumer's thread reads.
@safe
final class JoinWatch: Sendable {
  /// The protocol's numbers of the two requests.
  private static let joinGroup: Int16 = 11
  private static let syncGroup: Int16 = 14

  private let state = Atomic<Bool>(false)

  /// Whether a JoinGroup request is out, or its SyncGroup request.
  var isJoining: Bool { state.load(ordering: .acquiring) }

  /// Has a configuration's client watched. The watch must outlive the client.
  func install(_ configuration: OpaquePointer) {
    let own = unsafe Unmanaged.passUnretained(self).toOpaque()
    unsafe rd_kafka_conf_interceptor_add_on_new(
      configuration, "joins",
      { (client, _, own, _, _) in
        unsafe rd_kafka_interceptor_add_on_request_sent(
          client, "joins",
          { (_, _, _, _, key, _, _, _, own) in
            if key == JoinWatch.joinGroup { unsafe JoinWatch.at(own)?.state.store(true, ordering: .releasing) }
            return RD_KAFKA_RESP_ERR_NO_ERROR
          }, own)
        return unsafe rd_kafka_interceptor_add_on_response_received(
          client, "joins",
          { (_, _, _, _, key, _, _, _, _, _, own) in
            if key == JoinWatch.syncGroup { unsafe JoinWatch.at(own)?.state.store(false, ordering: .releasing) }
            return RD_KAFKA_RESP_ERR_NO_ERROR
          }, own)
      }, own)
  }

  private static func at(_ pointer: UnsafeMutableRawPointer?) -> JoinWatch? {
    unsafe pointer.map { unsafe Unmanaged<JoinWatch>.fromOpaque($0).takeUnretainedValue() }
  }
}
