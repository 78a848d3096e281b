import CRdKafka

/// What a failed delivery says about the record, and so what helps.
package enum PublishingFault: Hashable, Sendable {
  /// The brokers will not take this record as it is, ever. Brokers judge whole batches, so it may be a neighbour that
  /// was meant: only what is refused in a batch of its own is itself at fault.
  case record
  /// Nothing can be written to this topic until somebody mends something: it is missing, or may not be written to.
  case topic
  /// It passes by itself.
  case passing
}

extension KafkaError {
  /// What it means when a record was not stored for this reason.
  package var publishingFault: PublishingFault {
    switch rd_kafka_resp_err_t(rawValue: code.rawValue) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE,
      RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, RD_KAFKA_RESP_ERR_INVALID_RECORD:
      .record
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
      RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
      RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION,
      RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS, RD_KAFKA_RESP_ERR_INVALID_CONFIG,
      RD_KAFKA_RESP_ERR_POLICY_VIOLATION, RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP,
      RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION,
      RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE, RD_KAFKA_RESP_ERR_SECURITY_DISABLED:
      .topic
    default: .passing
    }
  }

  /// Whether the brokers refuse the client's credentials or rights: it goes on trying, but somebody must mend it.
  package var isRefusal: Bool {
    switch rd_kafka_resp_err_t(rawValue: code.rawValue) {
    case RD_KAFKA_RESP_ERR__AUTHENTICATION, RD_KAFKA_RESP_ERR__SSL, RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED,
      RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM, RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE,
      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
      RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      true
    default: false
    }
  }
}
