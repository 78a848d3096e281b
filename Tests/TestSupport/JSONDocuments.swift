package import Wire

/// Makes JSON documents, and breaks them, as a seed says.
package struct JSONDocuments {
  package var random: SeededRandom

  package init(seed: UInt64) {
    random = SeededRandom(seed: seed)
  }

  /// A valid document with odd but allowed white space, numbers, escapes and nesting. The keys of an object differ,
  /// and no surrogate lacks its partner, so that every reader must see the same in it.
  package mutating func document(maxDepth: Int = 5) -> [UInt8] {
    var text: [UInt8] = []
    appendSpace(&text)
    appendValue(&text, maxDepth: maxDepth)
    appendSpace(&text)
    return text
  }

  /// The text with one to three bytes changed, removed, doubled or put in, or with its end cut off.
  package mutating func mutated(_ document: [UInt8]) -> [UInt8] {
    var text = document
    for _ in 0...random.uniform(below: 3) {
      guard !text.isEmpty else { break }
      let place = random.uniform(below: text.count)
      switch random.uniform(below: 6) {
      case 0: text[place] = UInt8(random.uniform(below: 256))
      case 1: text.remove(at: place)
      case 2: text.insert(text[place], at: place)
      case 3: text[place] = structuralByte()
      case 4: text.insert(structuralByte(), at: place)
      default: text.removeSubrange(place...)
      }
    }
    return text
  }

  private mutating func structuralByte() -> UInt8 {
    pick(Array("{}[]:,\"\\ \n/0123456789.eE+-truefalsn'\u{1}u".utf8))
  }

  private mutating func pick<Element>(_ choices: [Element]) -> Element {
    choices[random.uniform(below: choices.count)]
  }

  private mutating func appendSpace(_ text: inout [UInt8]) {
    guard random.chance(0.2) else { return }
    for _ in 0...random.uniform(below: 3) { text.append(pick([0x20, 0x09, 0x0a, 0x0d])) }
  }

  private mutating func appendValue(_ text: inout [UInt8], maxDepth: Int) {
    switch random.uniform(below: maxDepth > 0 ? 9 : 6) {
    case 0: text.append(text: pick(["true", "false", "null"]))
    case 1, 2: appendNumber(&text)
    case 3, 4, 5: appendString(&text, prefix: "")
    case 6: appendArray(&text, maxDepth: maxDepth - 1)
    default: appendObject(&text, maxDepth: maxDepth - 1)
    }
  }

  private mutating func appendArray(_ text: inout [UInt8], maxDepth: Int) {
    text.append(0x5b)
    appendSpace(&text)
    for index in 0..<random.uniform(below: 5) {
      if index > 0 { text.append(0x2c) }
      appendSpace(&text)
      appendValue(&text, maxDepth: maxDepth)
      appendSpace(&text)
    }
    text.append(0x5d)
  }

  private mutating func appendObject(_ text: inout [UInt8], maxDepth: Int) {
    text.append(0x7b)
    appendSpace(&text)
    for index in 0..<random.uniform(below: 5) {
      if index > 0 { text.append(0x2c) }
      appendSpace(&text)
      appendString(&text, prefix: "\(index)")
      appendSpace(&text)
      text.append(0x3a)
      appendSpace(&text)
      appendValue(&text, maxDepth: maxDepth)
      appendSpace(&text)
    }
    text.append(0x7d)
  }

  /// A number that fits a `Double`. No exponent follows a zero, since Foundation refuses "0e5".
  private mutating func appendNumber(_ text: inout [UInt8]) {
    if random.chance(0.3) { text.append(0x2d) }
    let whole = random.next() >> UInt64(random.uniform(below: 64))
    text.append(decimal: whole)
    if random.chance(0.3) {
      text.append(0x2e)
      for _ in 0...random.uniform(below: 6) { text.append(0x30 + UInt8(random.uniform(below: 10))) }
    }
    if whole > 0, random.chance(0.2) {
      text.append(text: pick(["e", "E", "e+", "E-", "e-0"]))
      text.append(decimal: random.uniform(below: 30))
    }
  }

  private mutating func appendString(_ text: inout [UInt8], prefix: String) {
    text.append(0x22)
    text.append(text: prefix)
    for _ in 0..<random.uniform(below: 12) {
      switch random.uniform(below: 8) {
      case 0: text.append(text: pick(["\\n", "\\t", "\\\"", "\\\\", "\\/", "\\b", "\\f", "\\r"]))
      case 1: text.append(text: pick(["\\u0041", "\\u00e9", "\\u20AC", "\\uFFFD", "\\u001f", "\\uD83D\\ude00"]))
      case 2: text.append(text: pick(["é", "€", "\u{ffff}", "😀", "\u{10ffff}", "\u{7f}", "\u{2028}", "ß"]))
      default: text.append(pick(Array("abcxyz 0189{}[]:,'/".utf8)))
      }
    }
    text.append(0x22)
  }
}
