import Testing
import Wire

@Suite struct FNV1aTests {
  private func hash(_ text: String, seed: UInt64 = 0, setting bits: UInt8 = 0) -> UInt64 {
    var hash = FNV1a(seed: seed)
    hash.add(Array(text.utf8).span, setting: bits)
    return hash.value
  }

  /// From the vectors that its authors publish.
  @Test(
    arguments: [
      ("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8),
    ] as [(String, UInt64)])
  func theHashesAreThoseOfTheAuthors(text: String, expected: UInt64) {
    #expect(hash(text) == expected)
  }

  /// From the same vectors.
  @Test(
    arguments: [("", 0x811c_9dc5), ("a", 0xe40c_292c), ("foobar", 0xbf9c_f968)] as [(String, UInt32)])
  func theHashesOf32BitsAreThoseOfTheAuthors(text: String, expected: UInt32) {
    #expect(FNV1a.hash32(Array(text.utf8).span) == expected)
  }

  @Test func aNumberIsItsBytesTheLeastSignificantFirst() {
    var number = FNV1a()
    number.add(0x6867_6665_6463_6261)
    #expect(number.value == hash("abcdefgh"))
  }

  @Test func lettersCountAlikeInEitherCaseIfAskedFor() {
    #expect(hash("FooBar", setting: 0x20) == hash("foobar"))
    #expect(hash("FooBar") != hash("foobar"))
  }

  @Test func aSeedMakesOtherHashes() {
    #expect(Set((0..<100).map { hash("a", seed: $0) }).count == 100)
  }
}
