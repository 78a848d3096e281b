import COpenSSL
import Synchronization

/// The TLS sessions that the next connections to one server may resume, which spares both sides the costly part of the
/// handshake (RFC 8446, section 2.2).
///
/// Make one for each server and each set of credentials: a session carries on the identity that it was begun with. Any
/// thread.
package final class TLSSessionCache: Sendable {
  /// The newest ones are kept; more than this no app opens at once.
  package static let capacity = 8

  private let sessions = Mutex<[ResumableSession]>([])

  package init() {}

  /// So many are at hand.
  package var count: Int { sessions.withLock(\.count) }

  /// Lets go of all: what follows makes itself known anew.
  package func removeAll() { sessions.withLock { $0.removeAll() } }

  func put(_ session: ResumableSession) {
    sessions.withLock { sessions in
      if sessions.count == Self.capacity { sessions.removeFirst() }
      sessions.append(session)
    }
  }

  /// The newest. Those of TLS 1.3 are given once: used twice, they would tell an onlooker that both connections are of
  /// one client (RFC 8446, appendix C.4), and the server sends new ones on each connection anyway.
  func take() -> ResumableSession? {
    sessions.withLock { sessions in
      guard let newest = sessions.last else { return nil }
      if newest.isForOneUse { sessions.removeLast() }
      return newest
    }
  }
}

/// Owns one session as OpenSSL keeps it.
///
/// `@unchecked Sendable` holds because it is never changed once it is here, and OpenSSL counts references atomically.
@safe
final class ResumableSession: @unchecked Sendable {
  let handle: OpaquePointer

  @unsafe init(owning handle: OpaquePointer) { unsafe self.handle = handle }

  deinit { unsafe SSL_SESSION_free(handle) }

  var isForOneUse: Bool { unsafe SSL_SESSION_get_protocol_version(handle) >= TLS1_3_VERSION }
}
