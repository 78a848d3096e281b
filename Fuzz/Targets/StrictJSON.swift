/// A second reader of RFC 8259, written as the grammar stands there and for nothing but comparison: it says yes or no.
struct StrictJSON {
  private let text: [UInt8]
  private let deepest: Int
  private var at = 0
  /// Why it is no: too deep, and not against the grammar as far as it was read.
  private(set) var isTooDeep = false

  init(_ text: [UInt8], deepest: Int) {
    self.text = text
    self.deepest = deepest
  }

  mutating func accepts() -> Bool {
    skipSpace()
    guard value(depth: 0) else { return false }
    skipSpace()
    return at == text.count
  }

  private var next: UInt8? { at < text.count ? text[at] : nil }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    at += 1
    return true
  }

  private mutating func take(_ word: String) -> Bool { word.utf8.allSatisfy { take($0) } }

  private mutating func skipSpace() { while let byte = next, [0x20, 0x09, 0x0a, 0x0d].contains(byte) { at += 1 } }

  private mutating func value(depth: Int) -> Bool {
    switch next {
    case 0x7b:
      return container(depth, end: 0x7d) { reader in
        guard reader.string() else { return false }
        reader.skipSpace()
        guard reader.take(0x3a) else { return false }
        reader.skipSpace()
        return reader.value(depth: depth + 1)
      }
    case 0x5b: return container(depth, end: 0x5d) { reader in reader.value(depth: depth + 1) }
    case 0x22: return string()
    case 0x74: return take("true")
    case 0x66: return take("false")
    case 0x6e: return take("null")
    default: return number()
    }
  }

  private mutating func container(_ depth: Int, end: UInt8, member: (inout StrictJSON) -> Bool) -> Bool {
    guard depth < deepest else {
      isTooDeep = true
      return false
    }
    at += 1
    skipSpace()
    if take(end) { return true }
    while true {
      guard member(&self) else { return false }
      skipSpace()
      if take(end) { return true }
      guard take(0x2c) else { return false }
      skipSpace()
    }
  }

  private mutating func string() -> Bool {
    guard take(0x22) else { return false }
    let start = at
    while let byte = next, byte != 0x22 {
      guard byte >= 0x20 else { return false }
      at += 1
      guard byte == 0x5c else { continue }
      guard let escape = next else { return false }
      at += 1
      if escape == 0x75 {
        for _ in 0..<4 {
          guard let digit = next, Character(Unicode.Scalar(digit)).isHexDigit, digit < 0x80 else { return false }
          at += 1
        }
      } else if !Array("\"\\/bfnrt".utf8).contains(escape) {
        return false
      }
    }
    return String(validating: text[start..<at], as: UTF8.self) != nil && take(0x22)
  }

  private mutating func digits() -> Bool {
    let start = at
    while let byte = next, (0x30...0x39).contains(byte) { at += 1 }
    return at > start
  }

  private mutating func number() -> Bool {
    _ = take(0x2d)
    if !take(0x30), !digits() { return false }
    if take(0x2e), !digits() { return false }
    if take(0x65) || take(0x45) {
      if !take(0x2b) { _ = take(0x2d) }
      return digits()
    }
    return true
  }
}
