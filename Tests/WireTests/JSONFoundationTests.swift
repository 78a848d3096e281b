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
  }

  @Test func brokenDocumentsAreJudgedAlikeButForKnownDifferences() {
    var documents = JSONDocuments(seed: 2)
    let decoder = JSONDecoder()
    var good = 0
    var bad = 0
    var differences: [Difference: Int] = [:]
    for _ in 0..<4000 {
      let text = documents.mutated(documents.document(maxDepth: 4))
      let theirs = (try? decoder.decode(JSONTree.self, from: Data(text))) != nil
      let ours = walkError(text) == nil
      if ours { good += 1 } else { bad += 1 }
      guard ours != theirs else { continue }
      if let difference = Self.difference(text), ours {
        differences[difference, default: 0] += 1
      } else {
        Issue.record(
          "ours \(ours), theirs \(theirs): \(String(decoding: text, as: UTF8.self).debugDescription) \(text)")
      }
    }
    #expect(good > 500 && bad > 500, "\(good) good, \(bad) bad")
    print(differences, good, bad)
  }

  /// Found in the text itself, without the scanner's judgement.
  static func difference(_ text: [UInt8]) -> Difference? {
    do {
      _ = try JSONTree(reading: text)
    } catch {
      return error.kind == .loneSurrogate ? .loneSurrogate : nil
    }
    return .numberOutOfRange
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
