import TestSupport
import Testing
import Wire

@testable import Transport

@Suite struct KeysTests {
  private let directory: TemporaryFiles

  init() throws { directory = try TemporaryFiles() }

  private func openssl(_ arguments: String) throws {
    let (status, output) = shell("cd \(directory.path) && openssl \(arguments)")
    try #require(status == 0, "\(output)")
  }

  private func signature(of message: [UInt8], by key: SigningKey) throws -> [UInt8] { try key.sign(message.span) }

  private func verifies(_ key: SigningKey, _ signature: [UInt8], _ message: [UInt8]) -> Bool {
    key.verify(signature.span, of: message.span)
  }

  private func makeP8(_ name: String = "key.p8") throws -> String {
    try openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out \(name)")
    return directory.path(of: name)
  }

  @Test func aSignatureOfES256IsVerifiedAndAnyChangeRefused() throws {
    let key = try SigningKey.load(file: try makeP8())
    let message = Array("header.claims".utf8)
    let signature = try self.signature(of: message, by: key)
    #expect(signature.count == SigningKey.signatureSize)
    #expect(verifies(key, signature, message))
    let publicOnly = try SigningKey(publicPEM: Array(try key.publicPEM().utf8), named: "public")
    #expect(verifies(publicOnly, signature, message))
    for index in [0, 31, 32, 63] {
      var wrong = signature
      wrong[index] ^= 1
      #expect(!verifies(key, wrong, message))
    }
    #expect(!verifies(key, signature, Array("header.claimz".utf8)))
    #expect(!verifies(key, Array(signature.dropLast()), message))
    #expect(!verifies(try SigningKey.generate(), signature, message))
    #expect(throws: TransportError.self) { try self.signature(of: message, by: publicOnly) }
  }

  @Test func theOpensslCommandAcceptsOurSignature() throws {
    let key = try SigningKey.load(file: try makeP8())
    // The raw form, r and s as DER integers in a sequence, built here by hand.
    let raw = try signature(of: Array("hello".utf8), by: key)
    func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
      var body = Array(bytes.drop { $0 == 0 })
      if let first = body.first, first >= 0x80 { body.insert(0, at: 0) }
      return [2, UInt8(body.count)] + body
    }
    let body = integer(raw[..<32]) + integer(raw[32...])
    let der = [0x30, UInt8(body.count)] + body
    let octal = der.map { byte in
      let digits = String(byte, radix: 8)
      return "\\" + String(repeating: "0", count: 3 - digits.count) + digits
    }.joined()
    let command = "cd \(directory.path) && printf '\(octal)' > s && printf hello > m && openssl pkey -in key.p8 -pubout"
    let (status, output) = shell("\(command) -out p && openssl dgst -sha256 -verify p -signature s m")
    #expect(status == 0, "\(output)")
  }

  @Test(arguments: ["crlf", "no final newline", "trailing blanks", "byte order mark", "text before", "SEC1"])
  func keysInManyShapesAreRead(_ shape: String) throws {
    let file = try makeP8()
    let text = String(decoding: try CredentialFile.read(file), as: UTF8.self)
    let lines = text.split(separator: "\n")
    let shaped: String
    switch shape {
    case "crlf": shaped = lines.joined(separator: "\r\n") + "\r\n"
    case "no final newline": shaped = lines.joined(separator: "\n")
    case "trailing blanks": shaped = lines.joined(separator: " \t\n") + "  \n\n\n"
    case "byte order mark": shaped = "\u{feff}" + text
    case "text before": shaped = "my key\n\n" + text
    default:
      try openssl("ecparam -name prime256v1 -genkey -out sec1.pem")
      shaped = String(decoding: try CredentialFile.read(directory.path(of: "sec1.pem")), as: UTF8.self)
      #expect(shaped.contains("EC PARAMETERS") && shaped.contains("EC PRIVATE KEY"))
    }
    let key = try SigningKey(pem: Array(shaped.utf8), named: "key")
    let signature = try self.signature(of: [1, 2, 3], by: key)
    #expect(verifies(key, signature, [1, 2, 3]))
  }

  @Test func keysOfAnotherKindAreRefusedByName() throws {
    try openssl("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.pem")
    try openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -out p384.pem")
    try openssl("pkey -in \(try makeP8()) -pubout -out public.pem")
    try directory.write("empty.pem", "nothing here\n")
    try directory.write("damaged.pem", "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMG\n-----END PRIVATE KEY-----\n")
    for (file, word) in [
      ("rsa.pem", "RSA"), ("p384.pem", "secp384r1"), ("public.pem", "PUBLIC KEY"), ("empty.pem", "no PEM block"),
      ("damaged.pem", "damaged"), ("absent.pem", "No such file"),
    ] {
      let error = try #require(throws: TransportError.self) { try SigningKey.load(file: directory.path(of: file)) }
      #expect(error.description.contains(word), "\(error)")
      #expect(error.subject == directory.path(of: file))
      #expect(error.kind == (file == "absent.pem" ? .file : .credential))
      #expect(error.grade == .configuration)
    }
  }

  @Test func anEncryptedKeyNeedsItsPasswordAndTheErrorDoesNotShowIt() throws {
    try openssl("pkcs8 -topk8 -v2 aes256 -passout pass:\(Planted.password) -in \(try makeP8()) -out locked.pem")
    let file = directory.path(of: "locked.pem")
    _ = try SigningKey.load(file: file, password: Planted.password)
    let missing = try #require(throws: TransportError.self) { try SigningKey.load(file: file) }
    #expect(missing.cause.contains("encrypted"))
    let wrong = try #require(throws: TransportError.self) {
      try SigningKey.load(file: file, password: Planted.password + "+")
    }
    #expect(wrong.cause.contains("password") && !wrong.description.contains(Planted.password))
  }

  @Test func certificateAndKeyAreReadFromOneFileOrTwoInAnyOrder() throws {
    let authority = try CertificateAuthority(name: "Root")
    let identity = try authority.issueClient(name: "Apple Push Services: com.example", userID: "com.example")
    let certificate = try identity.certificatePEM()
    let key = try identity.privateKeyPEM()
    let chain = try authority.pem()
    for (name, text) in [("a", certificate + chain + key), ("b", key + chain + certificate)] {
      let loaded = try Identity.load(certificateFile: directory.write(name, text))
      #expect(loaded.subject.contains("CN=Apple Push Services: com.example"))
      #expect(loaded.userID == "com.example")
      #expect(loaded.chain.count == 1)
      #expect(loaded.validUntil == identity.validUntil)
    }
    let two = try Identity.load(
      certificateFile: directory.write("c", certificate), keyFile: directory.write("k", key))
    #expect(two.userID == "com.example")
    #expect(two.chain.isEmpty)
  }

  @Test func aKeyThatDoesNotBelongToTheCertificateIsRefused() throws {
    let authority = try CertificateAuthority(name: "Root")
    let certificate = try authority.issueClient(name: "one").certificatePEM()
    let other = try authority.issueClient(name: "two").privateKeyPEM()
    let file = try directory.write("mixed.pem", certificate + other)
    let error = try #require(throws: TransportError.self) { try Identity.load(certificateFile: file) }
    #expect(error.kind == .credential)
    #expect(error.cause.contains("belongs"))
    let noKey = try directory.write("only.pem", certificate)
    let missing = try #require(throws: TransportError.self) { try Identity.load(certificateFile: noKey) }
    #expect(missing.cause.contains("no private key") && missing.cause.contains("CERTIFICATE"))
  }

  @Test func aPKCS12FileIsReadWithItsPassword() throws {
    try openssl("req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 1 -subj '/UID=com.example/CN=push'")
    try openssl("pkcs12 -export -inkey k.pem -in c.pem -passout pass:\(Planted.password) -out new.p12")
    try openssl("pkcs12 -export -legacy -inkey k.pem -in c.pem -passout pass:\(Planted.password) -out old.p12")
    let file = directory.path(of: "new.p12")
    let identity = try Identity.load(certificateFile: file, password: Planted.password)
    #expect(identity.userID == "com.example")
    _ = try TLSContext.client(identity: identity)
    let old = try Identity.load(certificateFile: directory.path(of: "old.p12"), password: Planted.password)
    #expect(old.userID == "com.example")
    for (name, password, word) in [
      ("new.p12", nil, "none was given"), ("new.p12", Planted.password + "+", "does not open"),
      ("old.p12", nil, "none was given"), ("old.p12", Planted.password + "+", "does not open"),
    ] {
      let error = try #require(throws: TransportError.self) {
        try Identity.load(certificateFile: directory.path(of: name), password: password)
      }
      #expect(error.kind == .credential && error.subject == directory.path(of: name))
      #expect(error.cause.contains(word) && !error.cause.contains(Planted.password), "\(error)")
    }
    try directory.write("odd", "0 nothing")
    #expect(throws: TransportError.self) { try Identity.load(certificateFile: directory.path(of: "odd")) }
  }

  @Test func theExpiryOfACertificateIsKnownToTheSecond() throws {
    let until = UnixTime(seconds: 1_900_000_000)
    let authority = try CertificateAuthority(name: "Root")
    let identity = try authority.issueServer(
      names: ["localhost"], validity: .init(from: UnixTime(seconds: 1_600_000_000), until: until))
    #expect(identity.validUntil == until)
    #expect(identity.validFrom == UnixTime(seconds: 1_600_000_000))
  }

  @Test func randomBytesDiffer() throws {
    #expect(try Randomness.bytes(32) != Randomness.bytes(32))
    #expect(try Randomness.bytes(5).count == 5)
  }
}
