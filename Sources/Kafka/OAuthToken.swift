import CRdKafka
import Glibc
import Wire

/// A bearer token for SASL OAUTHBEARER, with what the library wants to know of it.
struct OAuthToken: Equatable {
  /// A token is asked for again after this long at the latest, so that one that was replaced early is noticed.
  static let longestUse: Int64 = 60_000

  var value: String
  /// Who the token speaks for; the library only shows it.
  var principal: String
  /// When the library must have another one.
  var lifetime: UnixTime

  /// A token that cannot be used, in words that do not contain it.
  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  /// Reads `sub` and `exp` of a JWT (RFC 7519). The signature is the broker's business. A token that is no JWT is passed
  /// on as it is.
  init(_ text: String, now: UnixTime) throws(Failure) {
    // RFC 6750, section 2.1: what a bearer token is made of.
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
      throw Failure(description: text.isEmpty ? "the token is empty" : "the token has characters that no token has")
    }
    let claims = Self.claims(of: text)
    if let expiry = claims.expiry, expiry <= now {
      throw Failure(description: "the token expired \(now.seconds - expiry.seconds) s ago")
    }
    value = text
    principal = claims.subject ?? "martlet"
    let soon = UnixTime(milliseconds: now.milliseconds + Self.longestUse)
    lifetime = min(claims.expiry ?? soon, soon)
  }

  private static func claims(of text: String) -> (subject: String?, expiry: UnixTime?) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let payload = Base64URL.decode(Array(parts[1].utf8).span) else { return (nil, nil) }
    return (try? claims(in: payload)) ?? (nil, nil)
  }

  private static func claims(in payload: [UInt8]) throws(JSONError) -> (subject: String?, expiry: UnixTime?) {
    var (subject, expiry): (String?, UnixTime?)
    var scanner = JSONScanner(payload.span)
    try scanner.beginObject()
    while let key = try scanner.nextKey() {
      let (isSubject, isExpiry) = (scanner.matches(key, "sub"), scanner.matches(key, "exp"))
      switch try scanner.value() {
      case .string(let string) where isSubject && !string.hasEscapes:
        subject = String(decoding: payload[string.range.indices], as: UTF8.self)
      case .number(let range, _) where isExpiry:
        // NumericDate may have a fraction.
        let number = Double(String(decoding: payload[range.indices], as: UTF8.self)) ?? 0
        expiry = UnixTime(seconds: Int64(min(max(number, 0), 1e11)))
      default: break
      }
    }
    return (subject, expiry)
  }
}

extension KafkaClient {
  /// Hands the library a token, or says why there is none; then it asks again after ten seconds, and goes on with the
  /// one before as long as that one is good.
  func refreshToken(from source: BearerTokenSource?) {
    guard let source else { return }
    do {
      let now = UnixTime(seconds: Int64(time(nil)))
      let token = try OAuthToken(try source(), now: now)
      let fault: String? = unsafe withErrorText { (buffer, size) -> Bool in
        unsafe rd_kafka_oauthbearer_set_token(
          handle, token.value, token.lifetime.milliseconds, token.principal, nil, 0, buffer, size)
          == RD_KAFKA_RESP_ERR_NO_ERROR
      }
      if let fault { unsafe rd_kafka_oauthbearer_set_token_failure(handle, fault) }
    } catch {
      unsafe rd_kafka_oauthbearer_set_token_failure(handle, "\(error)")
    }
  }
}
