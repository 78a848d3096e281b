/// Apple's reasons (Apple, "Handling notification responses from APNs").
package enum Reason: UInt8, CaseIterable, Sendable {
  case badCollapseID, badDeviceToken, badExpirationDate, badMessageID, badPriority, badTopic, deviceTokenNotForTopic
  case duplicateHeaders, idleTimeout, invalidPushType, missingDeviceToken, missingTopic, payloadEmpty, topicDisallowed
  case badCertificate, badCertificateEnvironment, expiredProviderToken, forbidden, invalidProviderToken
  case missingProviderToken, unrelatedKeyIDInToken, badEnvironmentKeyIDInToken, badPath, methodNotAllowed
  case expiredToken, unregistered, payloadTooLarge, tooManyProviderTokenUpdates, tooManyRequests
  case internalServerError, serviceUnavailable, shutdown
  /// A text that the table does not know.
  case unknown
}
