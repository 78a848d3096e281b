/// UUIDs as text, at random, and derived from names.
extension UUID: CustomStringConvertible {
  /// The 32 digits without hyphens, in lower case: how the id of a trace is written.
  package var hexText: String {
    let digits = [high, low].map { number in
      let text = String(number, radix: 16)
      return String(repeating: "0", count: 16 - text.utf8.count) + text
    }
    return digits.joined()
  }

  /// Reads the canonical form (RFC 9562, section 4): 36 characters, digits in either case, no braces. `nil` for
  /// anything else. Version and variant are not looked at.
  package init?(_ text: Span<UInt8>) {
    guard text.count == 36, text[8] == 0x2d, text[13] == 0x2d, text[18] == 0x2d, text[23] == 0x2d else { return nil }
    // The digits without the dashes: eight, four and four, four and four, eight.
    let words: InlineArray<4, UInt64> = [
      text.word(at: 0),
      text.word(at: 9) & 0xffff_ffff | text.word(at: 14) << 32,
      text.word(at: 19) & 0xffff_ffff | text.word(at: 24) << 32,
      text.word(at: 28),
    ]
    for index in words.indices where !Words.areHexDigits(words[index]) { return nil }
    self.init(
      high: UInt64(Words.hexValue(words[0])) << 32 | UInt64(Words.hexValue(words[1])),
      low: UInt64(Words.hexValue(words[2])) << 32 | UInt64(Words.hexValue(words[3])))
  }

  /// Like `init(_: Span<UInt8>)`.
  package init?(_ text: String) {
    self.init(text.utf8.span)
  }

  /// The canonical form in lower case.
  package var description: String {
    var text: [UInt8] = []
    text.append(uuid: self)
    return String(decoding: text, as: UTF8.self)
  }

  /// A UUID of version 4 (RFC 9562, section 5.4).
  package static func random(using generator: inout some RandomNumberGenerator) -> UUID {
    UUID(high: generator.next(), low: generator.next(), version: 4)
  }

  /// The UUID of version 5 of one name; see `NameHasher`.
  package static func derived(from name: Span<UInt8>, in namespace: UUID) -> UUID {
    var hasher = NameHasher(namespace: namespace)
    hasher.append(name)
    return hasher.finish()
  }

  /// With the bits that say which version it is, and that it is laid out after RFC 9562 (section 4).
  private init(high: UInt64, low: UInt64, version: UInt64) {
    self.init(high: high & ~0xf000 | version << 12, low: low & ~(3 << 62) | 1 << 63)
  }

  /// Derives a UUID of version 5 (RFC 9562, section 5.5) from a name that comes in pieces. Pieces are not told apart:
  /// "ab", "c" is the same name as "a", "bc". Nothing is allocated.
  package struct NameHasher: Sendable {
    private var hash = SHA1()

    package init(namespace: UUID) {
      append(bigEndian: namespace.high)
      append(bigEndian: namespace.low)
    }

    /// Takes the next piece of the name.
    package mutating func append(_ bytes: Span<UInt8>) {
      hash.update(bytes)
    }

    /// Takes the text's UTF-8 as the next piece of the name.
    package mutating func append(text: String) {
      hash.update(text.utf8.span)
    }

    /// Eight bytes, the most significant one first.
    package mutating func append(bigEndian number: UInt64) {
      for shift in stride(from: UInt64(56), through: 0, by: -8) {
        hash.update(UInt8(truncatingIfNeeded: number >> shift))
      }
    }

    /// The UUID of the name that the pieces make.
    package consuming func finish() -> UUID {
      let digest = hash.finish()
      var high: UInt64 = 0
      var low: UInt64 = 0
      for index in 0..<8 {
        high = high << 8 | UInt64(digest[index])
        low = low << 8 | UInt64(digest[index + 8])
      }
      return UUID(high: high, low: low, version: 5)
    }
  }
}

extension Array where Element == UInt8 {
  /// Appends the canonical form in lower case: 36 bytes.
  package mutating func append(uuid: UUID) {
    append(addingCapacity: 36) { $0.append(uuid: uuid) }
  }
}

extension OutputSpan where Element == UInt8 {
  /// Appends the canonical form in lower case: 36 bytes.
  @inline(__always)
  mutating func append(uuid: UUID) {
    let second = Words.hexDigits(UInt32(truncatingIfNeeded: uuid.high))
    let third = Words.hexDigits(UInt32(truncatingIfNeeded: uuid.low >> 32))
    append(word: Words.hexDigits(UInt32(truncatingIfNeeded: uuid.high >> 32)))
    append(0x2d)
    // Eight digits with a dash between the fourth and the fifth: nine bytes, of which the last is a digit.
    append(word: second & 0xffff_ffff | 0x2d << 32 | (second >> 32) << 40)
    append(UInt8(truncatingIfNeeded: second >> 56))
    append(0x2d)
    append(word: third & 0xffff_ffff | 0x2d << 32 | (third >> 32) << 40)
    append(UInt8(truncatingIfNeeded: third >> 56))
    append(word: Words.hexDigits(UInt32(truncatingIfNeeded: uuid.low)))
  }
}
