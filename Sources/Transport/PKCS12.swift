import COpenSSL

/// Takes a certificate and its key out of a PKCS#12 file (`.p12`), as Keychain Access and `openssl pkcs12` write it.
enum PKCS12 {
  /// PKCS#12 is DER: a sequence. PEM text never begins so.
  static func isLikely(_ bytes: [UInt8]) -> Bool { bytes.first == 0x30 }

  /// - Throws: a `credential` error that names `file` and, for the old ciphers that OpenSSL 3 leaves out, the remedy.
  static func identity(_ bytes: [UInt8], _ file: String, password: String?) throws(TransportError) -> Identity {
    let bio = try MemoryBIO(bytes)
    guard let archive = unsafe d2i_PKCS12_bio(bio.handle, nil) else {
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

  private static func taken(_ stack: OpaquePointer?) -> [Certificate] {
    guard let stack = unsafe stack else { return [] }
    defer { unsafe martlet_sk_X509_free(stack) }
    var certificates: [Certificate] = []
    while let handle = unsafe martlet_sk_X509_shift(stack) { certificates.append(unsafe Certificate(owning: handle)) }
    return certificates
  }

  private static func failure(_ file: String, _ password: String?) -> TransportError {
    let error = OpenSSLError.take()
    let cause: String
    if error.library == ERR_LIB_PKCS12 && error.reason == PKCS12_R_MAC_VERIFY_FAILURE {
      cause = password == nil ? "the file needs a password, and none was given" : "the password does not open the file"
    } else if error.text == "unsupported" {
      cause =
        "the file is encrypted with an old cipher (RC2-40) that OpenSSL 3 does not load; convert it to PEM: "
        + "openssl pkcs12 -legacy -in FILE -nodes -out FILE.pem"
    } else {
      cause = "PKCS#12: \(error.text)"
    }
    return TransportError(.credential, file, cause, code: error.code)
  }
}
