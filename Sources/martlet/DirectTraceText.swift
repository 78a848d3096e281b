import Service

/// What `-v` writes to standard error: `*` what happens to the connection, `>` what is sent, `<` what is received, each
/// with the number of its request.
enum DirectTraceText {
  /// Writes where `-v` was given, and is silent otherwise.
  static func trace(_ arguments: Arguments) -> DirectTrace {
    guard arguments.has("verbose") else { return { _ in } }
    return { event in Console.error(text(event)) }
  }

  static func text(_ event: DirectEvent) -> String {
    switch event {
    case .connecting(let server): return "* connecting to \(server)"
    case .connected(let peer): return "* connected to \(peer): TLS and HTTP/2"
    case .disconnected(let cause): return "* \(cause ?? "disconnected")"
    case .sent(let number, let fields, let size):
      let lines = fields.map { "> \(number) \($0.name): \($0.value)" }
      return (lines + ["> \(number) (\(size) bytes of body)"]).joined(separator: "\n")
    case .received(let number, let status, let fields, let body):
      let lines = ["< \(number) :status: \(status)"] + fields.map { "< \(number) \($0.name): \($0.value)" }
      return (lines + (body.isEmpty ? [] : ["< \(number) \(body)"])).joined(separator: "\n")
    case .unanswered(let number, let cause): return "< \(number) no answer: \(cause)"
    case .again(let delay, let cause):
      return
        "* \(cause); again in \(delay.components.seconds).\(delay.components.attoseconds / 100_000_000_000_000_000) s"
    }
  }
}
