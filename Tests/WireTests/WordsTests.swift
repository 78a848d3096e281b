import Testing

@testable import Wire

/// What is done eight bytes at a time must give what is done byte by byte.
@Suite struct WordsTests {
  /// Each byte at each of the places around a word's ends, among plain ones.
  private func forEachByteAndPlace(_ body: ([UInt8], UInt8, Int) -> Void) {
    for length in 0..<20 {
      for place in 0..<length {
        for byte in UInt8.min...UInt8.max {
          var bytes = [UInt8](repeating: 0x61, count: length)
          bytes[place] = byte
          body(bytes, byte, place)
        }
      }
    }
  }

  @Test func theFirstSpecialByteIsFoundWhereverItStands() {
    forEachByteAndPlace { bytes, byte, place in
      let isSpecial = byte < 0x20 || byte == 0x22 || byte == 0x5c || byte >= 0x80
      let found = bytes.span.firstSpecial(from: 0)
      if found != (isSpecial ? place : bytes.count) { Issue.record("\(byte) at \(place) of \(bytes.count): \(found)") }
    }
  }

  @Test func theFirstOfSeveralSpecialBytesIsFound() {
    let choice: [UInt8] = [0x61, 0x61, 0x61, 0x22, 0x1f, 0x20, 0x21, 0x5b, 0x5c, 0x7f, 0x80, 0xa2, 0xdc, 0xff]
    var random = SeededRandom(seed: 3)
    for _ in 0..<20_000 {
      let bytes = (0..<24).map { _ in choice[random.uniform(below: choice.count)] }
      let start = random.uniform(below: 24)
      let expected = bytes[start...].firstIndex { $0 < 0x20 || $0 == 0x22 || $0 == 0x5c || $0 >= 0x80 } ?? bytes.count
      if bytes.span.firstSpecial(from: start) != expected { Issue.record("\(bytes) from \(start)") }
    }
  }

  @Test func controlCharactersAreFound() {
    forEachByteAndPlace { bytes, byte, place in
      if UTF8Text.hasControls(bytes.span) != (byte < 0x20 || byte == 0x7f) { Issue.record("\(byte) at \(place)") }
    }
  }

  @Test func onlyHexadecimalDigitsAreDigits() {
    forEachByteAndPlace { bytes, byte, place in
      if Hex.isDigits(bytes.span) != (Hex.value(of: byte) != nil) { Issue.record("\(byte) at \(place)") }
    }
  }

  @Test func validTextIsToldFromOther() {
    forEachByteAndPlace { bytes, _, place in
      let isValid = String(validating: bytes, as: UTF8.self) != nil
      if UTF8Text.isValid(bytes.span) != isValid { Issue.record("\(bytes) at \(place)") }
    }
  }

  @Test func equalBytesAreEqualAndOthersAreNot() {
    for length in 0..<20 {
      let bytes = (0..<length).map { UInt8($0) }
      #expect(areEqual(bytes, bytes))
      #expect(!areEqual(bytes, bytes + [0]))
      for place in 0..<length {
        var other = bytes
        other[place] ^= 0x80
        #expect(!areEqual(bytes, other))
      }
    }
  }

  private func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool { left.span.equals(right.span) }

  @Test(arguments: [("collapse_id", true), ("collapse_ix", false), ("collapse_i", false), ("collapse_id_", false)])
  func aTextIsSpelled(text: String, isSame: Bool) {
    let bytes = Array(text.utf8)
    let spellings = [bytes.span.spells("collapse_id"), bytes.span.spells(static: "collapse_id")]
    #expect(spellings == [isSame, isSame])
  }

  @Test func decimalDigitsAreThoseOfTheNumber() {
    var numbers: [UInt64] = [0, .max, .max - 1, 99_999_999, 100_000_000, 9_999_999_999_999_999, 10_000_000_000_000_000]
    var power: UInt64 = 1
    for _ in 0..<19 {
      numbers += [power - 1, power, power + 1]
      power *= 10
    }
    var random = SeededRandom(seed: 5)
    for bits in 1...64 { for _ in 0..<50 { numbers.append(random.next() >> UInt64(64 - bits)) } }
    for number in numbers + Array(0...20_000) {
      var text: [UInt8] = []
      text.append(decimal: number)
      if String(decoding: text, as: UTF8.self) != String(number) { Issue.record("\(number): \(text)") }
    }
    for number in [Int64.min, -1, -100_000_000, 0, .max] {
      var text: [UInt8] = []
      text.append(decimal: number)
      #expect(String(decoding: text, as: UTF8.self) == String(number))
    }
  }
}
