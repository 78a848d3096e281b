internal import Transport
internal import Wire

/// The status page: one HTML document that asks for nothing but `/status.json`.
///
/// Its parts lie beside this file and are compiled into the program. The page's policy names the digests of its one
/// style and its one script, so that nothing else runs, whatever stands in a name.
package enum StatusPage {
  /// The whole page.
  static let html: [UInt8] = {
    let page = String(decoding: PackageResources.page_html, as: UTF8.self)
    let (head, rest) = cut(page, at: "/*style*/")
    let (middle, tail) = cut(rest, at: "/*script*/")
    return Array(head.utf8) + PackageResources.page_css + Array(middle.utf8) + PackageResources.page_js
      + Array(tail.utf8)
  }()

  /// `Content-Security-Policy` (CSP 3, W3C).
  static let policy = [
    "default-src 'none'", "style-src '\(source(of: PackageResources.page_css))'",
    "script-src '\(source(of: PackageResources.page_js))'", "connect-src 'self'", "img-src data:", "base-uri 'none'",
    "form-action 'none'", "frame-ancestors 'none'",
  ].joined(separator: "; ")

  package static var answer: EndpointAnswer {
    var answer = EndpointAnswer(status: 200, contentType: "text/html; charset=utf-8", body: html)
    answer.headers = [
      EndpointAnswer.Header("Content-Security-Policy", policy), EndpointAnswer.Header("Referrer-Policy", "no-referrer"),
      EndpointAnswer.Header("Cache-Control", "no-cache"),
    ]
    return answer
  }

  private static func source(of part: [UInt8]) -> String {
    "sha256-" + Base64.encode(ContentDigest(of: part).bytes.span)
  }

  private static func cut(_ text: String, at mark: String) -> (String, String) {
    guard let place = text.firstRange(of: mark) else { return (text, "") }
    return (String(text[..<place.lowerBound]), String(text[place.upperBound...]))
  }
}
