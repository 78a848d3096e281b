import Testing
import Wire

@Suite struct UUIDTests {
  private let dns = UUID(high: 0x6ba7_b810_9dad_11d1, low: 0x80b4_00c0_4fd4_30c8)
  private let url = UUID(high: 0x6ba7_b811_9dad_11d1, low: 0x80b4_00c0_4fd4_30c8)

  @Test func theCanonicalFormIsReadInAnyCase() {
    let uuid = UUID(high: 0x0123_4567_89ab_cdef, low: 0xfedc_ba98_7654_3210)
    #expect(UUID("01234567-89ab-cdef-fedc-ba9876543210") == uuid)
    #expect(UUID("01234567-89AB-CDEF-FeDc-Ba9876543210") == uuid)
    #expect(uuid.description == "01234567-89ab-cdef-fedc-ba9876543210")
    #expect(UUID("00000000-0000-0000-0000-000000000000") == UUID(high: 0, low: 0))
    #expect(UUID("ffffffff-ffff-ffff-ffff-ffffffffffff") == UUID(high: .max, low: .max))
  }

  @Test(arguments: [
    "", "01234567-89ab-cdef-fedc-ba987654321", "01234567-89ab-cdef-fedc-ba98765432100",
    "0123456789abcdeffedcba9876543210", "{01234567-89ab-cdef-fedc-ba987654321}", "01234567-89ab-cdef-fedc-ba987654321g",
    "01234567089ab-cdef-fedc-ba9876543210", "0123456-789ab-cdef-fedc-ba9876543210",
    "01234567-89ab-cdef-fedcba-9876543210", " 1234567-89ab-cdef-fedc-ba9876543210",
    "01234567-89ab-cdef-fedc-ba98765432é", "01234567_89ab_cdef_fedc_ba9876543210",
    "------------------------------------",
  ])
  func otherTextIsNoUUID(text: String) {
    #expect(UUID(text) == nil)
  }

  @Test func textSurvivesARoundTrip() {
    var random = SeededRandom(seed: 9)
    for _ in 0..<200 {
      let uuid = UUID(high: random.next(), low: random.next())
      #expect(UUID(uuid.description) == uuid)
    }
  }

  @Test func randomOnesSayVersionFourAndDiffer() {
    var random = SeededRandom(seed: 4)
    var seen: Set<UUID> = []
    for _ in 0..<200 {
      let uuid = UUID.random(using: &random)
      #expect(uuid.high >> 12 & 15 == 4)
      #expect(uuid.low >> 62 == 2)
      seen.insert(uuid)
    }
    #expect(seen.count == 200)
  }

  /// What Python's `uuid.uuid5` gives.
  @Test(arguments: [
    ("www.example.com", "2ed6657d-e927-568b-95e1-2665a8aea6a2"), ("", "4ebd0208-8328-5d69-8c44-ec50939c0967"),
    (String(repeating: "a", count: 200), "fe30bfa6-ef90-59b3-b108-118411d0f0ab"),
    ("bücher", "076deaa6-9e52-5ac9-9db7-d9afc6a1e66c"),
  ])
  func namesGiveTheKnownUUIDs(name: String, expected: String) {
    #expect(UUID.derived(from: name.utf8.span, in: dns).description == expected)
  }

  @Test func aNameMayComeInPieces() {
    var hasher = UUID.NameHasher(namespace: url)
    hasher.append(text: "push.requests")
    hasher.append("/3/".utf8.span)
    hasher.append([UInt8]().span)
    hasher.append(text: "42/0")
    #expect(hasher.finish().description == "0755206c-e384-58b2-9134-79dfddeedc70")

    var byNumber = UUID.NameHasher(namespace: url)
    byNumber.append(bigEndian: 0x0102_0304_0506_0708)
    #expect(byNumber.finish() == UUID.derived(from: [1, 2, 3, 4, 5, 6, 7, 8].span, in: url))
  }
}

@Suite struct SHA1Tests {
  private func digest(_ bytes: [UInt8]) -> [UInt8] {
    var hash = SHA1()
    hash.update(bytes.span)
    let digest = hash.finish()
    return digest.indices.map { digest[$0] }
  }

  private func hex(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    Hex.encode(bytes.span, into: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// The examples of FIPS 180 and RFC 3174.
  @Test(arguments: [
    ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"), ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
    ),
    (String(repeating: "01234567", count: 80), "dea356a2cddd90c7a7ecedc5ebb563934f460452"),
  ])
  func knownDigests(text: String, expected: String) {
    #expect(hex(digest(Array(text.utf8))) == expected)
  }

  /// All lengths about the ends of the blocks: the digest of 200 digests, as Python's `hashlib` gives it.
  @Test func everyLengthIsPaddedRightly() {
    var all: [UInt8] = []
    for length in 0..<200 {
      all += digest((0..<length).map { UInt8(truncatingIfNeeded: $0 * 7 + length) })
    }
    #expect(hex(digest(all)) == "c2add6cb3908952ddaf192d7f14c30588649e3b5")
  }

  @Test func piecesGiveTheSameAsTheWhole() {
    let bytes = (0..<300).map { UInt8(truncatingIfNeeded: $0) }
    let whole = digest(bytes)
    for step in [1, 3, 63, 64, 65, 128] {
      var hash = SHA1()
      for start in stride(from: 0, to: bytes.count, by: step) {
        hash.update(bytes.span.extracting(start..<min(start + step, bytes.count)))
      }
      let digest = hash.finish()
      #expect(digest.indices.map { digest[$0] } == whole)
    }
  }
}
