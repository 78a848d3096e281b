/// What went wrong with a connection, a key or a certificate: the kind for code, the text for people.
///
/// No secret ever goes into one: not a key, not a password, not a byte that was sent.
package struct TransportError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kinds a caller may want to tell apart; also good as a metric label.
  package enum Kind: String, Sendable, CaseIterable {
    /// The host's name could not be looked up.
    case resolve
    /// No connection could be made (refused, unreachable).
    case connect
    /// A deadline passed first.
    case timedOut = "timed_out"
    /// The peer reset the connection, or it broke.
    case reset
    /// The peer ended the connection in the middle of something.
    case endedEarly = "ended_early"
    /// The TLS handshake failed for a reason that has no kind of its own.
    case handshake
    /// The peer's certificate was not accepted.
    case certificateRefused = "certificate_refused"
    /// The peer sent a TLS alert about our certificate, or about there being none.
    case alert
    /// No common application protocol (ALPN).
    case applicationProtocol = "application_protocol"
    /// The peer broke the rules of a protocol above TLS.
    case protocolViolation = "protocol_violation"
    /// An HTTP proxy answered a request for a tunnel, but not with success; `code` is the status.
    case proxyRefused = "proxy_refused"
    /// A listener could not be bound.
    case bind
    /// A file could not be read.
    case file
    /// A key or certificate file was read, but its content is of no use.
    case credential
    /// The operating system or a library refused something that should always work.
    case system
    /// Given up on our side: aborted, or the loop was stopped.
    case cancelled
  }

  /// How far a failure reaches, and so what may help.
  package enum Grade: Sendable {
    /// Another attempt, on a new connection, may work.
    case transient
    /// Only a change of configuration, key or certificate helps (on either side).
    case configuration
  }

  package var kind: Kind
  /// The host, address or file that the failure is about.
  package var subject: String
  /// The cause in words.
  package var cause: String
  /// The `errno`, OpenSSL's packed error code, or a proxy's status; 0 where there is none.
  package var code: UInt

  package init(_ kind: Kind, _ subject: String, _ cause: String, code: UInt = 0) {
    self.kind = kind
    self.subject = subject
    self.cause = cause
    self.code = code
  }

  /// A failed system call: `doing` says what was tried ("connect", "bind").
  package init(_ kind: Kind, _ subject: String, _ doing: String, errno number: Int32) {
    self.init(kind, subject, "\(doing): \(Syscalls.describe(number))", code: UInt(number.magnitude))
  }

  package var grade: Grade {
    switch kind {
    case .certificateRefused, .alert, .applicationProtocol, .bind, .file, .credential: .configuration
    // 407: the proxy does not know us. Anything else may pass.
    case .proxyRefused: code == 407 ? .configuration : .transient
    case .resolve, .connect, .timedOut, .reset, .endedEarly, .handshake, .protocolViolation, .system, .cancelled:
      .transient
    }
  }

  package var description: String { subject.isEmpty ? cause : "\(subject): \(cause)" }
}
