package import APNs
import Synchronization
package import Transport
import Wire

/// A key that a team has registered: Apple's side of a `.p8` file.
package struct ProviderKey: Sendable {
  package var keyID: String
  package var teamID: String
  /// A public key will do.
  package var key: SigningKey

  package init(keyID: String, teamID: String, key: SigningKey) {
    self.keyID = keyID
    self.teamID = teamID
    self.key = key
  }

  /// A new key; `key.privatePEM()` is the content of its `.p8` file.
  package static func make(keyID: String, teamID: String) throws(TransportError) -> ProviderKey {
    ProviderKey(keyID: keyID, teamID: teamID, key: try SigningKey.generate())
  }
}

/// What is known of one provider token, whatever the time is.
package struct ProviderTokenVerdict: Hashable, Sendable {
  /// Numbers the token texts that were seen, from 1.
  package var number: Int
  /// `iss`.
  package var teamID: String
  /// `iat`, in seconds since 1970.
  package var issuedAt: Int64
  /// Why it can never be accepted.
  package var refusal: Reason?
}

/// Checks provider tokens (Apple, "Establishing a token-based connection to APNs"), each text once.
///
/// Any thread may ask. What was found is remembered for the last few thousand texts.
package final class ProviderTokenJudge: Sendable {
  private struct Memory {
    var verdicts: [[UInt8]: ProviderTokenVerdict] = [:]
    var seen = 0
  }

  private static let capacity = 4096
  private let keys: [String: ProviderKey]
  private let acceptsAnyKey: Bool
  private let memory = Mutex(Memory())

  /// - Parameters:
  ///   - keys: whose tokens are good.
  ///   - acceptsAnyKey: take tokens that are well formed, whoever signed them.
  package init(keys: [ProviderKey], acceptsAnyKey: Bool = false) {
    self.keys = Dictionary(keys.map { ($0.keyID, $0) }) { _, last in last }
    self.acceptsAnyKey = acceptsAnyKey
  }

  /// How many different texts were judged.
  package var distinctTokens: Int { memory.withLock { $0.seen } }

  /// - Parameter text: the token without "bearer ".
  package func judge(_ text: [UInt8]) -> ProviderTokenVerdict {
    if let known = memory.withLock({ $0.verdicts[text] }) { return known }
    // Verifying takes long: it happens outside the lock, at worst twice.
    var verdict = examine(text)
    return memory.withLock { memory in
      if let known = memory.verdicts[text] { return known }
      if memory.verdicts.count >= Self.capacity { memory.verdicts.removeAll() }
      memory.seen += 1
      verdict.number = memory.seen
      memory.verdicts[text] = verdict
      return verdict
    }
  }

  private func examine(_ text: [UInt8]) -> ProviderTokenVerdict {
    var verdict = ProviderTokenVerdict(number: 0, teamID: "", issuedAt: 0, refusal: .invalidProviderToken)
    let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map { Array($0) }
    guard parts.count == 3, let last = parts.last, let header = Self.fields(of: parts[0]),
      let claims = Self.fields(of: parts[1]), let signature = Base64URL.decode(last.span),
      signature.count == SigningKey.signatureSize,
      header.texts["alg"] == "ES256", let keyID = header.texts["kid"], let teamID = claims.texts["iss"],
      let issuedAt = claims.numbers["iat"]
    else { return verdict }
    verdict.teamID = teamID
    verdict.issuedAt = issuedAt
    if acceptsAnyKey {
      verdict.refusal = nil
    } else if let registered = keys[keyID], registered.teamID == teamID {
      let signed = Array(text[..<(parts[0].count + 1 + parts[1].count)])
      if registered.key.verify(signature.span, of: signed.span) { verdict.refusal = nil }
    }
    return verdict
  }

  /// The members of a JSON object in base 64 that are texts or whole numbers; `nil` if it is no such object.
  private static func fields(of part: [UInt8]) -> (texts: [String: String], numbers: [String: Int64])? {
    guard let json = Base64URL.decode(part.span) else { return nil }
    var texts: [String: String] = [:]
    var numbers: [String: Int64] = [:]
    do {
      var scanner = JSONScanner(json.span)
      try scanner.beginObject()
      while let key = try scanner.nextKey() {
        let name = String(decoding: json[key.range.indices], as: UTF8.self)
        switch try scanner.value() {
        case .string(let string): texts[name] = String(decoding: json[string.range.indices], as: UTF8.self)
        case .number(let range, isInteger: true): numbers[name] = JSONText.int64(of: range, in: json.span)
        default: break
        }
      }
      try scanner.endDocument()
    } catch {
      return nil
    }
    return (texts, numbers)
  }
}
