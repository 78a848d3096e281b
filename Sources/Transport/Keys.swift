import COpenSSL

/// An EC key on P-256 that signs and verifies ES256 (RFC 7518, section 3.4): what Apple's `.p8` files hold.
package final class SigningKey: Sendable {
  /// The bytes of a signature: r and s, 32 each.
  package static let signatureSize = 64

  private let key: PrivateKey

  private init(_ key: PrivateKey) { self.key = key }

  /// Loads a `.p8` file: PKCS#8 in PEM form; the older SEC1 form is taken too.
  ///
  /// - Throws: a `file` or `credential` error that names the file; keys of another kind or curve are refused by name.
  package static func load(file: String, password: String? = nil) throws(TransportError) -> SigningKey {
    try SigningKey(pem: try CredentialFile.read(file), named: file, password: password)
  }

  /// The same from PEM text at hand; `name` stands for it in errors.
  package convenience init(pem: [UInt8], named name: String, password: String? = nil) throws(TransportError) {
    let key = try PEM.privateKey(pem, name, password: password)
    try Self.check(key, name)
    self.init(key)
  }

  /// A public key alone; it verifies but cannot sign.
  package convenience init(publicPEM: [UInt8], named name: String) throws(TransportError) {
    let key = try PEM.publicKey(publicPEM, name)
    try Self.check(key, name)
    self.init(key)
  }

  /// A new key.
  package static func generate() throws(TransportError) -> SigningKey { SigningKey(try PrivateKey.generate()) }

  /// The private key as PEM (PKCS#8, as in a `.p8` file).
  package func privatePEM() throws(TransportError) -> String { try key.pem() }

  /// The public key as PEM, to check signatures with.
  package func publicPEM() throws(TransportError) -> String { try key.publicPEM() }

  private static func check(_ key: PrivateKey, _ name: String) throws(TransportError) {
    guard key.algorithm == "EC" else {
      throw TransportError(.credential, name, "the key is of the kind \(key.algorithm); ES256 needs an EC key on P-256")
    }
    guard key.curve == PrivateKey.p256 else {
      throw TransportError(
        .credential, name, "the key is on the curve \(key.curve ?? "unknown"); ES256 needs P-256 (prime256v1)")
    }
  }

  /// Signs `message`: r and s, 32 bytes each, as JSON web tokens carry them (not DER).
  package func sign(_ message: Span<UInt8>) throws(TransportError) -> [UInt8] {
    let der = try signDER(message)
    let signature = unsafe der.withUnsafeBufferPointer { der in
      var position = der.baseAddress
      return unsafe d2i_ECDSA_SIG(nil, &position, der.count)
    }
    guard let signature = unsafe signature else { throw OpenSSLError.take(.system, "signature", "read") }
    defer { unsafe ECDSA_SIG_free(signature) }
    var raw = [UInt8](repeating: 0, count: Self.signatureSize)
    let complete = unsafe raw.withUnsafeMutableBufferPointer { raw in
      guard let base = raw.baseAddress else { return false }
      return unsafe BN_bn2binpad(ECDSA_SIG_get0_r(signature), base, 32) == 32
        && BN_bn2binpad(ECDSA_SIG_get0_s(signature), base + 32, 32) == 32
    }
    guard complete else { throw OpenSSLError.take(.system, "signature", "convert") }
    return raw
  }

  private func signDER(_ message: Span<UInt8>) throws(TransportError) -> [UInt8] {
    guard let context = unsafe EVP_MD_CTX_new() else { throw OpenSSLError.take(.system, "signature", "context") }
    defer { unsafe EVP_MD_CTX_free(context) }
    guard unsafe EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key.handle) == 1 else {
      throw OpenSSLError.take(.credential, "signature", "sign")
    }
    // A P-256 signature in DER is at most 72 bytes.
    var der = [UInt8](repeating: 0, count: 80)
    var count = der.count
    let status = unsafe message.withUnsafeBufferPointer { message in
      unsafe EVP_DigestSign(context, &der, &count, message.baseAddress, message.count)
    }
    guard status == 1 else { throw OpenSSLError.take(.credential, "signature", "sign") }
    return Array(der.prefix(count))
  }

  /// Whether `signature` (r and s) is this key's for `message`; false for anything malformed too.
  package func verify(_ signature: Span<UInt8>, of message: Span<UInt8>) -> Bool {
    defer { ERR_clear_error() }
    guard signature.count == Self.signatureSize, let der = Self.encoded(signature),
      let context = unsafe EVP_MD_CTX_new()
    else { return false }
    defer { unsafe EVP_MD_CTX_free(context) }
    guard unsafe EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key.handle) == 1 else { return false }
    return unsafe message.withUnsafeBufferPointer { message in
      unsafe EVP_DigestVerify(context, der, der.count, message.baseAddress, message.count) == 1
    }
  }

  /// r and s as DER.
  private static func encoded(_ raw: Span<UInt8>) -> [UInt8]? {
    guard let signature = unsafe ECDSA_SIG_new() else { return nil }
    defer { unsafe ECDSA_SIG_free(signature) }
    let isSet = unsafe raw.withUnsafeBufferPointer { raw in
      guard let base = raw.baseAddress, let r = unsafe BN_bin2bn(base, 32, nil),
        let s = unsafe BN_bin2bn(base + 32, 32, nil)
      else { return false }
      // On success the numbers belong to the signature.
      return unsafe ECDSA_SIG_set0(signature, r, s) == 1
    }
    guard isSet else { return nil }
    let count = unsafe i2d_ECDSA_SIG(signature, nil)
    guard count > 0 else { return nil }
    var der = [UInt8](repeating: 0, count: Int(count))
    let written = unsafe der.withUnsafeMutableBufferPointer { der in
      var position = der.baseAddress
      return unsafe i2d_ECDSA_SIG(signature, &position)
    }
    return written == count ? der : nil
  }
}

/// Random bytes of the system's quality.
package enum Randomness {
  /// - Throws: a `system` error if the generator has no entropy; nothing secret may be made then.
  package static func bytes(_ count: Int) throws(TransportError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    guard unsafe RAND_bytes(&bytes, Int32(clamping: count)) == 1 else {
      throw OpenSSLError.take(.system, "random bytes", "RAND_bytes")
    }
    return bytes
  }

  /// A seed for the generators of the pure modules, which take no randomness of their own.
  package static func seed() -> UInt64 {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }
}
