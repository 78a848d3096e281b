import COpenSSL
import Glibc

/// One TLS connection as a machine: ciphertext in, plaintext out, and the other way round. It does no I/O.
///
/// OpenSSL reads and writes through a BIO of ours: it takes the bytes lent by `receive`, and appends records to `output`,
/// so that several records leave in one system call. Used on one loop.
@safe
final class TLSSession {
  enum HandshakeResult {
    case needsInput
    case done
    case failed(TransportError)
  }

  enum ReadResult {
    case bytes(Int)
    /// All that was received is used up.
    case needsInput
    /// The peer ended TLS in good order.
    case closed
    case failed(TransportError)
  }

  /// Ciphertext to be sent.
  var output = OutputBuffer()
  /// The peer has ended TLS in good order.
  private(set) var peerClosed = false
  private(set) var applicationProtocol: String?

  private let handle: OpaquePointer
  private let context: TLSContext
  private let peer: String
  /// Where sessions are taken from and put; `nil`: each handshake is a full one.
  private let sessions: TLSSessionCache?
  /// Ciphertext lent by `receive` and not taken yet.
  private var input = unsafe UnsafeRawBufferPointer(start: nil, count: 0)

  /// - Parameters:
  ///   - serverName: what the server's certificate must be for; of no meaning on the server's side.
  ///   - sessions: those of this server and these credentials, for a client.
  init(
    _ context: TLSContext, peer: String, serverName: String, sessions: TLSSessionCache? = nil
  ) throws(TransportError) {
    guard let handle = unsafe SSL_new(context.handle) else { throw OpenSSLError.take(.system, peer, "SSL_new") }
    unsafe self.handle = handle
    self.context = context
    self.peer = peer
    self.sessions = sessions
    guard let bio = unsafe BIO_new(Self.method) else { throw OpenSSLError.take(.system, peer, "BIO_new") }
    // The BIO lives no longer than the handle, which is freed with this object.
    unsafe BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
    unsafe BIO_set_init(bio, 1)
    unsafe SSL_set_bio(handle, bio, bio)
    switch context.role {
    case .client:
      unsafe SSL_set_connect_state(handle)
      try expect(serverName)
      if let session = sessions?.take() { unsafe SSL_set_session(handle, session.handle) }
    case .server:
      unsafe SSL_set_accept_state(handle)
    }
  }

  deinit { unsafe SSL_free(handle) }

  /// Has the certificate checked against the name (RFC 9525), and sends the name along (SNI; names only, RFC 6066).
  private func expect(_ serverName: String) throws(TransportError) {
    var name = serverName
    if name.hasSuffix(".") { name.removeLast() }
    guard !name.isEmpty else { throw TransportError(.certificateRefused, peer, "no server name to check for") }
    if unsafe X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(handle), name) == 1 { return }
    ERR_clear_error()
    unsafe SSL_set_hostflags(handle, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    guard unsafe SSL_set1_host(handle, name) == 1, unsafe martlet_SSL_set_tlsext_host_name(handle, name) == 1 else {
      throw OpenSSLError.take(.system, peer, "server name")
    }
  }

  /// Whether the handshake resumed a session.
  var isResumed: Bool { unsafe SSL_session_reused(handle) == 1 }

  /// Takes a session that the server has given to a connection, with its reference.
  /// - Returns: false if it is of no use; then the reference stays OpenSSL's.
  static func keep(_ session: OpaquePointer, of connection: OpaquePointer) -> Bool {
    guard let bio = unsafe SSL_get_rbio(connection), let sessions = unsafe of(bio)?.sessions,
      unsafe SSL_SESSION_is_resumable(session) == 1
    else { return false }
    sessions.put(unsafe ResumableSession(owning: session))
    return true
  }

  /// Lends ciphertext from the peer. `handshake` and `read` must be called until they need more, before the bytes go.
  @unsafe func receive(_ bytes: UnsafeRawBufferPointer) {
    // An error left on this thread by anyone else would be taken for one of this session.
    ERR_clear_error()
    unsafe input = bytes
  }

  /// Goes on with the handshake.
  func handshake() -> HandshakeResult {
    ERR_clear_error()
    let status = unsafe SSL_do_handshake(handle)
    if status == 1 { return finishHandshake() }
    switch unsafe SSL_get_error(handle, status) {
    case SSL_ERROR_WANT_READ: return .needsInput
    default: return .failed(failure(during: "TLS handshake"))
    }
  }

  private func finishHandshake() -> HandshakeResult {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    unsafe SSL_get0_alpn_selected(handle, &name, &length)
    if let name = unsafe name, length > 0 {
      let bytes = unsafe UnsafeBufferPointer(start: name, count: Int(length))
      applicationProtocol = unsafe String(decoding: bytes, as: UTF8.self)
    }
    if context.role == .client, !context.applicationProtocols.isEmpty {
      let offered = context.applicationProtocols.joined(separator: ", ")
      guard let chosen = applicationProtocol else {
        return .failed(
          TransportError(.applicationProtocol, peer, "the server chose no protocol (ALPN); offered: \(offered)"))
      }
      guard context.applicationProtocols.contains(chosen) else {
        return .failed(
          TransportError(.applicationProtocol, peer, "the server chose a protocol (ALPN) that was not offered"))
      }
    }
    return .done
  }

  /// Decrypts into `buffer`; up to one record a call.
  @unsafe func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
    let count = unsafe SSL_read(handle, buffer.baseAddress, Int32(clamping: buffer.count))
    if count > 0 { return .bytes(Int(count)) }
    switch unsafe SSL_get_error(handle, count) {
    case SSL_ERROR_WANT_READ:
      return .needsInput
    case SSL_ERROR_ZERO_RETURN:
      peerClosed = true
      return .closed
    default:
      return .failed(failure(during: "TLS"))
    }
  }

  /// Encrypts `bytes`, all of them, into `output`.
  @unsafe func write(_ bytes: UnsafeRawBufferPointer) -> TransportError? {
    let count = unsafe SSL_write(handle, bytes.baseAddress, Int32(clamping: bytes.count))
    return count == bytes.count ? nil : failure(during: "TLS")
  }

  /// Appends the end of TLS (close_notify) to `output`.
  func close() {
    unsafe SSL_shutdown(handle)
    ERR_clear_error()
  }

  /// What the peer's certificate says of itself; nil if it sent none.
  var peerCertificateSubject: String? {
    guard let certificate = unsafe SSL_get0_peer_certificate(handle) else { return nil }
    return unsafe X509Text.subject(certificate)
  }

  // MARK: Failures

  // TLS alerts from the peer have reasons of 1000 plus their number (RFC 8446, section 6.2).

  private static let noApplicationProtocolAlert: Int32 = 1000 + 120
  /// Those that are about our certificate: handshake_failure (what peers of TLS 1.2 say where one is missing),
  /// bad_certificate and what follows it, unknown_ca, access_denied, certificate_required. Any other one is the peer's
  /// trouble or the protocol's.
  private static let certificateAlerts: Set<Int32> = [1040, 1041, 1042, 1043, 1044, 1045, 1046, 1048, 1049, 1116]

  private func failure(during what: String) -> TransportError {
    let error = OpenSSLError.take()
    let result = unsafe SSL_get_verify_result(handle)
    if error.reason == SSL_R_CERTIFICATE_VERIFY_FAILED {
      let words = unsafe String(cString: X509_verify_cert_error_string(result))
      return TransportError(.certificateRefused, peer, "certificate refused: \(words)", code: UInt(result.magnitude))
    }
    let kind: TransportError.Kind
    switch error.reason {
    case SSL_R_NO_APPLICATION_PROTOCOL, Self.noApplicationProtocolAlert: kind = .applicationProtocol
    case SSL_R_UNEXPECTED_EOF_WHILE_READING: kind = .endedEarly
    case let reason where Self.certificateAlerts.contains(reason): kind = .alert
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: kind = .certificateRefused
    default: kind = .handshake
    }
    return TransportError(kind, peer, "\(what): \(error.text)", code: error.code)
  }

  // MARK: The BIO

  /// The table of our BIO's functions: made once, never freed. `nonisolated(unsafe)` holds because it does not change
  /// after that.
  private nonisolated(unsafe) static let method: OpaquePointer? = unsafe makeMethod()

  private static func makeMethod() -> OpaquePointer? {
    guard let method = unsafe BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "martlet") else { return nil }
    // On the loop's thread, from within a call on the session that the BIO's data points to.
    unsafe BIO_meth_set_read(method) { bio, buffer, count in
      guard let bio = unsafe bio, let session = unsafe TLSSession.of(bio) else { return -1 }
      unsafe martlet_BIO_clear_retry_flags(bio)
      let taken = unsafe session.take(buffer, Int(count))
      if taken == 0 { unsafe martlet_BIO_set_retry_read(bio) }
      return taken == 0 ? -1 : Int32(taken)
    }
    // The same; the bytes are copied before it returns.
    unsafe BIO_meth_set_write(method) { bio, buffer, count in
      guard let bio = unsafe bio, let session = unsafe TLSSession.of(bio) else { return -1 }
      unsafe martlet_BIO_clear_retry_flags(bio)
      unsafe session.output.append(UnsafeRawBufferPointer(start: buffer, count: Int(count)))
      return count
    }
    unsafe BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
    return unsafe method
  }

  private static func of(_ bio: OpaquePointer) -> TLSSession? {
    guard let data = unsafe BIO_get_data(bio) else { return nil }
    return unsafe Unmanaged<TLSSession>.fromOpaque(data).takeUnretainedValue()
  }

  private func take(_ buffer: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
    let taken = unsafe min(count, input.count)
    guard taken > 0, let buffer = unsafe buffer, let base = unsafe input.baseAddress else { return 0 }
    unsafe memcpy(buffer, base, taken)
    unsafe input = UnsafeRawBufferPointer(rebasing: input[taken...])
    return taken
  }
}
