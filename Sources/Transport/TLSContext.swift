import COpenSSL

/// Whose certificates are believed.
package enum Trust: Sendable {
  /// The system's store (`SSL_CERT_FILE` and `SSL_CERT_DIR` move it).
  case system
  /// The certificates of a PEM file, alone.
  case file(String)
  /// The system's store and those of a PEM file.
  case systemAndFile(String)
  /// The certificates of a PEM text, alone.
  case pem(String)
}

/// What a server asks of its clients.
package enum ClientAuthentication: Sendable {
  case none
  /// A certificate is welcome; if one is sent it must be trusted.
  case requested(Trust)
  /// No connection without a trusted certificate.
  case required(Trust)
}

/// What all TLS connections of one kind share: trust, identity, versions and protocols.
///
/// TLS 1.2 at least. A client always verifies the server, chain and name; there is no way to switch that off.
///
/// `@unchecked Sendable` holds because nothing changes after the initialiser, and OpenSSL allows sessions to be made from
/// one context on many threads.
@safe
package final class TLSContext: @unchecked Sendable {
  enum Role {
    case client
    case server
  }

  let handle: OpaquePointer
  let role: Role
  let applicationProtocols: [String]
  /// The protocols as they stand in the handshake: each with its length before it (RFC 7301, section 3.1).
  private let encodedProtocols: [UInt8]

  private init(role: Role, applicationProtocols: [String]) throws(TransportError) {
    let method = unsafe role == .client ? TLS_client_method() : TLS_server_method()
    guard let handle = unsafe SSL_CTX_new(method) else { throw OpenSSLError.take(.system, "TLS", "SSL_CTX_new") }
    unsafe self.handle = handle
    self.role = role
    self.applicationProtocols = applicationProtocols
    encodedProtocols = applicationProtocols.flatMap { [UInt8(truncatingIfNeeded: $0.utf8.count)] + Array($0.utf8) }
    guard unsafe martlet_SSL_CTX_set_min_proto_version(handle, TLS1_2_VERSION) == 1 else {
      throw OpenSSLError.take(.system, "TLS", "minimum version")
    }
    // No renegotiation, no compression: both have been ways to attack.
    unsafe SSL_CTX_set_options(handle, martlet_SSL_OP_common())
    // The output buffer may move between two calls; the content is the same.
    unsafe martlet_SSL_CTX_set_mode(handle, Int(SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER))
  }

  deinit { unsafe SSL_CTX_free(handle) }

  /// - Parameters:
  ///   - trust: whose certificates are believed.
  ///   - identity: the client's certificate, for servers that ask for one.
  ///   - applicationProtocols: offered by ALPN. If not empty the server must choose one of them.
  /// - Throws: a `file` or `credential` error that names the file.
  package static func client(
    trust: Trust = .system, identity: Identity? = nil, applicationProtocols: [String] = ["h2"]
  ) throws(TransportError) -> TLSContext {
    let context = try TLSContext(role: .client, applicationProtocols: applicationProtocols)
    unsafe SSL_CTX_set_verify(context.handle, SSL_VERIFY_PEER, nil)
    context.handOutSessions()
    try context.add(trust)
    if let identity { try context.use(identity) }
    if !applicationProtocols.isEmpty {
      let encoded = context.encodedProtocols
      // This one call answers 0 when it succeeds.
      guard unsafe SSL_CTX_set_alpn_protos(context.handle, encoded, UInt32(encoded.count)) == 0 else {
        throw OpenSSLError.take(.system, "TLS", "application protocols")
      }
    }
    return context
  }

  /// - Parameters:
  ///   - identity: the server's certificate and key.
  ///   - applicationProtocols: in the order of preference. A client that offers none of them is refused; one that does
  ///     not take part in ALPN is not.
  ///   - clientAuthentication: whether clients must show a certificate.
  package static func server(
    identity: Identity, applicationProtocols: [String] = ["h2", "http/1.1"],
    clientAuthentication: ClientAuthentication = .none
  ) throws(TransportError) -> TLSContext {
    let context = try TLSContext(role: .server, applicationProtocols: applicationProtocols)
    try context.use(identity)
    // Tickets still work; only the cache in memory, which would grow with each client, is off.
    unsafe martlet_SSL_CTX_set_session_cache_off(context.handle)
    unsafe SSL_CTX_set_options(context.handle, martlet_SSL_OP_server())
    switch clientAuthentication {
    case .none:
      break
    case .requested(let trust):
      try context.add(trust)
      try context.askForCertificates(SSL_VERIFY_PEER)
    case .required(let trust):
      try context.add(trust)
      try context.askForCertificates(SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT)
    }
    if !applicationProtocols.isEmpty { context.selectProtocols() }
    return context
  }

  /// Sessions go to the connection that they come on, which knows where they may be used again.
  private func handOutSessions() {
    unsafe martlet_SSL_CTX_hand_out_sessions(handle)
    // On the thread of the connection, from within a call on its session. 1 takes the reference over.
    unsafe SSL_CTX_sess_set_new_cb(handle) { connection, session in
      guard let connection = unsafe connection, let session = unsafe session else { return 0 }
      return unsafe TLSSession.keep(session, of: connection) ? 1 : 0
    }
  }

  private func add(_ trust: Trust) throws(TransportError) {
    switch trust {
    case .system:
      try addSystemStore()
    case .file(let path):
      try add(certificates: try PEM.certificates(try CredentialFile.read(path), path), of: path)
    case .systemAndFile(let path):
      try addSystemStore()
      try add(certificates: try PEM.certificates(try CredentialFile.read(path), path), of: path)
    case .pem(let text):
      try add(certificates: try PEM.certificates(Array(text.utf8), "certificates"), of: "certificates")
    }
  }

  private func addSystemStore() throws(TransportError) {
    guard unsafe SSL_CTX_set_default_verify_paths(handle) == 1 else {
      throw OpenSSLError.take(.file, "system certificates", "read")
    }
  }

  private func add(certificates: [Certificate], of file: String) throws(TransportError) {
    guard let store = unsafe SSL_CTX_get_cert_store(handle) else { throw OpenSSLError.take(.system, file, "store") }
    for certificate in certificates {
      guard unsafe X509_STORE_add_cert(store, certificate.handle) == 1 else {
        throw OpenSSLError.take(.credential, file, "certificate")
      }
      // The names of the authorities go out with the request for a client certificate.
      if role == .server { unsafe SSL_CTX_add_client_CA(handle, certificate.handle) }
    }
  }

  private func use(_ identity: Identity) throws(TransportError) {
    guard unsafe SSL_CTX_use_certificate(handle, identity.leaf.handle) == 1,
      unsafe SSL_CTX_use_PrivateKey(handle, identity.key.handle) == 1
    else { throw OpenSSLError.take(.credential, identity.name, "certificate") }
    for certificate in identity.chain {
      guard unsafe martlet_SSL_CTX_add1_chain_cert(handle, certificate.handle) == 1 else {
        throw OpenSSLError.take(.credential, identity.name, "certificate chain")
      }
    }
  }

  private func askForCertificates(_ mode: Int32) throws(TransportError) {
    unsafe SSL_CTX_set_verify(handle, mode, nil)
    // Without a context of its own, a server that verifies clients cannot resume sessions.
    let name: [UInt8] = Array("martlet".utf8)
    guard unsafe SSL_CTX_set_session_id_context(handle, name, UInt32(name.count)) == 1 else {
      throw OpenSSLError.take(.system, "TLS", "session context")
    }
  }

  private func selectProtocols() {
    // Called in a handshake; sessions keep this object, so the unretained reference holds.
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    unsafe SSL_CTX_set_alpn_select_cb(
      handle,
      { _, chosen, chosenLength, offered, offeredLength, context in
        guard let context = unsafe context, let offered = unsafe offered else { return SSL_TLSEXT_ERR_NOACK }
        let server = unsafe Unmanaged<TLSContext>.fromOpaque(context).takeUnretainedValue()
        return unsafe server.select(chosen, chosenLength, offered, Int(offeredLength))
      }, context)
  }

  /// Picks the first of our protocols that the client offers, and points into the client's list.
  private func select(
    _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ chosenLength: UnsafeMutablePointer<UInt8>?,
    _ offered: UnsafePointer<UInt8>, _ offeredLength: Int
  ) -> Int32 {
    for name in applicationProtocols {
      var position = 0
      while position < offeredLength {
        let length = unsafe Int(offered[position])
        let start = position + 1
        position = start + length
        guard position <= offeredLength else { return SSL_TLSEXT_ERR_ALERT_FATAL }
        let candidate = unsafe UnsafeBufferPointer(start: offered + start, count: length)
        guard unsafe candidate.elementsEqual(name.utf8) else { continue }
        unsafe chosen?.pointee = offered + start
        unsafe chosenLength?.pointee = UInt8(length)
        return SSL_TLSEXT_ERR_OK
      }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL
  }
}
