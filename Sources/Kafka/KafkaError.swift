import CRdKafka

/// What went wrong, as librdkafka or the broker says it.
///
/// Equality covers all fields; compare `code` to tell causes apart.
package struct KafkaError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Where the error comes from.
  package enum Origin: Hashable, Sendable {
    /// A property of the configuration; nothing was sent.
    case configuration
    /// librdkafka itself: time-outs, connections, wrong use.
    case client
    /// The broker's answer.
    case broker
  }

  /// The library's number of the cause (`rd_kafka_resp_err_t`): negative for its own, positive for the broker's.
  package struct Code: RawRepresentable, Hashable, Sendable {
    package var rawValue: Int32
    package init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// What it is about.
  package enum Subject: Hashable, Sendable {
    case property(String)
    case topic(String)
    case partition(topic: String, partition: Int32)
    case group(String)
  }

  package var origin: Origin
  package var code: Code
  /// The cause's constant name, as `UNKNOWN_TOPIC_OR_PART`; good for a metric label.
  package var name: String
  /// For people.
  package var text: String
  /// Trying again may help.
  package var isRetriable: Bool
  /// The client instance can do nothing more; it must be closed and made anew.
  package var isFatal: Bool
  package var subject: Subject?

  package var description: String {
    switch subject {
    case .property(let property): "\(property): \(text)"
    case .topic(let topic): "topic \(topic): \(text) (\(name))"
    case .partition(let topic, let partition): "\(topic)[\(partition)]: \(text) (\(name))"
    case .group(let group): "group \(group): \(text) (\(name))"
    case nil: "\(text) (\(name))"
    }
  }
}

extension KafkaError.Code {
  package static let unknownTopicOrPartition = Self(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
  package static let topicAlreadyExists = Self(RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
  package static let messageTooLarge = Self(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
  package static let topicAuthorizationFailed = Self(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
  package static let groupAuthorizationFailed = Self(RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED)
  package static let illegalGeneration = Self(RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION)
  package static let unknownMember = Self(RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID)
  package static let rebalanceInProgress = Self(RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS)
  package static let offsetOutOfRange = Self(RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE)
  package static let offsetMetadataTooLarge = Self(RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE)
  /// Every broker is out of reach just now. The library goes on trying.
  package static let allBrokersDown = Self(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
  package static let transport = Self(RD_KAFKA_RESP_ERR__TRANSPORT)
  package static let timedOut = Self(RD_KAFKA_RESP_ERR__TIMED_OUT)
  /// A record was not acknowledged within `message.timeout.ms`.
  package static let messageTimedOut = Self(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)
  /// The consumer was not polled for `max.poll.interval.ms` and has left its group; the next poll joins it again.
  package static let maxPollExceeded = Self(RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED)
  package static let authentication = Self(RD_KAFKA_RESP_ERR__AUTHENTICATION)
  package static let unsupportedFeature = Self(RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE)
  package static let invalidArgument = Self(RD_KAFKA_RESP_ERR__INVALID_ARG)
  package static let purgedFromQueue = Self(RD_KAFKA_RESP_ERR__PURGE_QUEUE)
  package static let purgedInFlight = Self(RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
  package static let erroneousState = Self(RD_KAFKA_RESP_ERR__STATE)

  init(_ code: rd_kafka_resp_err_t) { self.init(rawValue: Int32(code.rawValue)) }
}

extension KafkaError {
  /// The error of a call that returns a bare code.
  init(_ code: rd_kafka_resp_err_t, text: String? = nil, isFatal: Bool = false, subject: Subject? = nil) {
    self.init(
      origin: Int32(code.rawValue) < 0 ? .client : .broker, code: Code(code), name: Self.name(of: code),
      text: text ?? (unsafe String(cString: rd_kafka_err2str(code))), isRetriable: Self.isRetriable(code),
      isFatal: isFatal, subject: subject)
  }

  /// Consumes the C object: it is destroyed here, whatever the caller does next. `nil` in, `nil` out.
  init?(consuming error: OpaquePointer?, subject: Subject? = nil) {
    guard let error = unsafe error else { return nil }
    defer { unsafe rd_kafka_error_destroy(error) }
    self.init(
      unsafe rd_kafka_error_code(error), text: unsafe String(cString: rd_kafka_error_string(error)),
      isFatal: unsafe rd_kafka_error_is_fatal(error) != 0, subject: subject)
    if unsafe rd_kafka_error_is_retriable(error) != 0 { isRetriable = true }
  }

  /// What only a controller can do was asked of brokers that have none.
  package static let noController = KafkaError(
    origin: .broker, code: .unsupportedFeature, name: "NO_CONTROLLER",
    text: "these brokers have no controller, so they cannot make topics; librdkafka's embedded ones make a topic when "
      + "it is first used",
    isRetriable: false, isFatal: false)

  /// The setting that cannot stand, and why.
  static func configuration(_ property: String, _ text: String) -> KafkaError {
    KafkaError(
      origin: .configuration, code: .invalidArgument, name: "INVALID_CONFIG", text: text, isRetriable: false,
      isFatal: false, subject: .property(property))
  }

  private static func name(of code: rd_kafka_resp_err_t) -> String {
    unsafe String(cString: rd_kafka_err2name(code))
  }

  /// Errors that pass by themselves. Only error objects carry the library's own word on it; for bare codes this is
  /// the protocol's "retriable" column plus the library's own transient ones.
  private static func isRetriable(_ code: rd_kafka_resp_err_t) -> Bool {
    switch code {
    case RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, RD_KAFKA_RESP_ERR__TIMED_OUT,
      RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, RD_KAFKA_RESP_ERR__RESOLVE,
      RD_KAFKA_RESP_ERR__WAIT_COORD, RD_KAFKA_RESP_ERR__WAIT_CACHE, RD_KAFKA_RESP_ERR__QUEUE_FULL,
      RD_KAFKA_RESP_ERR__RETRY, RD_KAFKA_RESP_ERR__IN_PROGRESS, RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS,
      RD_KAFKA_RESP_ERR__PURGE_QUEUE, RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, RD_KAFKA_RESP_ERR__SSL,
      RD_KAFKA_RESP_ERR__AUTHENTICATION, RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED, RD_KAFKA_RESP_ERR_INVALID_MSG,
      RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
      RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
      RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION,
      RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
      RD_KAFKA_RESP_ERR_NOT_COORDINATOR, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
      RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS,
      RD_KAFKA_RESP_ERR_NOT_CONTROLLER, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
      RD_KAFKA_RESP_ERR_FETCH_SESSION_ID_NOT_FOUND, RD_KAFKA_RESP_ERR_INVALID_FETCH_SESSION_EPOCH,
      RD_KAFKA_RESP_ERR_LISTENER_NOT_FOUND, RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH,
      RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH, RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE,
      RD_KAFKA_RESP_ERR_PREFERRED_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT,
      RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED:
      true
    default: false
    }
  }
}

/// A name and a stretch of C memory as a Swift string; `nil` for none.
func text(_ pointer: UnsafePointer<CChar>?) -> String? {
  guard let pointer = unsafe pointer else { return nil }
  return unsafe String(cString: pointer)
}

extension KafkaError.Code {
  /// An error by its name (`NOT_LEADER_FOR_PARTITION`) or number; `nil` for what the library does not know.
  package init?(_ text: String) {
    var descriptions: UnsafePointer<rd_kafka_err_desc>?
    var count = 0
    unsafe rd_kafka_get_err_descs(&descriptions, &count)
    guard let descriptions = unsafe descriptions else { return nil }
    for index in 0..<count {
      let description = unsafe descriptions[index]
      guard let name = unsafe Kafka.text(description.name) else { continue }
      if unsafe name == text.uppercased() || String(description.code.rawValue) == text {
        self.init(unsafe description.code)
        return
      }
    }
    return nil
  }
}
