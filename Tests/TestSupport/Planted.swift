import Glibc

/// Secrets that tests plant, and the logs of the services that they run. `scripts/test` searches these, and all that the
/// tests print, for those: none may be there.
package enum Planted {
  /// For every password that a test invents.
  package static let password = "planted-password-93af"
  /// For payloads.
  package static let payload = #"{"aps":{"alert":"x"},"planted":"planted-payload-5b1d0c7e"}"#
  /// For device tokens whose length does not matter.
  package static let token = "00aa11bb" + String(repeating: "c2", count: 28)

  /// Where `scripts/test` wants to find it all; `nil`: nobody asks.
  private static let directory: String? = unsafe getenv("MARTLET_TEST_KEEP").map { unsafe String(cString: $0) }
  private static let log = file("services.log")
  private static let secrets = file("secrets")

  /// Keeps lines of a service's log.
  @Sendable
  package static func keep(log lines: [UInt8]) { write(lines, to: log) }

  /// Notes the secret lines of a PEM text: a log that has one of them has told the key.
  package static func note(pem: String) {
    let lines = pem.split(separator: "\n").filter { !$0.hasPrefix("-----") }
    write(Array(lines.map { $0 + "\n" }.joined().utf8), to: secrets)
  }

  /// A file that grows at its end, whichever thread writes; -1 where nobody asks.
  private static func file(_ name: String) -> Int32 {
    guard let directory else { return -1 }
    return unsafe open("\(directory)/\(name)", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
  }

  private static func write(_ bytes: [UInt8], to file: Int32) {
    guard file >= 0, !bytes.isEmpty else { return }
    let written = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(file, $0.baseAddress, $0.count) }
    precondition(written == bytes.count, "what is to be searched was not kept")
  }
}
