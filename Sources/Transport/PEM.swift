import COpenSSL

/// Takes keys and certificates out of PEM text as people keep it: with CRLF, blanks at line ends, a byte order mark, no
/// final newline, several blocks in any order, text between them.
enum PEM {
  /// All certificates, in the order of the text; or the one of a file that is no text but DER, as Apple's `aps.cer` is.
  ///
  /// - Throws: a `credential` error that names `file`, if there is none or one cannot be read.
  static func certificates(_ text: [UInt8], _ file: String) throws(TransportError) -> [Certificate] {
    if text.first == DERReader.sequence {
      let bio = try MemoryBIO(text)
      guard let handle = unsafe d2i_X509_bio(bio.handle, nil) else {
        throw OpenSSLError.take(.credential, file, "no certificate in DER form")
      }
      return [unsafe Certificate(owning: handle)]
    }
    let bio = try MemoryBIO(tidied(text))
    var certificates: [Certificate] = []
    while let handle = unsafe PEM_read_bio_X509(bio.handle, nil, { unsafe PEM.noPassword($0, $1, $2, $3) }, nil) {
      certificates.append(unsafe Certificate(owning: handle))
    }
    let end = OpenSSLError.take()
    guard end.reason == PEM_R_NO_START_LINE else {
      throw TransportError(.credential, file, "certificate: \(end.text)", code: end.code)
    }
    guard !certificates.isEmpty else {
      throw TransportError(.credential, file, "no certificate in PEM form; \(found(in: text))")
    }
    return certificates
  }

  /// The first private key: PKCS#8, encrypted PKCS#8, or one of the older forms of its kind (SEC1, PKCS#1).
  static func privateKey(_ text: [UInt8], _ file: String, password: String?) throws(TransportError) -> PrivateKey {
    let bio = try MemoryBIO(tidied(text))
    let box = PasswordBox(password)
    let handle = unsafe withExtendedLifetime(box) {
      unsafe PEM_read_bio_PrivateKey(
        bio.handle, nil, { unsafe PEM.givePassword($0, $1, $2, $3) }, Unmanaged.passUnretained(box).toOpaque())
    }
    if let handle = unsafe handle {
      ERR_clear_error()
      return unsafe PrivateKey(owning: handle)
    }
    let error = OpenSSLError.take()
    if box.wasAsked {
      let cause =
        password == nil ? "the key is encrypted, and no password was given" : "the password does not open the key"
      throw TransportError(.credential, file, cause, code: error.code)
    }
    guard labels(in: text).contains(where: { $0.hasSuffix("PRIVATE KEY") }) else {
      throw TransportError(.credential, file, "no private key in PEM form; \(found(in: text))", code: error.code)
    }
    throw TransportError(.credential, file, "private key: the content is damaged (\(error.text))", code: error.code)
  }

  /// The first public key (`PUBLIC KEY`).
  static func publicKey(_ text: [UInt8], _ file: String) throws(TransportError) -> PrivateKey {
    let bio = try MemoryBIO(tidied(text))
    let handle = unsafe PEM_read_bio_PUBKEY(bio.handle, nil, { unsafe PEM.noPassword($0, $1, $2, $3) }, nil)
    guard let handle = unsafe handle else { throw OpenSSLError.take(.credential, file, "public key") }
    return unsafe PrivateKey(owning: handle)
  }

  /// Each line without blanks at its ends (which takes the CR with it), and a newline after the last.
  private static func tidied(_ text: [UInt8]) -> [UInt8] {
    let mark: [UInt8] = [0xef, 0xbb, 0xbf]
    var tidy: [UInt8] = []
    tidy.reserveCapacity(text.count + 1)
    let body = text.starts(with: mark) ? text.dropFirst(mark.count) : text[...]
    for line in body.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      let blank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }
      if let first = line.firstIndex(where: { !blank($0) }), let last = line.lastIndex(where: { !blank($0) }) {
        tidy += line[first...last]
      }
      tidy.append(UInt8(ascii: "\n"))
    }
    return tidy
  }

  /// What stands between "BEGIN" and the dashes of each block; labels are no secret.
  private static func labels(in text: [UInt8]) -> [String] {
    let begin = "-----BEGIN "
    return String(decoding: tidied(text), as: UTF8.self).split(separator: "\n").compactMap { line in
      guard line.hasPrefix(begin), line.hasSuffix("-----"), line.utf8.count < 80 else { return nil }
      return String(line.dropFirst(begin.count).dropLast(5))
    }
  }

  private static func found(in text: [UInt8]) -> String {
    let labels = labels(in: text)
    return labels.isEmpty ? "it holds no PEM block" : "it holds: \(labels.joined(separator: ", "))"
  }

  /// Without a callback of ours OpenSSL would ask at the terminal.
  private static func noPassword(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32, _ writing: Int32, _ box: UnsafeMutableRawPointer?
  ) -> Int32 { -1 }

  /// Called within `privateKey`, which keeps the box.
  private static func givePassword(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32, _ writing: Int32, _ box: UnsafeMutableRawPointer?
  ) -> Int32 {
    guard let box = unsafe box, let buffer = unsafe buffer else { return -1 }
    let given = unsafe Unmanaged<PasswordBox>.fromOpaque(box).takeUnretainedValue()
    given.wasAsked = true
    guard let password = given.password, password.count <= Int(size) else { return -1 }
    for index in password.indices { unsafe buffer[index] = CChar(bitPattern: password[index]) }
    return Int32(password.count)
  }

  /// Carries a password through a C callback, within one call.
  private final class PasswordBox {
    let password: [UInt8]?
    var wasAsked = false

    init(_ password: String?) { self.password = password.map { Array($0.utf8) } }
  }
}
