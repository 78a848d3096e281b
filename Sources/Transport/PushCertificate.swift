import COpenSSL

/// What Apple's extensions of a push certificate say it is good for (Apple, "Establishing a certificate-based connection
/// to APNs"; the object identifiers stand under 1.2.840.113635.100.6.3).
package struct PushCertificateScope: Equatable, Sendable {
  /// The topics that the certificate may send to (extension .6); `nil`: it does not say.
  package var topics: [String]?
  /// Good for the development environment, Apple's sandbox (extension .1).
  package var allowsSandbox: Bool
  /// Good for the production environment (extension .2).
  package var allowsProduction: Bool

  package init(topics: [String]? = nil, allowsSandbox: Bool = false, allowsProduction: Bool = false) {
    self.topics = topics
    self.allowsSandbox = allowsSandbox
    self.allowsProduction = allowsProduction
  }

  /// Whether it names any environment; certificates of other authorities do not.
  package var namesEnvironment: Bool { allowsSandbox || allowsProduction }

  private static let base = "1.2.840.113635.100.6.3."

  init(of certificate: Certificate) {
    self.init(
      topics: certificate.extensionValue(Self.base + "6").flatMap(Self.topics),
      allowsSandbox: certificate.extensionValue(Self.base + "1") != nil,
      allowsProduction: certificate.extensionValue(Self.base + "2") != nil)
  }

  /// The extension is a sequence in which each topic, a UTF-8 text, is followed by the sequence of its tags ("app",
  /// "voip", "complication").
  ///
  /// - Returns: `nil` for anything else: what cannot be read forbids nothing.
  static func topics(_ value: [UInt8]) -> [String]? {
    var outer = DERReader(value[...])
    guard let sequence = outer.next(), sequence.tag == DERReader.sequence else { return nil }
    var inner = DERReader(sequence.content)
    var topics: [String] = []
    while !inner.isAtEnd {
      guard let element = inner.next() else { return nil }
      if element.tag == DERReader.utf8Text { topics.append(String(decoding: element.content, as: UTF8.self)) }
    }
    return topics.isEmpty ? nil : topics
  }
}

extension Identity {
  /// What Apple's extensions say the certificate is good for.
  package var pushScope: PushCertificateScope { PushCertificateScope(of: leaf) }
}

/// Walks over elements of DER (X.690): tag, length, content.
struct DERReader {
  static let sequence: UInt8 = 0x30
  static let utf8Text: UInt8 = 0x0c

  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  var isAtEnd: Bool { rest.isEmpty }

  /// - Returns: `nil` at the end, and where the bytes are no whole element with a tag of one byte.
  mutating func next() -> (tag: UInt8, content: ArraySlice<UInt8>)? {
    guard let tag = rest.popFirst(), tag & 0x1f != 0x1f, let first = rest.popFirst() else { return nil }
    var length = Int(first)
    if first >= 0x80 {
      // The long form: so many bytes of length. More than four name no certificate that anybody has.
      let count = Int(first & 0x7f)
      guard (1...4).contains(count), rest.count >= count else { return nil }
      length = 0
      for _ in 0..<count { length = length << 8 | Int(rest.removeFirst()) }
    }
    guard rest.count >= length else { return nil }
    let content = rest.prefix(length)
    rest = rest.dropFirst(length)
    return (tag, content)
  }
}

extension Certificate {
  /// The content of the extension with that object identifier; `nil` where there is none.
  func extensionValue(_ identifier: String) -> [UInt8]? {
    defer { ERR_clear_error() }
    guard let object = unsafe OBJ_txt2obj(identifier, 1) else { return nil }
    defer { unsafe ASN1_OBJECT_free(object) }
    let place = unsafe X509_get_ext_by_OBJ(handle, object, -1)
    // What is found stays the certificate's.
    guard place >= 0, let entry = unsafe X509_get_ext(handle, place), let data = unsafe X509_EXTENSION_get_data(entry)
    else { return nil }
    let count = unsafe Int(ASN1_STRING_length(data))
    guard count > 0, let start = unsafe ASN1_STRING_get0_data(data) else { return [] }
    return unsafe Array(UnsafeBufferPointer(start: start, count: count))
  }
}
