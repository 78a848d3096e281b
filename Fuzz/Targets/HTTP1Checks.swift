import Transport

/// The parser answers alike whether the bytes come at once or one by one, and keeps its bounds.
enum HTTP1Checks {
  static func check(_ bytes: [UInt8]) throws {
    let whole = try steps(of: bytes, piece: max(bytes.count, 1))
    let single = try steps(of: bytes, piece: 1)
    // What comes at once may be too long before its faults are seen, or the other way round; what is let through may not
    // depend on it.
    try hold(
      whole.filter { !$0.hasPrefix("refused") } == single.filter { !$0.hasPrefix("refused") },
      "at once \(whole), one by one \(single)")
  }

  private static func steps(of bytes: [UInt8], piece: Int) throws -> [String] {
    var parser = HTTP1RequestParser()
    var steps: [String] = []
    for start in stride(from: 0, to: bytes.count, by: piece) {
      parser.append(bytes.span.extracting(start..<min(start + piece, bytes.count)))
      while true {
        switch parser.next() {
        case .needsMore: break
        case .request(let request):
          try check(request)
          steps.append("\(request.method) \(request.path)?\(request.query ?? "") \(request.header("accept") ?? "")")
          continue
        case .refused(let status):
          try hold([400, 405, 413, 414, 431, 505].contains(status), "refused with \(status)")
          parser.append([0x47, 0x0a, 0x0a].span)
          guard case .refused(status) = parser.next() else {
            throw Broken(description: "it goes on after a refusal")
          }
          return steps + ["refused \(status)"]
        }
        break
      }
      let limit = HTTP1RequestParser.headLimit
      try hold(parser.bufferedCount <= max(limit, piece), "\(parser.bufferedCount) bytes are kept")
    }
    return steps
  }

  private static func check(_ request: HTTP1Request) throws {
    try hold(request.path.hasPrefix("/"), "the path \(request.path)")
    let target = request.path + (request.query ?? "")
    try hold(target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }, "the target \(target)")
    try hold(target.utf8.count < HTTP1RequestParser.lineLimit, "a target of \(target.utf8.count) bytes")
    for name in ["host", "accept", "connection"] {
      try hold(request.header(name)?.unicodeScalars.contains { $0.value < 0x20 && $0 != "\t" } != true, "a control")
    }
  }
}
