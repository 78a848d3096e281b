import TestSupport
import Testing

@testable import Transport

@Suite struct PushCertificateTests {
  private let directory: TemporaryFiles

  init() throws { directory = try TemporaryFiles() }

  /// A certificate as Apple issues them: the object identifiers and values are those of real ones.
  private func identity(_ extensions: [String], sections: String = "") throws -> Identity {
    let configuration = """
      [req]
      distinguished_name = name
      x509_extensions = extensions
      prompt = no
      [name]
      UID = com.example.shop
      CN = Apple Push Services: com.example.shop
      [extensions]
      basicConstraints = CA:FALSE
      \(extensions.joined(separator: "\n"))
      \(sections)
      """
    try directory.write("request.cnf", configuration)
    let (status, output) = shell(
      "cd \(directory.path) && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 "
        + "-config request.cnf -keyout key.pem -out certificate.pem")
    try #require(status == 0, "\(output)")
    return try Identity.load(
      certificateFile: directory.path(of: "certificate.pem"), keyFile: directory.path(of: "key.pem"))
  }

  private static let topics = """
    [topics]
    a = UTF8:com.example.shop
    b = SEQUENCE:app
    c = UTF8:com.example.shop.voip
    d = SEQUENCE:voip
    [app]
    a = UTF8:app
    [voip]
    a = UTF8:voip
    """

  @Test func aCertificateForBothEnvironmentsNamesItsTopics() throws {
    let identity = try identity(
      [
        "1.2.840.113635.100.6.3.1 = ASN1:NULL", "1.2.840.113635.100.6.3.2 = ASN1:NULL",
        "1.2.840.113635.100.6.3.6 = ASN1:SEQUENCE:topics",
      ], sections: Self.topics)
    #expect(
      identity.pushScope
        == PushCertificateScope(
          topics: ["com.example.shop", "com.example.shop.voip"], allowsSandbox: true, allowsProduction: true))
    #expect(identity.userID == "com.example.shop")
  }

  @Test func anOldCertificateNamesOneEnvironmentAndNoTopics() throws {
    let identity = try identity(["1.2.840.113635.100.6.3.1 = ASN1:NULL"])
    #expect(identity.pushScope == PushCertificateScope(allowsSandbox: true))
  }

  @Test func aCertificateOfAnotherAuthoritySaysNothing() throws {
    let identity = try CertificateAuthority(name: "Root").issueClient(name: "client")
    #expect(identity.pushScope == PushCertificateScope())
    #expect(!identity.pushScope.namesEnvironment)
  }

  @Test(
    arguments: [
      [], [0x30], [0x30, 0x05, 0x0c, 0x01], [0x30, 0x82, 0xff, 0xff], [0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
      [0x30, 0x80],
      [0x30, 0x03, 0x0c, 0x05, 0x61], [0x05, 0x00], [0x30, 0x00], [0x3f, 0x01, 0x00],
    ] as [[UInt8]])
  func anExtensionThatCannotBeReadForbidsNothing(value: [UInt8]) {
    #expect(PushCertificateScope.topics(value) == nil)
  }

  @Test func lengthsOfTheLongFormAreRead() {
    let topic = [UInt8](repeating: 0x61, count: 200)
    let value: [UInt8] = [0x30, 0x81, 203, 0x0c, 0x81, 200] + topic
    #expect(PushCertificateScope.topics(value) == [String(decoding: topic, as: UTF8.self)])
  }

  @Test func contentsAreToldApart() {
    #expect(ContentDigest(of: []) == ContentDigest(of: []))
    #expect(ContentDigest(of: [1]) == ContentDigest(of: [1]))
    #expect(ContentDigest(of: [1]) != ContentDigest(of: [2]))
  }
}
