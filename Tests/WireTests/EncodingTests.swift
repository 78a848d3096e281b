import Foundation
import Testing
import Wire

@Suite struct EncodingTests {
  private func bytes(_ body: (inout [UInt8]) -> Bool) -> [UInt8]? {
    var output: [UInt8] = [1]
    let isGood = body(&output)
    // On failure what was there before must be all that is there.
    return isGood ? Array(output.dropFirst()) : output == [1] ? nil : output
  }

  // MARK: Hex

  @Test(
    arguments: [
      ("", []), ("00", [0]), ("ff", [255]), ("FF", [255]), ("aB09", [0xab, 0x09]), ("0123456789abcdefABCDEF", nil),
      ("0", nil), ("123", nil), ("0g", nil), ("0x", nil), (" 0", nil), ("é", nil), ("@0", nil), ("G0", nil),
      ("`0", nil),
      ("/0", nil), (":0", nil),
    ] as [(String, [UInt8]?)])
  func hexIsDecoded(text: String, expected: [UInt8]?) {
    let expected = text.utf8.count == 22 ? [1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xab, 0xcd, 0xef] : expected
    #expect(bytes { Hex.decode(text.utf8.span, into: &$0) } == expected)
  }

  @Test func hexIsWrittenInLowerCaseAndReadBack() {
    let all = [UInt8](0...255)
    var text: [UInt8] = []
    Hex.encode(all.span, into: &text)
    #expect(text == Array(all.map { String(format: "%02x", Int($0)) }.joined().utf8))
    #expect(bytes { Hex.decode(text.span, into: &$0) } == all)
  }

  @Test func hexDigitsAreToldFromOtherBytes() {
    for byte in UInt8(0)...255 {
      let expected = byte < 0x80 ? Character(Unicode.Scalar(byte)).hexDigitValue : nil
      #expect(Hex.value(of: byte).map(Int.init) == expected)
      #expect(Hex.isDigits([0x30, byte, 0x66].span) == (expected != nil))
    }
    #expect(Hex.isDigits([UInt8]().span) == true)
  }

  // MARK: Base 64

  /// The vectors of RFC 4648, section 10, and one that uses the last two digits.
  static let vectors: [(plain: [UInt8], text: String)] = [
    ([], ""), (Array("f".utf8), "Zg=="), (Array("fo".utf8), "Zm8="), (Array("foo".utf8), "Zm9v"),
    (Array("foob".utf8), "Zm9vYg=="), (Array("fooba".utf8), "Zm9vYmE="), (Array("foobar".utf8), "Zm9vYmFy"),
    ([0xfb, 0xff, 0xbf], "+/+/"),
  ]

  @Test(arguments: vectors)
  func base64Vectors(plain: [UInt8], text: String) {
    var output: [UInt8] = []
    Base64.encode(plain.span, into: &output)
    #expect(output == Array(text.utf8))
    #expect(bytes { Base64.decode(text.utf8.span, into: &$0) } == plain)

    let url = text.filter { $0 != "=" }.replacing("+", with: "-").replacing("/", with: "_")
    output = []
    Base64URL.encode(plain.span, into: &output)
    #expect(output == Array(url.utf8))
    #expect(bytes { Base64URL.decode(url.utf8.span, into: &$0) } == plain)
  }

  @Test(arguments: [
    "Zg", "Zg=", "Zg===", "Z===", "====", "=", "Zh==", "Zm9=", "Zm8==", "Z=g=", "Zg==Zg==", "Zm9v\n", " Zm9v", "Zm-_",
    "Zm9é", "Zm9\u{0}", "Zm9*", "Zg==\n",
  ])
  func malformedBase64IsRefused(text: String) {
    #expect(bytes { Base64.decode(text.utf8.span, into: &$0) } == nil)
  }

  @Test(arguments: ["Z", "Zm9vY", "Zh", "Zm9", "Zg==", "Zm8=", "Zm+/", "Zm 9", "Zm9v\n", "é"])
  func malformedBase64URLIsRefused(text: String) {
    #expect(bytes { Base64URL.decode(text.utf8.span, into: &$0) } == nil)
  }

  @Test func base64AgreesWithFoundation() {
    var random = SeededRandom(seed: 5)
    for length in 0..<100 {
      let plain = (0..<length).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      var text: [UInt8] = []
      Base64.encode(plain.span, into: &text)
      #expect(text == Array(Data(plain).base64EncodedString().utf8))
      #expect(bytes { Base64.decode(text.span, into: &$0) } == plain)
      text = []
      Base64URL.encode(plain.span, into: &text)
      #expect(bytes { Base64URL.decode(text.span, into: &$0) } == plain)
    }
  }

  // MARK: Appending

  @Test func resultsOfTheirOwnAreTheSame() {
    let plain: [UInt8] = [0xfb, 0xff, 0xbf, 0x01]
    #expect(Hex.encode(plain.span) == "fbffbf01")
    #expect(Hex.decode("fbFFbf01".utf8.span) == plain)
    #expect(Hex.decode("f".utf8.span) == nil)
    #expect(Base64.encode(plain.span) == "+/+/AQ==")
    #expect(Base64.decode("+/+/AQ==".utf8.span) == plain)
    #expect(Base64.decode("+/+/AQ".utf8.span) == nil)
    #expect(Base64URL.encode(plain.span) == "-_-_AQ")
    #expect(Base64URL.decode("-_-_AQ".utf8.span) == plain)
    #expect(Base64URL.decode("-_-_AQ==".utf8.span) == nil)
  }

  @Test func spansAndScalarsAreAppended() {
    var output: [UInt8] = []
    output.append(span: [1, 2, 3].span)
    output.append(span: [UInt8]().span)
    output.append(scalar: "A")
    output.append(scalar: "é")
    output.append(text: "€")
    #expect(output == [1, 2, 3, 0x41, 0xc3, 0xa9, 0xe2, 0x82, 0xac])
  }
}
