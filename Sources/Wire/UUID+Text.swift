/// UUIDs as text, at random, and derived from names.
extension UUID: CustomStringConvertible {
  /// Reads the canonical form (RFC 9562, section 4): 36 characters, digits in either case, no braces. `nil` for
  /// anything else. Version and variant are not looked at.
  package init?(_ text: Span<UInt8>) {
    guard text.count == 36 else { return nil }
    var high: UInt64 = 0
    var low: UInt64 = 0
    for index in text.indices {
      switch index {
      case 8, 13, 18, 23:
        guard text[index] == 0x2d else { return nil }
      default:
        guard let digit = Hex.value(of: text[index]) else { return nil }
        if index < 18 { high = high << 4 | UInt64(digit) } else { low = low << 4 | UInt64(digit) }
      }
    }
    self.init(high: high, low: low)
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
    append(addingCapacity: 36) { output in
      for digit in 0..<32 {
        if digit == 8 || digit == 12 || digit == 16 || digit == 20 { output.append(0x2d) }
        let word = digit < 16 ? uuid.high : uuid.low
        output.append(Hex.digit(of: UInt8(truncatingIfNeeded: word >> UInt64(60 - 4 * (digit & 15))) & 15))
      }
    }
  }
}
