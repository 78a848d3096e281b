import COpenSSL

/// What tells one content of a file from another without keeping it: SHA-256. Good to compare, and shown to nobody.
package struct ContentDigest: Hashable, Sendable {
  /// The 32 bytes of the digest.
  package let bytes: [UInt8]

  package init(of content: [UInt8]) {
    var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
    // One pass over memory at hand, with a digest that every OpenSSL has: it cannot fail.
    let status = unsafe EVP_Digest(content, content.count, &digest, nil, EVP_sha256(), nil)
    precondition(status == 1, "SHA-256 is part of OpenSSL's default provider")
    bytes = digest
  }
}
