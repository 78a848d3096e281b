import COpenSSL
package import Wire

/// Makes certificates at run time: an authority of its own that vouches for servers and clients. For mocks and tests;
/// nothing is written to disk unless the caller does.
package final class CertificateAuthority: Sendable {
  /// From when until when a certificate holds.
  package struct Validity: Sendable {
    package var from: UnixTime
    package var until: UnixTime

    package init(from: UnixTime, until: UnixTime) {
      self.from = from
      self.until = until
    }

    /// From an hour ago (clocks differ) for 30 days.
    package static var current: Validity {
      let now = Clock.time.seconds
      return Validity(from: UnixTime(seconds: now - 3600), until: UnixTime(seconds: now + 30 * 86400))
    }
  }

  private let certificate: Certificate
  private let key: PrivateKey

  /// A new authority with a key on P-256.
  package init(name: String, validity: Validity = .current) throws(TransportError) {
    key = try PrivateKey.generate()
    var draft = try Draft(key: key, validity: validity)
    try draft.addName("CN", name)
    certificate = try draft.issued(
      by: nil, key,
      extensions: [
        (NID_basic_constraints, "critical,CA:TRUE"), (NID_key_usage, "critical,keyCertSign,cRLSign"),
        (NID_subject_key_identifier, "hash"),
      ])
  }

  /// The authority's certificate, for `Trust.pem` or a file.
  package func pem() throws(TransportError) -> String { try certificate.pem() }

  /// A server's certificate with a new key.
  ///
  /// - Parameters:
  ///   - names: host names and IP addresses that it is for; the first is also its common name.
  ///   - validity: from when until when it is good.
  package func issueServer(names: [String], validity: Validity = .current) throws(TransportError) -> Identity {
    let alternatives = try names.map { name throws(TransportError) in try Self.alternative(name) }
    return try issue(
      "server \(names.first ?? "")", subject: [("CN", names.first ?? "")], validity: validity,
      extensions: [
        (NID_subject_alt_name, alternatives.joined(separator: ",")), (NID_ext_key_usage, "serverAuth"),
      ])
  }

  /// A client's certificate with a new key.
  ///
  /// - Parameters:
  ///   - name: the common name.
  ///   - userID: the `UID` of the subject, where Apple's certificates carry the bundle id.
  ///   - validity: from when until when it is good.
  package func issueClient(
    name: String, userID: String? = nil, validity: Validity = .current
  ) throws(TransportError) -> Identity {
    var subject = [("CN", name)]
    if let userID { subject.insert(("UID", userID), at: 0) }
    return try issue(
      "client \(name)", subject: subject, validity: validity, extensions: [(NID_ext_key_usage, "clientAuth")])
  }

  private func issue(
    _ name: String, subject: [(String, String)], validity: Validity, extensions: [(Int32, String)]
  ) throws(TransportError) -> Identity {
    let leafKey = try PrivateKey.generate()
    var draft = try Draft(key: leafKey, validity: validity)
    for (field, value) in subject { try draft.addName(field, value) }
    let common = [(NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature")]
    let leaf = try draft.issued(by: certificate, key, extensions: common + extensions)
    return Identity(name: name, leaf: leaf, others: [], key: leafKey)
  }

  /// A name as OpenSSL's extension syntax has it. A comma would begin another entry, so odd names are refused.
  private static func alternative(_ name: String) throws(TransportError) -> String {
    let plain = name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: ":"),
        UInt8(ascii: "*"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
    guard plain, !name.isEmpty else { throw TransportError(.credential, name, "not a host name or an IP address") }
    let isAddress = name.contains(":") || name.utf8.allSatisfy { $0 == UInt8(ascii: ".") || ($0 >= 48 && $0 <= 57) }
    return (isAddress ? "IP:" : "DNS:") + name
  }
}

/// A certificate in the making.
@safe
private struct Draft {
  private let certificate: Certificate

  init(key: PrivateKey, validity: CertificateAuthority.Validity) throws(TransportError) {
    guard let handle = unsafe X509_new() else { throw OpenSSLError.take(.system, "certificate", "X509_new") }
    certificate = unsafe Certificate(owning: handle)
    // 63 random bits: positive, and unique for all purposes here.
    let serial = Randomness.seed() >> 1
    let complete =
      unsafe X509_set_version(handle, Int(X509_VERSION_3)) == 1
      && ASN1_INTEGER_set_uint64(X509_get_serialNumber(handle), serial) == 1
      && ASN1_TIME_set(X509_getm_notBefore(handle), Int(validity.from.seconds)) != nil
      && ASN1_TIME_set(X509_getm_notAfter(handle), Int(validity.until.seconds)) != nil
      && X509_set_pubkey(handle, key.handle) == 1
    guard complete else { throw OpenSSLError.take(.system, "certificate", "fields") }
  }

  mutating func addName(_ field: String, _ value: String) throws(TransportError) {
    let bytes = Array(value.utf8)
    let status = unsafe X509_NAME_add_entry_by_txt(
      X509_get_subject_name(certificate.handle), field, MBSTRING_UTF8, bytes, Int32(bytes.count), -1, 0)
    guard status == 1 else { throw OpenSSLError.take(.credential, value, "name") }
  }

  /// Signs it; with no issuer, as its own.
  consuming func issued(
    by issuer: Certificate?, _ key: PrivateKey, extensions: [(Int32, String)]
  ) throws(TransportError) -> Certificate {
    let issuerHandle = unsafe issuer?.handle ?? certificate.handle
    guard unsafe X509_set_issuer_name(certificate.handle, X509_get_subject_name(issuerHandle)) == 1 else {
      throw OpenSSLError.take(.system, "certificate", "issuer")
    }
    var context = unsafe X509V3_CTX()
    unsafe martlet_X509V3_set_ctx(&context, issuerHandle, certificate.handle)
    for (identifier, value) in extensions {
      guard let entry = unsafe X509V3_EXT_conf_nid(nil, &context, identifier, value) else {
        throw OpenSSLError.take(.credential, value, "extension")
      }
      defer { unsafe X509_EXTENSION_free(entry) }
      guard unsafe X509_add_ext(certificate.handle, entry, -1) == 1 else {
        throw OpenSSLError.take(.system, value, "extension")
      }
    }
    guard unsafe X509_sign(certificate.handle, key.handle, EVP_sha256()) > 0 else {
      throw OpenSSLError.take(.system, "certificate", "sign")
    }
    return certificate
  }
}
