import Testing
import Wire

@testable import Transport

@Suite struct HTTP1RequestParserTests {
  /// The steps that a parser takes over these bytes, handed over in pieces of that size; a refusal ends it.
  private static func steps(_ text: [UInt8], piece: Int = .max) -> [HTTP1RequestParser.Step] {
    var parser = HTTP1RequestParser()
    var steps: [HTTP1RequestParser.Step] = []
    var start = 0
    while start < text.count {
      let end = piece == .max ? text.count : min(text.count, start + piece)
      parser.append(text.span.extracting(start..<end))
      start = end
      while true {
        let step = parser.next()
        if case .needsMore = step { break }
        steps.append(step)
        if case .refused = step { return steps }
      }
    }
    return steps
  }

  private static func only(_ text: String) -> HTTP1RequestParser.Step? {
    let steps = steps(Array(text.utf8))
    return steps.count == 1 ? steps[0] : nil
  }

  private static func request(_ text: String) -> HTTP1Request? {
    if case .request(let request) = only(text) { request } else { nil }
  }

  private static func refusal(_ text: String) -> UInt16? {
    if case .refused(let status) = only(text) { status } else { nil }
  }

  @Test func requestIsReadWhole() throws {
    let request = try #require(
      Self.request(
        "GET /metrics?name%5B%5D=a&b HTTP/1.1\r\nHost: here\r\nAccept:  text/plain \r\nX: 1\r\nx: 2\r\n\r\n"))
    #expect(request.method == .get)
    #expect(request.path == "/metrics")
    #expect(request.query == "name%5B%5D=a&b")
    #expect(request.header("ACCEPT") == "text/plain")
    #expect(request.header("X") == "1, 2")
    #expect(request.header("nothing") == nil)
    #expect(request.keepsAlive)
  }

  @Test(arguments: [
    ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false),
    ("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Close\r\n\r\n", false),
    ("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", true),
    ("HEAD / HTTP/1.0\r\n\r\n", false),
    ("HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false),
    ("GET / HTTP/1.9\r\nHost: a\r\n\r\n", true),
  ])
  func connectionGoesOnOrNot(text: String, keepsAlive: Bool) throws {
    #expect(try #require(Self.request(text)).keepsAlive == keepsAlive)
  }

  @Test(
    arguments: [
      ("GET http://example/x?q HTTP/1.1\r\nHost: a\r\n\r\n", "/x", "q"),
      ("GET HTTPS://example HTTP/1.1\r\nHost: a\r\n\r\n", "/", nil),
      ("GET http://example?q HTTP/1.1\r\nHost: a\r\n\r\n", "/", "q"),
      ("\r\n\r\nGET /lf HTTP/1.1\nHost: a\n\n", "/lf", nil),
      ("GET /? HTTP/1.0\r\n\r\n", "/", ""),
      ("GET /zero HTTP/1.1\r\nHost:\r\nContent-Length: 0\r\n\r\n", "/zero", nil),
    ] as [(String, String, String?)])
  func targetsInBothForms(text: String, path: String, query: String?) throws {
    let request = try #require(Self.request(text))
    #expect(request.path == path)
    #expect(request.query == query)
  }

  @Test(
    arguments: [
      ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", 405),
      ("get / HTTP/1.1\r\nHost: a\r\n\r\n", 405),
      ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 405),
      ("GET /\r\n\r\n", 400),
      ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
      (" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
      ("G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
      ("GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
      ("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
      ("GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n", 400),
      ("GET / HTTP/1\r\nHost: a\r\n\r\n", 400),
      ("GET / http/1.1\r\nHost: a\r\n\r\n", 400),
      ("PRI * HTTP/2.0\r\n\r\n", 505),
      ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
      ("GET / HTTP/1.1\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a\0\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", 413),
      ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
    ] as [(String, UInt16)])
  func whatIsNotAllowedIsRefused(text: String, status: UInt16) {
    #expect(Self.refusal(text) == status)
  }

  @Test func sizesAreBoundedWhetherTheHeadEndsOrNot() {
    let longTarget = "GET /" + String(repeating: "a", count: 5000)
    #expect(Self.refusal(longTarget) == 414)
    #expect(Self.refusal(longTarget + " HTTP/1.1\r\nHost: a\r\n\r\n") == 414)
    let longHead = "GET / HTTP/1.1\r\nHost: a\r\nX: " + String(repeating: "b", count: 9000)
    #expect(Self.refusal(longHead) == 431)
    #expect(Self.refusal(longHead + "\r\n\r\n") == 431)
    let manyFields = "GET / HTTP/1.1\r\nHost: a\r\n" + String(repeating: "X: y\r\n", count: 2000)
    #expect(Self.refusal(manyFields) == 431)
    let fits = "GET / HTTP/1.1\r\nHost: a\r\nX: " + String(repeating: "b", count: 8000) + "\r\n\r\n"
    #expect(Self.request(fits) != nil)
  }

  @Test(arguments: [1, 2, 7, 64, 10_000]) func pipelinedRequestsInPiecesOfAnySize(piece: Int) {
    let text = (0..<50).map { "GET /\($0) HTTP/1.1\r\nHost: a\r\nN: \($0)\r\n\r\n" }.joined()
    let paths = Self.steps(Array(text.utf8), piece: piece).map { step -> String in
      if case .request(let request) = step { request.path } else { "?" }
    }
    #expect(paths == (0..<50).map { "/\($0)" })
  }

  @Test func nothingIsReadAfterARefusal() {
    var parser = HTTP1RequestParser()
    parser.append(Array("BAD\r\n\r\nGET / HTTP/1.0\r\n\r\n".utf8).span)
    for _ in 0..<3 {
      guard case .refused(400) = parser.next() else {
        Issue.record("expected a refusal")
        return
      }
    }
  }

  @Test func spoiledBytesNeverCrashAndPiecesMakeNoDifference() {
    let good = Array(
      "GET /a?b HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\nHEAD http://x/ HTTP/1.0\r\nContent-Length: 0\r\n\r\n".utf8)
    var random = SeededRandom(seed: 3)
    for _ in 0..<4000 {
      var bytes = good
      for _ in 0...Int(random.next() % 5) where !bytes.isEmpty {
        let place = Int(random.next() % UInt64(bytes.count))
        switch random.next() % 4 {
        case 0: bytes[place] = UInt8(truncatingIfNeeded: random.next())
        case 1: bytes.remove(at: place)
        case 2: bytes.insert([13, 10, 32, 58, 0, 255][Int(random.next() % 6)], at: place)
        default: bytes.append(contentsOf: bytes[place...])
        }
      }
      let whole = Self.steps(bytes).map { "\($0)" }
      let pieces = Self.steps(bytes, piece: Int(random.next() % 9) + 1).map { "\($0)" }
      #expect(whole == pieces)
    }
  }
}
