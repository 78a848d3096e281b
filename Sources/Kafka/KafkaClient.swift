import CRdKafka

/// A line of the library's log.
package struct KafkaLogLine: Hashable, Sendable {
  /// syslog's number: 0 emergency, 3 error, 4 warning, 6 information, 7 debug.
  package var level: Int
  /// The library's own word for the matter, as `FAIL` or `REQTMOUT`.
  package var facility: String
  package var text: String
}

/// Takes log lines. It is called by whoever polls the client, on that thread, and must not call the client.
package typealias LogSink = @Sendable (KafkaLogLine) -> Void

/// Gives the bearer token for SASL OAUTHBEARER, as it is now. It is called when a client is made and again before each
/// token ends, by whoever polls the client, and must not wait.
package typealias BearerTokenSource = @Sendable () throws -> String

/// Owns one `rd_kafka_t` and the one queue that everything it has to say comes through.
///
/// The library has threads of its own; they put operations on the queue, and only the owner's thread takes them off.
/// Of ours they run nothing but `JoinWatch`, which sets a flag.
@safe
final class KafkaClient {
  let handle: OpaquePointer
  let queue: OpaquePointer
  private let log: LogSink
  private let tokenSource: BearerTokenSource?
  private var isDestroyed = false

  /// - Parameters:
  ///   - properties: those that the configuration was made from.
  ///   - events: the kinds of event that the client is asked for, beside those of every client.
  /// - Throws: `KafkaError` of origin `configuration` when the settings do not go together.
  init(
    _ type: rd_kafka_type_t, _ configuration: consuming Configuration, _ properties: KafkaProperties,
    events: Int32, log: @escaping LogSink
  ) throws(KafkaError) {
    self.log = log
    tokenSource = properties.tokenSource
    configuration.enableEvents(
      events | Int32(RD_KAFKA_EVENT_LOG | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH))
    unsafe handle = try configuration.makeClient(type)
    // A queue of our own, with the others forwarded to it: one place to poll, and one that the consumer's close can be
    // told to use too.
    unsafe queue = rd_kafka_queue_new(handle)
    if let main = unsafe rd_kafka_queue_get_main(handle) {
      unsafe rd_kafka_queue_forward(main, queue)
      unsafe rd_kafka_queue_destroy(main)
    }
    _ = unsafe rd_kafka_set_log_queue(handle, queue)
    // At once, as the first connection needs it, and somebody may wait for an answer before he polls.
    if properties.needsToken { refreshToken(from: tokenSource) }
  }

  deinit { destroy(skippingConsumerClose: true) }

  /// Frees the client; joins the library's threads, which may take some milliseconds. Later calls do nothing, but no
  /// other method may be called any more.
  ///
  /// - Parameter skippingConsumerClose: leave the group silently. Without it the library would wait here until the
  ///   group's revocation is answered, which nobody could do.
  func destroy(skippingConsumerClose: Bool) {
    guard !isDestroyed else { return }
    isDestroyed = true
    unsafe rd_kafka_queue_io_event_enable(queue, -1, nil, 0)
    unsafe rd_kafka_queue_destroy(queue)
    unsafe rd_kafka_destroy_flags(
      handle, skippingConsumerClose ? Int32(RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE) : 0)
  }

  /// Leaves the client to the end of the process: nothing is freed, and nothing waits. Its threads go on, but write to
  /// no descriptor of ours any more.
  func abandon() {
    guard !isDestroyed else { return }
    isDestroyed = true
    unsafe rd_kafka_queue_io_event_enable(queue, -1, nil, 0)
  }

  /// Has the library write an 8-byte 1 to `fileDescriptor` (a non-blocking eventfd) when there is something to poll.
  ///
  /// It writes when an operation comes onto an *empty* queue, and not again until the queue has been read since. So:
  /// reset the eventfd first, then poll until the queue is empty. Whoever stops earlier must come back by himself; no
  /// wake-up is owed to him. What lies on the queue when this is called is not announced: poll once afterwards.
  func wake(fileDescriptor: Int32) {
    var one: UInt64 = 1
    unsafe rd_kafka_queue_io_event_enable(queue, fileDescriptor, &one, MemoryLayout<UInt64>.size)
  }

  /// The next event, or `nil` when the queue is empty. Lines of the log and
  /// requests for a token are dealt with here. Never blocks unless told to.
  func nextEvent(timeout: Int32 = 0) -> Event? {
    while let event = unsafe rd_kafka_queue_poll(queue, timeout) {
      switch unsafe rd_kafka_event_type(event) {
      case RD_KAFKA_EVENT_LOG: unsafe forwardLog(event)
      case RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH: refreshToken(from: tokenSource)
      default: return unsafe Event(event)
      }
      unsafe rd_kafka_event_destroy(event)
    }
    return nil
  }

  /// The error that has put the client out of use, if there is one.
  var fatalError: KafkaError? {
    var code = RD_KAFKA_RESP_ERR_NO_ERROR
    let words: String? = unsafe withErrorText { (buffer, size) -> Bool in
      unsafe code = rd_kafka_fatal_error(handle, buffer, size)
      return code == RD_KAFKA_RESP_ERR_NO_ERROR
    }
    return words.map { KafkaError(code, text: $0, isFatal: true) }
  }

  /// The error of an event of kind error.
  func error(of event: borrowing Event) -> KafkaError {
    let code = unsafe rd_kafka_event_error(event.pointer)
    if unsafe rd_kafka_event_error_is_fatal(event.pointer) != 0, let fatal = fatalError { return fatal }
    var subject: KafkaError.Subject?
    if let place = unsafe rd_kafka_event_topic_partition(event.pointer) {
      subject = unsafe .partition(topic: text(place.pointee.topic) ?? "", partition: place.pointee.partition)
      unsafe rd_kafka_topic_partition_destroy(place)
    }
    return KafkaError(
      code, text: unsafe text(rd_kafka_event_error_string(event.pointer)),
      isFatal: unsafe rd_kafka_event_error_is_fatal(event.pointer) != 0, subject: subject)
  }

  private func forwardLog(_ event: OpaquePointer) {
    var facility: UnsafePointer<CChar>?
    var words: UnsafePointer<CChar>?
    var level: Int32 = 0
    guard unsafe rd_kafka_event_log(event, &facility, &words, &level) == 0 else { return }
    log(KafkaLogLine(level: Int(level), facility: unsafe text(facility) ?? "", text: unsafe text(words) ?? ""))
  }
}

/// Owns an event of the library, destroyed with it.
@safe
struct Event: ~Copyable {
  let pointer: OpaquePointer

  init(_ pointer: OpaquePointer) { unsafe self.pointer = pointer }
  deinit { unsafe rd_kafka_event_destroy(pointer) }

  var kind: Int32 { unsafe rd_kafka_event_type(pointer) }
}
