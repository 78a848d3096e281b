/// The rules that a request can break: the bounded set that metrics, results and dead letters name.
package enum InvalidRule: String, CaseIterable, Sendable {
  /// The value is no JSON text (RFC 8259), or nested too deep.
  case malformedJSON = "MalformedJSON"
  /// `app`, `token` or `payload` is absent, or null; or `expiration` is where a channel needs it.
  case missingField = "MissingField"
  /// A field has another JSON type than the contract's, or the value is no object.
  case wrongType = "WrongType"
  /// No configured app has that name.
  case unknownApp = "UnknownApp"
  /// The token is not an even number of 2 to 200 hex digits, there are both forms of it, or `tokens` is empty.
  case badToken = "BadToken"
  /// The push type is unknown, to the app's configuration too, and the request names no topic; or it is no lower-case
  /// word; or the app's certificate does not allow it.
  case badPushType = "BadPushType"
  /// The priority is not 10, 5 or 1, or it is 10 for a push type that forbids it.
  case badPriority = "BadPriority"
  /// The expiration is negative, fractional, or so large that it must be meant in milliseconds.
  case badExpiration = "BadExpiration"
  /// The collapse id is over 64 bytes, or could not travel in an HTTP/2 field.
  case badCollapseID = "BadCollapseId"
  /// The id is empty, over 128 bytes, or has control characters.
  case badID = "BadId"
  /// The topic is empty, over 255 bytes, not printable ASCII, ends in the suffix of another push type, or is not in the
  /// app's certificate.
  case badTopic = "BadTopic"
  /// The payload is no JSON object.
  case badPayload = "BadPayload"
  /// The payload is over the limit of its push type.
  case payloadTooLarge = "PayloadTooLarge"
  /// `tokens` has more than 1,000 items.
  case tooManyTokens = "TooManyTokens"
  /// The `content-type` header, or a CloudEvent's `datacontenttype`, names something that is not read.
  case unsupportedContentType = "UnsupportedContentType"
  /// The channel is empty, over 256 bytes or not base64, or there is a token beside it.
  case badChannel = "BadChannel"
  /// The value is no message of Protocol Buffers, has fields that the schema does not know, or names another message.
  case malformedProtobuf = "MalformedProtobuf"
  /// A CloudEvent lacks a required attribute or its data, or has another version than 1.0.
  case badCloudEvent = "BadCloudEvent"
}

/// A broken rule, and what to tell people about it.
package struct Violation: Error, Hashable, Sendable {
  package var rule: InvalidRule
  /// Names the field, the rule and what was found, shortened; never a payload.
  package var message: String

  package init(_ rule: InvalidRule, _ message: String) {
    self.rule = rule
    self.message = message
  }
}
