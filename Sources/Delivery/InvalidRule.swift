/// The rules that a request can break: the bounded set that metrics and results name.
package enum InvalidRule: String, CaseIterable, Sendable {
  case malformedJSON = "MalformedJSON"
  case missingField = "MissingField"
  case wrongType = "WrongType"
  case unknownApp = "UnknownApp"
  case badToken = "BadToken"
  case badPushType = "BadPushType"
  case badPriority = "BadPriority"
  case badExpiration = "BadExpiration"
  case badCollapseID = "BadCollapseId"
  case badID = "BadId"
  case badTopic = "BadTopic"
  case badPayload = "BadPayload"
  case payloadTooLarge = "PayloadTooLarge"
  case tooManyTokens = "TooManyTokens"
  case unsupportedContentType = "UnsupportedContentType"
}
