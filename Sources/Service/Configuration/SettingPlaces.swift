/// Where the keys and values of a JSON5 text stand, since the decoder that reads it does not tell.
///
/// It looks at brackets, commas, colons, comments and the ends of texts, and at nothing inside them: what a number or a
/// word means, and whether it is allowed, the decoder alone decides.
struct SettingPlaces {
  /// A value, and what stands inside it.
  struct Place {
    /// The first byte of its key.
    var key: Int?
    /// Its first byte.
    var value: Int
    /// By key; of keys that stand there twice, the first.
    var members: [String: Place] = [:]
    var items: [Place] = []
  }

  /// Where the text is broken, as far as one can see from outside.
  struct Fault: Error {
    var offset: Int
    var message: String
  }

  /// Deeper nesting is not followed; no setting lies that deep.
  static let deepest = 32

  /// `nil` where the text is broken.
  private(set) var root: Place?
  private(set) var fault: Fault?
  /// The keys that their object has already, each with its path.
  private(set) var repeated: [(path: String, offset: Int)] = []
  /// Keys, and values that are neither objects nor lists, in the order of the text.
  private(set) var pieces: [(range: Range<Int>, isKey: Bool)] = []

  private let text: [UInt8]
  private var offset = 0

  init(_ text: [UInt8]) {
    self.text = text
    if text.starts(with: [0xEF, 0xBB, 0xBF]) { offset = 3 }
    do throws(Fault) {
      let root = try value(path: "", depth: 0)
      try skipBlank()
      guard next == nil else { throw Fault(offset: offset, message: "something follows the end of the value") }
      self.root = root
    } catch {
      fault = error
    }
  }

  private var next: UInt8? { offset < text.count ? text[offset] : nil }

  private func follows(_ word: StaticString) -> Bool { text[offset...].starts(with: word.description.utf8) }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    offset += 1
    return true
  }

  private mutating func skipBlank() throws(Fault) {
    while let byte = next {
      if (0x09...0x0D).contains(byte) || byte == 0x20 {
        offset += 1
      } else if follows("//") {
        while let byte = next, byte != 0x0A, byte != 0x0D { offset += 1 }
      } else if follows("/*") {
        let start = offset
        offset += 2
        while !follows("*/") {
          guard next != nil else { throw Fault(offset: start, message: "this comment has no end") }
          offset += 1
        }
        offset += 2
      } else {
        return
      }
    }
  }

  private mutating func value(path: String, depth: Int) throws(Fault) -> Place {
    try skipBlank()
    guard depth <= Self.deepest else { throw Fault(offset: offset, message: "nested too deeply") }
    var place = Place(value: offset)
    if take(UInt8(ascii: "{")) {
      try each(from: place.value, until: UInt8(ascii: "}"), "object", "brace") { places throws(Fault) in
        try places.member(of: &place, path, depth)
      }
    } else if take(UInt8(ascii: "[")) {
      try each(from: place.value, until: UInt8(ascii: "]"), "list", "bracket") { places throws(Fault) in
        place.items.append(try places.value(path: "\(path)[\(place.items.count)]", depth: depth + 1))
      }
    } else {
      try piece(isKey: false)
    }
    return place
  }

  /// What stands between two brackets, with commas between.
  private mutating func each(
    from start: Int, until end: UInt8, _ kind: String, _ bracket: String,
    _ part: (inout Self) throws(Fault) -> Void
  ) throws(Fault) {
    while true {
      try skipBlank()
      if take(end) { return }
      guard next != nil else { throw Fault(offset: start, message: "this \(kind) has no end") }
      try part(&self)
      try skipBlank()
      if next == nil || next == end || take(UInt8(ascii: ",")) { continue }
      throw Fault(offset: offset, message: "a comma or a closing \(bracket) is missing here")
    }
  }

  private mutating func member(of object: inout Place, _ path: String, _ depth: Int) throws(Fault) {
    let keyOffset = offset
    try piece(isKey: true)
    let key = ConfigurationDocument.key(text[keyOffset..<offset])
    let keyPath = SettingPath.join(path, key)
    try skipBlank()
    guard take(UInt8(ascii: ":")) else { throw Fault(offset: offset, message: "a colon is missing here") }
    var place = try value(path: keyPath, depth: depth + 1)
    place.key = keyOffset
    if object.members[key] == nil { object.members[key] = place } else { repeated.append((keyPath, keyOffset)) }
  }

  /// A text in quotes, or whatever else stands before the next blank or mark.
  private mutating func piece(isKey: Bool) throws(Fault) {
    let start = offset
    if let quote = next, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
      offset += 1
      while !take(quote) {
        guard let byte = next, byte != 0x0A else { throw Fault(offset: start, message: "this text has no end") }
        offset = min(offset + (byte == UInt8(ascii: "\\") ? 2 : 1), text.count)
      }
    } else {
      while let byte = next, byte > 0x20, !"{}[],:\"'/".utf8.contains(byte) { offset += 1 }
      guard offset > start else {
        throw Fault(offset: start, message: "a \(isKey ? "key" : "value") is missing here")
      }
    }
    pieces.append((start..<offset, isKey))
  }
}
