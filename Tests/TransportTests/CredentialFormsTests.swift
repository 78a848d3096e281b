import TestSupport
import Testing
import Wire

@testable import Transport

/// Certificates and their keys in every form that people keep them in, made with the `openssl` command.
@Suite struct CredentialFormsTests {
  struct Form: CustomTestStringConvertible, Sendable {
    var testDescription: String
    /// Makes `file` (and `key`, if that is apart) of `leaf.pem`, `chain.pem` and `key.pem`.
    var command: String
    var password: String?

    init(_ name: String, _ command: String, password: String? = nil) {
      testDescription = name
      self.command = command
      self.password = password
    }
  }

  private static let secret = Planted.password + " and a blank"
  private static let export = "openssl pkcs12 -export -inkey key.pem -in leaf.pem -certfile chain.pem"

  static let forms: [Form] = [
    Form("two files", "cat leaf.pem chain.pem > file; cp key.pem key"),
    Form("one file", "cat leaf.pem chain.pem key.pem > file"),
    Form("the key first", "cat key.pem leaf.pem chain.pem > file"),
    Form("the chain first", "cat chain.pem key.pem leaf.pem > file"),
    Form("CRLF", "cat leaf.pem chain.pem key.pem | sed 's/$/\\r/' > file"),
    Form("blank lines", "(cat leaf.pem; echo; cat chain.pem; printf '\\n \\n'; cat key.pem; printf '\\n\\n') > file"),
    Form("no final newline", "printf %s \"$(cat leaf.pem chain.pem key.pem)\" > file"),
    Form("an older key", "openssl pkey -in key.pem -traditional -out old.pem; cat leaf.pem chain.pem old.pem > file"),
    Form("DER as Apple gives it", "openssl x509 -in leaf.pem -outform DER -out file; cp key.pem key"),
    Form(
      "an encrypted key",
      "openssl pkcs8 -topk8 -v2 aes256 -passout pass:'\(secret)' -in key.pem -out key; cat leaf.pem chain.pem > file",
      password: secret),
    Form(
      "an encrypted key in one file",
      "openssl pkcs8 -topk8 -v2 aes256 -passout pass:'\(secret)' -in key.pem -out k; cat k leaf.pem chain.pem > file",
      password: secret),
    Form(
      "an encrypted older key",
      "openssl pkey -in key.pem -traditional -aes256 -passout pass:'\(secret)' -out key; cat leaf.pem chain.pem > file",
      password: secret),
    Form("PKCS#12", "\(export) -passout pass:'\(secret)' -out file", password: secret),
    Form("PKCS#12 with a name", "\(export) -name 'Apple Push' -passout pass:'\(secret)' -out file", password: secret),
    Form("PKCS#12 without a password", "\(export) -passout pass: -out file"),
    Form(
      "PKCS#12, not encrypted", "\(export) -keypbe NONE -certpbe NONE -passout pass:'\(secret)' -out file",
      password: secret),
    Form(
      "PKCS#12 of Keychain Access (RC2, 3DES)", "\(export) -legacy -passout pass:'\(secret)' -out file",
      password: secret),
    Form("the same without a password", "\(export) -legacy -passout pass: -out file"),
    Form(
      "PKCS#12 with 3DES alone",
      "\(export) -keypbe PBE-SHA1-3DES -certpbe PBE-SHA1-3DES -macalg sha1 -passout pass:'\(secret)' -out file",
      password: secret),
    Form(
      "PKCS#12 made into PEM",
      "\(export) -passout pass:x -out a.p12; openssl pkcs12 -in a.p12 -passin pass:x -nodes -out file"),
  ]

  private let directory: TemporaryFiles

  init() throws { directory = try TemporaryFiles() }

  /// A root, an authority below it, and a certificate that it has issued.
  private func issue(_ algorithm: String) throws {
    let kind = algorithm == "RSA" ? "-newkey rsa:2048" : "-newkey ec -pkeyopt ec_paramgen_curve:P-256"
    let command = """
      set -e; cd \(directory.path)
      printf 'basicConstraints=critical,CA:TRUE\\n' > ca.cnf
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 -subj /CN=Root -keyout r.key -out root.pem
      openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=Middle -keyout m.key -out m.csr
      openssl x509 -req -in m.csr -CA root.pem -CAkey r.key -CAcreateserial -days 9 -extfile ca.cnf -out chain.pem
      openssl req \(kind) -nodes -keyout key.pem -out l.csr -subj '/UID=com.example.app/CN=Apple Push Services'
      openssl x509 -req -in l.csr -CA chain.pem -CAkey m.key -CAcreateserial -days 9 -out leaf.pem
      """
    let (status, output) = shell("(\(command))")
    try #require(status == 0, "\(output)")
  }

  /// The identity is loaded, and the server that trusts the root alone knows whose it is.
  @Test(arguments: ["RSA", "EC"])
  func everyFormOfACertificateIsLoadedAndServes(algorithm: String) throws {
    try issue(algorithm)
    let authority = try CertificateAuthority(name: "Servers")
    let server = try TLSContext.server(
      identity: try authority.issueServer(names: ["localhost"]), applicationProtocols: [],
      clientAuthentication: .required(.file(directory.path(of: "root.pem"))))
    for form in Self.forms {
      let (status, output) = shell("cd \(directory.path) && rm -f file key && (set -e; \(form.command))")
      try #require(status == 0, "\(form.testDescription): \(output)")
      let hasKey = shell("test -e \(directory.path(of: "key"))").status == 0
      let identity = try Identity.load(
        certificateFile: directory.path(of: "file"), keyFile: hasKey ? directory.path(of: "key") : nil,
        password: form.password)
      #expect(identity.userID == "com.example.app", "\(form.testDescription)")
      // Apple's certificate comes alone; its authority is known to its servers.
      guard form.testDescription != "DER as Apple gives it" else { continue }
      #expect(identity.chain.count == 1, "\(form.testDescription)")
      let client = try TLSContext.client(
        trust: .pem(try authority.pem()), identity: identity, applicationProtocols: [])
      #expect(try subject(shownBy: client, to: server) == "CN=Apple Push Services,UID=com.example.app")
      guard form.password != nil else { continue }
      #expect(throws: TransportError.self, "\(form.testDescription)") {
        try Identity.load(
          certificateFile: directory.path(of: "file"), keyFile: hasKey ? directory.path(of: "key") : nil,
          password: "wrong")
      }
    }
  }

  private func subject(shownBy client: TLSContext, to server: TLSContext) throws -> String? {
    let fixture = try LoopFixture()
    let far = Recorder(received: { stream, bytes in stream.write(bytes) })
    let listener = try fixture.listen(tls: server) { far }
    let near = Recorder(opened: { stream in write("hi", to: stream) }, received: { stream, _ in stream.close() })
    fixture.connect(to: listener.endpoint, tls: client, serverName: "localhost", near)
    _ = near.waitForEnd()
    return far.waitForEnd()?.peerSubject
  }

  @Test func aCertificateAloneNeedsItsKeyInAFileOfItsOwn() throws {
    try issue("EC")
    shell("cd \(directory.path) && openssl x509 -in leaf.pem -outform DER -out aps.cer")
    for (name, words) in [("aps.cer", "keyFile"), ("leaf.pem", "no private key in PEM form")] {
      let error = try #require(throws: TransportError.self) {
        try Identity.load(certificateFile: directory.path(of: name))
      }
      #expect(error.kind == .credential && error.cause.contains(words), "\(error)")
    }
  }

  @Test func withoutTheLegacyProviderTheRemedyIsNamed() throws {
    try issue("EC")
    let (status, output) = shell("cd \(directory.path) && \(Self.export) -legacy -passout pass:x -out old.p12")
    try #require(status == 0, "\(output)")
    let file = directory.path(of: "old.p12")
    let bytes = try CredentialFile.read(file)
    let error = try #require(throws: TransportError.self) {
      try PKCS12.identity(bytes, file, password: "x", legacy: nil)
    }
    #expect(error.cause.contains("openssl pkcs12 -legacy -in FILE -nodes -out FILE.pem"))
    #expect(try PKCS12.identity(bytes, file, password: "x").userID == "com.example.app")
  }
}
