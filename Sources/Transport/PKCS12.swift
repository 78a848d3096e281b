import COpenSSL

/// Takes a certificate and its key out of a PKCS#12 file (`.p12`), as Keychain Access and `openssl pkcs12` write it.
enum PKCS12 {
  /// PKCS#12 is DER: a sequence. PEM text never begins so.
  static func isLikely(_ bytes: [UInt8]) -> Bool { bytes.first == 0x30 }

  /// Files that Keychain Access wrote have ciphers that OpenSSL 3 keeps apart (RC2, 3DES): those are read with its
  /// legacy provider.
  /// - Parameter legacy: where that is loaded; `nil`: it is not there.
  /// - Throws: a `credential` error that names `file` and, where an old cipher cannot be read, the remedy.
  static func identity(
    _ bytes: [UInt8], _ file: String, password: String?, legacy: LegacyCiphers? = LegacyCiphers.shared
  ) throws(TransportError) -> Identity {
    do {
      return try open(bytes, file, password: password, with: nil)
    } catch let error where error.cause == oldCipher {
      guard let legacy else { throw error }
      let identity = try open(bytes, file, password: password, with: legacy)
      // What was opened there belongs to that provider; TLS is to know nothing of it.
      return try Identity(
        certificatePEM: Array(identity.certificatePEM().utf8), named: file,
        keyPEM: Array(identity.privateKeyPEM().utf8), named: file)
    }
  }

  private static func open(
    _ bytes: [UInt8], _ file: String, password: String?, with legacy: LegacyCiphers?
  ) throws(TransportError) -> Identity {
    let bio = try MemoryBIO(bytes)
    guard let archive = unsafe archive(in: bio.handle, legacy) else {
      if (try? PEM.certificates(bytes, file)) != nil {
        ERR_clear_error()
        throw TransportError(
          .credential, file, "a certificate alone (DER); its private key must be in a file of its own (keyFile)")
      }
      throw OpenSSLError.take(.credential, file, "neither PEM nor PKCS#12")
    }
    defer { unsafe PKCS12_free(archive) }
    var key: OpaquePointer?
    var leaf: OpaquePointer?
    var others: OpaquePointer?
    let status = unsafe PKCS12_parse(archive, password ?? "", &key, &leaf, &others)
    // What came out is owned from here on, whatever is missing.
    let ownedKey = unsafe key.map { unsafe PrivateKey(owning: $0) }
    let ownedLeaf = unsafe leaf.map { unsafe Certificate(owning: $0) }
    let ownedOthers = unsafe taken(others)
    guard status == 1 else { throw failure(file, password) }
    ERR_clear_error()
    guard let ownedKey else { throw TransportError(.credential, file, "the file holds no private key") }
    guard let ownedLeaf else {
      throw TransportError(.credential, file, "no certificate in the file belongs to its private key")
    }
    return Identity(name: file, leaf: ownedLeaf, others: ownedOthers, key: ownedKey)
  }

  private static func archive(in bio: OpaquePointer, _ legacy: LegacyCiphers?) -> OpaquePointer? {
    guard let legacy else { return unsafe d2i_PKCS12_bio(bio, nil) }
    // What is given to be filled names the library context; it is freed if reading fails.
    var empty = unsafe PKCS12_init_ex(NID_pkcs7_data, legacy.context, nil)
    return unsafe d2i_PKCS12_bio(bio, &empty)
  }

  private static func taken(_ stack: OpaquePointer?) -> [Certificate] {
    guard let stack = unsafe stack else { return [] }
    defer { unsafe martlet_sk_X509_free(stack) }
    var certificates: [Certificate] = []
    while let handle = unsafe martlet_sk_X509_shift(stack) { certificates.append(unsafe Certificate(owning: handle)) }
    return certificates
  }

  private static let oldCipher =
    "the file is encrypted with an old cipher (RC2-40), and OpenSSL's legacy provider is not installed; convert it to "
    + "PEM where it is: openssl pkcs12 -legacy -in FILE -nodes -out FILE.pem"

  private static func failure(_ file: String, _ password: String?) -> TransportError {
    let error = OpenSSLError.take()
    let cause: String
    if error.library == ERR_LIB_PKCS12 && error.reason == PKCS12_R_MAC_VERIFY_FAILURE {
      cause = password == nil ? "the file needs a password, and none was given" : "the password does not open the file"
    } else if error.text == "unsupported" {
      cause = oldCipher
    } else {
      cause = "PKCS#12: \(error.text)"
    }
    return TransportError(.credential, file, cause, code: error.code)
  }
}

/// OpenSSL's old ciphers, in a library context of their own: nothing but an old PKCS#12 file is ever read with them.
///
/// `@unchecked Sendable` holds because the context is not changed once it is made, and OpenSSL allows its use by several
/// threads.
@safe
final class LegacyCiphers: @unchecked Sendable {
  /// `nil` where the legacy provider is not installed. It is loaded when it is first wanted, and kept.
  static let shared = LegacyCiphers()

  let context: OpaquePointer

  private init?() {
    guard let context = unsafe OSSL_LIB_CTX_new() else { return nil }
    unsafe self.context = context
    guard unsafe OSSL_PROVIDER_load(context, "default") != nil, unsafe OSSL_PROVIDER_load(context, "legacy") != nil
    else {
      ERR_clear_error()
      return nil
    }
  }

  deinit { unsafe OSSL_LIB_CTX_free(context) }
}
