import COpenSSL
import Glibc
import Wire

/// Owns one X.509 certificate.
///
/// `@unchecked Sendable` holds because it is never changed once made, and OpenSSL counts references atomically.
@safe
final class Certificate: @unchecked Sendable {
  let handle: OpaquePointer

  @unsafe init(owning handle: OpaquePointer) { unsafe self.handle = handle }

  deinit { unsafe X509_free(handle) }

  var subject: String { unsafe X509Text.subject(handle) }
  /// The `UID` of the subject, where Apple puts the bundle id or the topic of an MDM certificate.
  var userID: String? { unsafe X509Text.entry(NID_userId, handle) }
  var validFrom: UnixTime { unsafe X509Text.time(X509_get0_notBefore(handle)) }
  var validUntil: UnixTime { unsafe X509Text.time(X509_get0_notAfter(handle)) }

  func wasIssued(by issuer: Certificate) -> Bool { unsafe X509_check_issued(issuer.handle, handle) == X509_V_OK }

  func matches(_ key: PrivateKey) -> Bool {
    defer { ERR_clear_error() }
    return unsafe X509_check_private_key(handle, key.handle) == 1
  }

  func pem() throws(TransportError) -> String {
    let bio = try MemoryBIO()
    guard unsafe PEM_write_bio_X509(bio.handle, handle) == 1 else {
      throw OpenSSLError.take(.system, "certificate", "write")
    }
    return String(decoding: bio.bytes, as: UTF8.self)
  }
}

/// Owns one key of any kind.
///
/// `@unchecked Sendable` holds because it is never changed once made, and OpenSSL allows one key to be used by several
/// threads.
@safe
final class PrivateKey: @unchecked Sendable {
  let handle: OpaquePointer

  @unsafe init(owning handle: OpaquePointer) { unsafe self.handle = handle }

  deinit { unsafe EVP_PKEY_free(handle) }

  static let p256 = "prime256v1"

  /// Makes a new key on P-256.
  static func generate() throws(TransportError) -> PrivateKey {
    guard let handle = unsafe martlet_EVP_EC_gen(p256) else {
      throw OpenSSLError.take(.system, "key", "generate")
    }
    return unsafe PrivateKey(owning: handle)
  }

  /// "EC", "RSA" and so on.
  var algorithm: String {
    guard let name = unsafe EVP_PKEY_get0_type_name(handle) else { return "unknown" }
    return unsafe String(cString: name)
  }

  /// OpenSSL's name of the curve; nil if the key is not on one.
  var curve: String? {
    var name = [CChar](repeating: 0, count: 64)
    var length = 0
    defer { ERR_clear_error() }
    guard unsafe EVP_PKEY_get_group_name(handle, &name, name.count, &length) == 1 else { return nil }
    return String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// PKCS#8, not encrypted.
  func pem() throws(TransportError) -> String {
    let bio = try MemoryBIO()
    guard unsafe PEM_write_bio_PrivateKey(bio.handle, handle, nil, nil, 0, nil, nil) == 1 else {
      throw OpenSSLError.take(.system, "key", "write")
    }
    return String(decoding: bio.bytes, as: UTF8.self)
  }

  func publicPEM() throws(TransportError) -> String {
    let bio = try MemoryBIO()
    guard unsafe PEM_write_bio_PUBKEY(bio.handle, handle) == 1 else {
      throw OpenSSLError.take(.system, "key", "write")
    }
    return String(decoding: bio.bytes, as: UTF8.self)
  }
}

/// Reads fields of certificates that OpenSSL owns.
enum X509Text {
  /// As RFC 2253 writes names: "CN=…,O=…".
  @unsafe static func subject(_ certificate: OpaquePointer) -> String {
    guard let bio = try? MemoryBIO() else { return "" }
    unsafe X509_NAME_print_ex(bio.handle, X509_get_subject_name(certificate), 0, martlet_name_flags())
    return String(decoding: bio.bytes, as: UTF8.self)
  }

  @unsafe static func entry(_ identifier: Int32, _ certificate: OpaquePointer) -> String? {
    var text = [CChar](repeating: 0, count: 256)
    let count = unsafe X509_NAME_get_text_by_NID(
      X509_get_subject_name(certificate), identifier, &text, Int32(text.count))
    guard count >= 0 else { return nil }
    return String(decoding: text.prefix(Int(count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  @unsafe static func time(_ time: UnsafePointer<ASN1_TIME>?) -> UnixTime {
    var fields = unsafe tm()
    guard let time = unsafe time, unsafe ASN1_TIME_to_tm(time, &fields) == 1 else { return UnixTime(seconds: 0) }
    return unsafe UnixTime(seconds: Int64(timegm(&fields)))
  }
}
