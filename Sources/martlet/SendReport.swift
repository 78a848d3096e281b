import Service
import Wire

/// What `martlet send` says of its pushes.
struct SendReport {
  private let app: AppSettings
  private let isJSON: Bool
  private var results = 0
  private var delivered = 0
  /// The gravest of all ends.
  private(set) var exitCode = ExitCode.ok

  init(app: AppSettings, isJSON: Bool) {
    self.app = app
    self.isJSON = isJSON
  }

  /// Counts a result, and gives the line that tells it.
  mutating func line(adding result: DirectResult) -> String {
    results += 1
    if result.status == .delivered { delivered += 1 }
    exitCode = Self.graver(exitCode, Self.exitCode(of: result))
    return isJSON ? json(result) : text(result)
  }

  /// Only for people, and only where there is something to add up.
  var summary: String? { isJSON || results < 2 ? nil : "\(delivered) of \(results) delivered" }

  private static func exitCode(of result: DirectResult) -> ExitCode {
    if result.isCredentialFault { return .configuration }
    switch result.status {
    case .delivered: return .ok
    case .rejected: return .badData
    case .expired, .failed: return .unavailable
    }
  }

  /// Wrong credentials spoil everything, trouble on the way may pass, and a refused push is that one's own fault.
  private static func graver(_ left: ExitCode, _ right: ExitCode) -> ExitCode {
    let order: [ExitCode] = [.configuration, .unavailable, .badData]
    return order.first { $0 == left || $0 == right } ?? .ok
  }

  private func text(_ result: DirectResult) -> String {
    let isGood = result.status == .delivered
    let recipient = result.isBroadcast ? result.recipient : ShortToken(result.recipient).description
    var line = "\(isGood ? "✓" : "✗") \(recipient): \(result.status.rawValue)"
    if !isGood {
      let words = [result.httpStatus.map { String($0) }, result.reason].compactMap(\.self)
      if !words.isEmpty { line += ": \(words.joined(separator: " "))" }
    }
    if let since = result.unregisteredAt { line += " since \(RFC3339.text(since))" }
    line += ", \(result.isBroadcast ? "apns-request-id" : "apns-id") \(result.apnsID)"
    if let unique = result.uniqueID { line += ", apns-unique-id \(unique)" }
    if result.attempts > 1 { line += ", \(result.attempts) attempts" }
    for hint in [result.hint, result.reason.flatMap { advice($0) }] {
      if let hint { line += "\n    \(hint)" }
    }
    return line
  }

  /// What people can do about the refusals that they meet most.
  private func advice(_ reason: String) -> String? {
    let other = app.isSandbox ? "production" : "sandbox"
    switch reason {
    case "BadDeviceToken": return "the token is malformed, or it belongs to the \(other) environment"
    case "DeviceTokenNotForTopic": return "the token is another app's than \(app.bundleID)"
    case "TopicDisallowed", "TopicMismatch": return "these credentials may not send to this topic"
    case "InvalidProviderToken": return "the signing key, its key id and the team id do not belong together"
    case "BadEnvironmentKeyIdInToken": return "this signing key is for the \(other) environment"
    case "BadCertificateEnvironment": return "this certificate is for the \(other) environment"
    default: return nil
    }
  }

  private func json(_ result: DirectResult) -> String {
    var writer = JSONWriter()
    writer.beginObject()
    writer.field("app", app.name)
    writer.field(result.isBroadcast ? "channel" : "token", result.recipient)
    writer.field("status", result.status.rawValue)
    writer.field("http_status", ifAny: result.httpStatus.map(Int64.init))
    writer.field("reason", ifAny: result.reason)
    writer.field("unregistered_at", ifAny: result.unregisteredAt?.milliseconds)
    writer.field("apns_id", ifAny: result.apnsID)
    writer.field("apns_unique_id", ifAny: result.uniqueID)
    writer.field("topic", ifAny: result.topic)
    writer.field("environment", app.environmentName)
    writer.field("push_type", ifAny: result.pushType)
    writer.field("attempts", result.attempts)
    writer.field("hint", ifAny: result.hint)
    writer.endObject()
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}
