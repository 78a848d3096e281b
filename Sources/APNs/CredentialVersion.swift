/// Which credentials a connection works with: compared, never read.
package struct CredentialVersion: Hashable, Sendable {
  /// Counts the keys or certificates that the app has been given. APNs ties a connection to the key that it sees first,
  /// so that a new key needs a new connection.
  package var key: UInt32
  /// Counts the provider tokens signed with that key; stays 0 for a certificate. A connection can change to a younger
  /// token, but not often.
  package var token: UInt32

  package init(key: UInt32, token: UInt32 = 0) {
    self.key = key
    self.token = token
  }
}

/// How an app shows who it is.
package enum Authentication: UInt8, CaseIterable, Sendable {
  /// A provider token in each request.
  case token
  /// A client certificate in the TLS handshake.
  case certificate
}
