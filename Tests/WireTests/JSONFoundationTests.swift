import Foundation
import TestSupport
import Testing
import Wire

/// The scanner against an independent reader: Foundation's `JSONDecoder`.
@Suite struct JSONFoundationTests {
  @Test func generatedDocumentsMeanTheSame() throws {
    var documents = JSONDocuments(seed: 1)
    let decoder = JSONDecoder()
    for _ in 0..<2000 {
      let text = documents.document()
      let expected = try decoder.decode(JSONTree.self, from: Data(text))
      let tree = try JSONTree(reading: text)
      guard tree == expected else {
        Issue.record("\(String(decoding: text, as: UTF8.self))\n\(tree)\n\(expected)")
        return
      }
    }
  }

  /// Why the two may differ. Whatever has no place in this list is a fault.
  enum Difference: Hashable {
    /// RFC 8259 allows an escaped surrogate without its partner; Foundation refuses it, and so does unescaping here.
    case loneSurrogate
    /// RFC 8259 allows numbers of any size; Foundation refuses what no `Double` can hold.
    case numberOutOfRange
    /// RFC 8259 allows "0e5"; Foundation takes it for a number that became zero for being too small.
    case zeroWithExponent
    /// RFC 8259 forbids "{"a":1,}"; Foundation accepts it in objects, though not in arrays.
    case commaBeforeClosingBrace
  }

  @Test func brokenDocumentsAreJudgedAlikeButForKnownDifferences() {
    var documents = JSONDocuments(seed: 2)
    var good = 0
    var differences: [Difference: Int] = [:]
    for _ in 0..<4000 {
      let text = documents.mutated(documents.document(maxDepth: 4))
      let ours = walkError(text) == nil
      if ours { good += 1 }
      guard ours != Self.foundationReads(text) else { continue }
      if let difference = ours ? Self.whyRefused(text) : Self.whyAccepted(text) {
        differences[difference, default: 0] += 1
      } else {
        Issue.record("ours \(ours): \(String(decoding: text, as: UTF8.self).debugDescription)")
      }
    }
    #expect((500...3500).contains(good))
    #expect(Set(differences.keys) == [.loneSurrogate, .numberOutOfRange, .commaBeforeClosingBrace])
  }

  @Test(
    arguments: [
      ("[\"\\uD800\"]", .loneSurrogate), ("[1e400]", .numberOutOfRange), ("[-1e-400]", .numberOutOfRange),
      ("[0e5]", .zeroWithExponent), ("[0.00e12]", .zeroWithExponent), ("{\"a\":1 , }", .commaBeforeClosingBrace),
    ] as [(String, Difference)])
  func theKnownDifferencesAreStillThere(text: String, difference: Difference) {
    let bytes = Array(text.utf8)
    let ours = walkError(bytes) == nil
    #expect(Self.foundationReads(bytes) != ours)
    #expect((ours ? Self.whyRefused(bytes) : Self.whyAccepted(bytes)) == difference)
  }

  private static func foundationReads(_ text: [UInt8]) -> Bool {
    (try? JSONDecoder().decode(JSONTree.self, from: Data(text))) != nil
  }

  /// Why Foundation refuses a text that we accept. For numbers the proof is that it accepts the text without them.
  private static func whyRefused(_ text: [UInt8]) -> Difference? {
    do {
      _ = try JSONTree(reading: text)
    } catch {
      return error.kind == .loneSurrogate ? .loneSurrogate : nil
    }
    var changed = text
    var reason: Difference?
    for range in numbers(text).reversed() {
      let number = String(decoding: text[range], as: UTF8.self)
      let mantissa = number.prefix { $0 != "e" && $0 != "E" }
      guard let value = Double(number), value == 0 || value.isInfinite, mantissa.count < number.count else { continue }
      reason = mantissa.contains { ("1"..."9").contains($0) } ? .numberOutOfRange : .zeroWithExponent
      changed.replaceSubrange(range, with: [0x31])
    }
    return foundationReads(changed) ? reason : nil
  }

  /// Why Foundation accepts a text that we refuse. The proof is that we accept it without the comma.
  private static func whyAccepted(_ text: [UInt8]) -> Difference? {
    var changed = text
    while let error = walkError(changed) {
      guard error.kind == .unexpectedByte(0x7d),
        let last = changed[..<error.offset].lastIndex(where: { ![0x20, 0x09, 0x0a, 0x0d].contains($0) }),
        changed[last] == 0x2c
      else { return nil }
      changed.remove(at: last)
    }
    return .commaBeforeClosingBrace
  }

  /// Where the numbers of a valid document are: outside of strings, whatever holds digits.
  private static func numbers(_ text: [UInt8]) -> [Range<Int>] {
    var ranges: [Range<Int>] = []
    var at = 0
    while at < text.count {
      let start = at
      switch text[at] {
      case 0x22:
        at += 1
        while text[at] != 0x22 { at += text[at] == 0x5c ? 2 : 1 }
        at += 1
      case 0x2d, 0x30...0x39:
        while at < text.count, "0123456789.eE+-".utf8.contains(text[at]) { at += 1 }
        ranges.append(start..<at)
      default:
        at += 1
      }
    }
    return ranges
  }
}

extension JSONTree: Decodable {
  init(from decoder: any Decoder) throws {
    if let fields = try? decoder.container(keyedBy: Name.self) {
      var object: [String: JSONTree] = [:]
      for key in fields.allKeys { object[key.stringValue] = try fields.decode(JSONTree.self, forKey: key) }
      self = .object(object)
      return
    }
    if var elements = try? decoder.unkeyedContainer() {
      var array: [JSONTree] = []
      while !elements.isAtEnd { array.append(try elements.decode(JSONTree.self)) }
      self = .array(array)
      return
    }
    let value = try decoder.singleValueContainer()
    if value.decodeNil() {
      self = .null
    } else if let boolean = try? value.decode(Bool.self) {
      self = .boolean(boolean)
    } else if let number = try? value.decode(Double.self) {
      self = .number(number)
    } else {
      self = .string(try value.decode(String.self))
    }
  }

  private struct Name: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }
}
