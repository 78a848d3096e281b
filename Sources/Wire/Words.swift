/// Bytes several at a time: copies of whole stretches, and eight bytes as one word, so that what is asked of each byte of
/// a long text is asked of eight at once.
///
/// This is the one file of the pure modules with unsafe expressions, since the standard library has neither for spans
/// yet. Each checks its bounds first, so that what it is used for stays safe.
extension Span where Element == UInt8 {
  /// The eight bytes from `index` on, the first of them in the lowest place.
  /// - Precondition: all of them lie within.
  @inlinable @inline(__always)
  func word(at index: Int) -> UInt64 {
    precondition(index >= 0 && index <= count &- 8, "a word lies within its span")
    return unsafe UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
  }

  /// The place of the first byte from `start` on that does not stand for itself in a JSON string (see `Words.special`);
  /// the end if all do.
  /// - Precondition: `start` is no negative number.
  func firstSpecial(from start: Int) -> Int {
    precondition(start >= 0, "a place within")
    var at = start
    while count &- at >= 8 {
      // The loop's condition is the check that `word(at:)` would make once more.
      let word = unsafe UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: at, as: UInt64.self))
      let special = Words.special(word)
      if special != 0 { return at &+ Words.first(special) }
      at &+= 8
    }
    while at < count, UTF8Text.isPlain(self[at]) { at &+= 1 }
    return at
  }

  /// Whether both have the same bytes.
  package func equals(_ other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    var at = 0
    while count &- at >= 8 {
      guard word(at: at) == other.word(at: at) else { return false }
      at &+= 8
    }
    while at < count {
      guard self[at] == other[at] else { return false }
      at &+= 1
    }
    return true
  }

  /// Whether the bytes are exactly the UTF-8 of `text`; does not allocate.
  package func spells(_ text: String) -> Bool {
    count == text.utf8.count && equals(text.utf8.span)
  }

  /// The same for a text of the program's own.
  package func spells(static text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    return text.withUTF8Buffer { unsafe equals(Span(_unsafeElements: $0)) }
  }
}

extension Array where Element == UInt8 {
  /// Appends a copy of the bytes.
  package mutating func append(span: Span<UInt8>) {
    unsafe span.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }

  /// Appends a text of the program's own.
  package mutating func append(static text: StaticString) {
    text.withUTF8Buffer { unsafe append(contentsOf: $0) }
  }
}

extension OutputSpan where Element == UInt8 {
  /// Appends a copy of the bytes.
  /// - Precondition: there is room for them.
  @inline(__always)
  mutating func append(span: Span<UInt8>) {
    precondition(span.count <= freeCapacity, "a copy fits")
    unsafe span.withUnsafeBufferPointer { source in
      unsafe withUnsafeMutableBufferPointer { target, count in
        guard let from = source.baseAddress, let to = target.baseAddress else { return }
        unsafe (to + count).initialize(from: from, count: source.count)
        count += source.count
      }
    }
  }

  /// Appends the lower bytes of the word, the lowest first.
  /// - Parameter length: how many of them, at most eight.
  /// - Precondition: there is room for all eight.
  @inline(__always)
  mutating func append(word: UInt64, length: Int = 8) {
    precondition(freeCapacity >= 8 && length >= 0 && length <= 8, "a word fits")
    unsafe withUnsafeMutableBufferPointer { target, count in
      let bytes = UnsafeMutableRawBufferPointer(target)
      unsafe bytes.storeBytes(of: word.littleEndian, toByteOffset: count, as: UInt64.self)
      count += length
    }
  }

  /// Appends a text of the program's own.
  /// - Precondition: there is room for it.
  @inline(__always)
  mutating func append(text: StaticString) {
    precondition(text.hasPointerRepresentation && text.utf8CodeUnitCount <= freeCapacity, "a copy fits")
    unsafe withUnsafeMutableBufferPointer { target, count in
      guard let to = target.baseAddress else { return }
      unsafe (to + count).initialize(from: text.utf8Start, count: text.utf8CodeUnitCount)
      count += text.utf8CodeUnitCount
    }
  }
}

/// Questions about the eight bytes of a word. Each answer has the highest bit of the bytes that it is true of; bits of
/// bytes behind the first such byte may be wrong, so only whether there is one, and the first, may be read from it.
enum Words {
  private static let ones: UInt64 = 0x0101_0101_0101_0101
  private static let highBits: UInt64 = 0x8080_8080_8080_8080

  /// The bytes that do not stand for themselves in a JSON string: control characters, quotes, backslashes, and all that
  /// is not ASCII.
  @inline(__always)
  static func special(_ word: UInt64) -> UInt64 {
    let quotes = (word ^ 0x2222_2222_2222_2222) &- ones
    let backslashes = (word ^ 0x5c5c_5c5c_5c5c_5c5c) &- ones
    let controls = word &- 0x2020_2020_2020_2020
    return (quotes | backslashes | controls | word) & highBits
  }

  /// The bytes that are control characters, DEL among them.
  @inline(__always)
  static func controls(_ word: UInt64) -> UInt64 {
    let low = word &- 0x2020_2020_2020_2020
    let delete = (word ^ 0x7f7f_7f7f_7f7f_7f7f) &- ones
    return (low | delete) & ~word & highBits
  }

  /// The bytes that are not ASCII.
  @inline(__always)
  static func beyondASCII(_ word: UInt64) -> UInt64 { word & highBits }

  /// The place, 0 to 7, of the first byte that an answer, which is not 0, is true of.
  @inline(__always)
  static func first(_ answer: UInt64) -> Int { answer.trailingZeroBitCount >> 3 }

  /// Whether all eight bytes are hexadecimal digits, in either case.
  @inline(__always)
  static func areHexDigits(_ word: UInt64) -> Bool {
    // Below, no sum of a byte of ASCII carries into the next.
    let ascii = word & ~highBits
    let decimal = ~((ascii ^ 0x3030_3030_3030_3030) &+ 0x7676_7676_7676_7676)
    let lower = ascii | 0x2020_2020_2020_2020
    let letter = (lower &+ 0x1f1f_1f1f_1f1f_1f1f) & ~(lower &+ 0x1919_1919_1919_1919)
    return (decimal | letter) & ~word & highBits == highBits
  }

  /// What eight hexadecimal digits spell, the first of them the most significant.
  @inline(__always)
  static func hexValue(_ digits: UInt64) -> UInt32 {
    // Letters have bit 6 set, and stand 9 above their low half.
    let halves = (digits & 0x0f0f_0f0f_0f0f_0f0f) &+ (digits >> 6 & ones) &* 9
    let bytes = (halves << 4 | halves >> 8) & 0x00ff_00ff_00ff_00ff
    let pairs = (bytes << 8 | bytes >> 16) & 0x0000_ffff_0000_ffff
    return UInt32(truncatingIfNeeded: pairs << 16 | pairs >> 32)
  }

  /// The eight decimal digits of a value below 100,000,000, the most significant first.
  @inline(__always)
  static func decimalDigits(_ value: UInt32) -> UInt64 {
    // Halves of four digits, then pairs, then digits; a division by a constant is a multiplication and a shift.
    let fours = UInt64(value / 10_000) | UInt64(value % 10_000) << 32
    let hundreds = ((fours &* 10_486) >> 20) & 0x0000_007f_0000_007f
    let pairs = hundreds | (fours &- hundreds &* 100) << 16
    let tens = ((pairs &* 103) >> 10) & 0x000f_000f_000f_000f
    return (tens | (pairs &- tens &* 10) << 8) &+ 0x3030_3030_3030_3030
  }

  /// The eight lower-case digits of a value, the most significant first.
  @inline(__always)
  static func hexDigits(_ value: UInt32) -> UInt64 {
    let wide = UInt64(value)
    let pairs = (wide >> 16 | wide << 32) & 0x0000_ffff_0000_ffff
    let bytes = (pairs >> 8 | pairs << 16) & 0x00ff_00ff_00ff_00ff
    let halves = (bytes >> 4 | bytes << 8) & 0x0f0f_0f0f_0f0f_0f0f
    let letters = (halves &+ 0x0606_0606_0606_0606) >> 4 & ones
    return halves &+ 0x3030_3030_3030_3030 &+ letters &* 0x27
  }
}
