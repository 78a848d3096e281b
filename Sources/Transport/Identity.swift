package import Wire

/// A certificate with its private key, and the certificates between it and the authority.
package struct Identity: Sendable {
  /// The file it came from, or what it was made for.
  package let name: String
  let leaf: Certificate
  let chain: [Certificate]
  let key: PrivateKey

  /// The certificate's subject: "CN=…,O=…".
  package var subject: String { leaf.subject }
  /// The `UID` of the subject: for a certificate of Apple's the bundle id, or the topic of an MDM certificate.
  package var userID: String? { leaf.userID }
  package var validFrom: UnixTime { leaf.validFrom }
  /// When the certificate expires.
  package var validUntil: UnixTime { leaf.validUntil }

  /// Loads from a PKCS#12 file, or from PEM files: certificates in any order, and the key in the same file or in one of
  /// its own. Where the key has a file of its own, the certificate may be in DER.
  ///
  /// The leaf is the certificate that the key belongs to; those of the rest that lead from it to the authority follow.
  /// - Throws: a `file` or `credential` error that names the file and never shows its content.
  package static func load(
    certificateFile: String, keyFile: String? = nil, password: String? = nil
  ) throws(TransportError) -> Identity {
    let text = try CredentialFile.read(certificateFile)
    if keyFile == nil && PKCS12.isLikely(text) {
      return try PKCS12.identity(text, certificateFile, password: password)
    }
    let keyText = try keyFile.map { path throws(TransportError) in try CredentialFile.read(path) }
    return try Identity(
      certificatePEM: text, named: certificateFile, keyPEM: keyText ?? text, named: keyFile ?? certificateFile,
      password: password)
  }

  /// The same from PEM text at hand.
  package init(
    certificatePEM: [UInt8], named certificateName: String, keyPEM: [UInt8], named keyName: String,
    password: String? = nil
  ) throws(TransportError) {
    let certificates = try PEM.certificates(certificatePEM, certificateName)
    let key = try PEM.privateKey(keyPEM, keyName, password: password)
    guard let leaf = certificates.first(where: { $0.matches(key) }) else {
      let place = keyName == certificateName ? "its private key" : "the private key in \(keyName)"
      throw TransportError(.credential, certificateName, "no certificate belongs to \(place)")
    }
    self.init(name: certificateName, leaf: leaf, others: certificates.filter { $0 !== leaf }, key: key)
  }

  init(name: String, leaf: Certificate, others: [Certificate], key: PrivateKey) {
    self.name = name
    self.leaf = leaf
    self.key = key
    var chain: [Certificate] = []
    var last = leaf
    while let next = others.first(where: { other in
      last.wasIssued(by: other) && other !== last && !chain.contains { $0 === other }
    }) {
      chain.append(next)
      last = next
    }
    self.chain = chain
  }

  /// The certificate and its chain as PEM.
  package func certificatePEM() throws(TransportError) -> String {
    var text = try leaf.pem()
    for certificate in chain { text += try certificate.pem() }
    return text
  }

  /// The private key as PEM (PKCS#8, not encrypted): for files that a test or a demo makes.
  package func privateKeyPEM() throws(TransportError) -> String { try key.pem() }
}
