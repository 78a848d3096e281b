/// How an app shows who it is.
package enum Authentication: UInt8, CaseIterable, Sendable {
  /// A provider token in each request.
  case token
  /// A client certificate in the TLS handshake.
  case certificate
}

/// Which provider token a connection works with: compared, never read. A connection can change to a younger one of the
/// same key, but not often; another key means another pool, since APNs ties a connection to the key that it sees first.
package struct TokenVersion: Hashable, Sendable {
  /// Counts the tokens that were signed with the key, from 1.
  package var number: UInt32

  package init(_ number: UInt32) { self.number = number }

  /// There is none: the app has a certificate, or its first token is not signed yet.
  package static let none = TokenVersion(0)
}
