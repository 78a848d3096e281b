import Transport
import Wire

/// What happens on the way of a command's requests, as `-v` tells it. Secrets are masked in it already: provider
/// tokens, and all but the ends of device tokens.
package enum DirectEvent: Sendable {
  /// To `host:port`.
  case connecting(to: String)
  case connected(to: String)
  /// `nil`: in good order.
  case disconnected(cause: String?)
  /// The number tells a request, and the answer to it, from others on the way.
  case sent(number: Int, fields: [Field], bodySize: Int)
  case received(number: Int, status: UInt16, fields: [Field], body: String)
  /// What came instead of an answer.
  case unanswered(number: Int, cause: String)
  case again(after: Duration, cause: String)

  /// One header field.
  package struct Field: Sendable, Equatable {
    package var name: String
    package var value: String

    /// Masks what is secret.
    init(_ name: String, _ value: String) {
      self.name = name
      switch name {
      case "authorization":
        self.value = "\(value.prefix { $0 != " " }) (a provider token of \(value.utf8.count) bytes, masked)"
      case ":path" where value.hasPrefix("/3/device/"):
        self.value = "/3/device/\(ShortToken(String(value.dropFirst(10))))"
      default: self.value = value
      }
    }
  }

  static func fields(_ lists: HeaderList...) -> [Field] {
    let all = lists.flatMap(\.texts).map { Field($0.name, $0.value) }
    return all.filter { $0.name.hasPrefix(":") } + all.filter { !$0.name.hasPrefix(":") }
  }
}

/// Hears of each event, on any thread.
package typealias DirectTrace = @Sendable (DirectEvent) -> Void
