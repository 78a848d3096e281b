internal import FoundationEssentials
internal import Wire

/// Reads the text of one configuration file: JSON5 by Foundation's decoder, with the place of each value put in.
enum ConfigurationDocument {
  /// - Returns: the tree of values, members in the order of the text; `nil` where it is no JSON5, which is noted. A key
  ///   that stands in an object twice is noted too.
  static func read(_ text: [UInt8], _ context: inout ReadingContext) -> ConfigurationValue? {
    // The decoder stops the process at bytes that are no UTF-8, and takes NUL for a sign of another encoding.
    if let offset = firstByteNotText(text) {
      context.report("not UTF-8 text", at: "", offset: offset)
      return nil
    }
    let places = SettingPlaces(text)
    for (path, offset) in places.repeated {
      context.report("this key stands here a second time", at: path, offset: offset)
    }
    if let piece = places.pieces.first(where: { !$0.isKey && stopsDecoder(text[$0.range]) }) {
      context.report(notAValue, at: "", offset: piece.range.lowerBound)
      return nil
    }
    do {
      // Of a broken text, not all values have been looked at.
      if let fault = places.fault, stopsDecoder(text[...]) { throw fault }
      return placed(try decode(text), at: places.root)
    } catch {
      let fault = fault(in: text, places)
      context.report(fault?.message ?? "not valid JSON5", at: "", offset: fault?.offset)
      return nil
    }
  }

  private static let notAValue = "not a valid value; a text needs quotes"

  /// The decoder stops the process at a number with a second "x", such as 0x0x1. No value outside of quotes has two.
  private static func stopsDecoder(_ piece: ArraySlice<UInt8>) -> Bool {
    guard let first = piece.first, first != UInt8(ascii: "\""), first != UInt8(ascii: "'") else { return false }
    return piece.count { $0 | 0x20 == UInt8(ascii: "x") } > 1
  }

  private static func firstByteNotText(_ text: [UInt8]) -> Int? {
    var offset = 0
    while offset < text.count {
      let length = UTF8Text.sequenceLength(in: text.span, at: offset)
      guard length > 0, text[offset] != 0 else { return offset }
      offset += length
    }
    return nil
  }

  /// A key as it is meant, from the way it is written.
  static func key(_ written: ArraySlice<UInt8>) -> String {
    guard let quote = written.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
      return String(decoding: written, as: UTF8.self)
    }
    guard written.contains(UInt8(ascii: "\\")), case .string(let key)? = try? decode(written).content else {
      return String(decoding: written.dropFirst().dropLast(), as: UTF8.self)
    }
    return key
  }

  private static func decode(_ text: some Sequence<UInt8>) throws -> ConfigurationValue {
    let decoder = JSONDecoder()
    decoder.allowsJSON5 = true
    // The decoder reads on where a number ends the text. A digit that happens to lie behind it stops the process.
    return try decoder.decode(ConfigurationValue.self, from: Data(text) + [UInt8(ascii: "\n")])
  }

  /// The first part of a broken text that is at fault, found by giving the decoder each key and value by itself.
  private static func fault(in text: [UInt8], _ places: SettingPlaces) -> SettingPlaces.Fault? {
    for (range, isKey) in places.pieces {
      let piece = isKey ? Array("{".utf8) + text[range] + Array(":0}".utf8) : Array(text[range])
      guard (try? decode(piece)) == nil else { continue }
      let isQuoted = text[range.lowerBound] == UInt8(ascii: "\"") || text[range.lowerBound] == UInt8(ascii: "'")
      let message =
        isKey ? "not a valid key" : isQuoted ? "not a valid text" : notAValue
      return SettingPlaces.Fault(offset: range.lowerBound, message: message)
    }
    return places.fault
  }

  /// Puts the places in. Members without a place come last, by name.
  private static func placed(_ value: ConfigurationValue, at place: SettingPlaces.Place?) -> ConfigurationValue {
    var value = value
    value.offset = place?.value
    switch value.content {
    case .list(var items):
      for index in items.indices {
        let isKnown = index < place?.items.count ?? 0
        items[index] = placed(items[index], at: isKnown ? place?.items[index] : nil)
      }
      value.content = .list(items)
    case .object(var members):
      for index in members.indices {
        let inner = place?.members[members[index].key]
        members[index].keyOffset = inner?.key
        members[index].value = placed(members[index].value, at: inner)
      }
      members.sort { left, right in
        let (first, second) = (left.keyOffset ?? .max, right.keyOffset ?? .max)
        return first == second ? left.key < right.key : first < second
      }
      value.content = .object(members)
    default: break
    }
    return value
  }
}

extension ConfigurationValue: Decodable {
  private struct Key: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  /// Takes whatever stands there; there are no places yet.
  package init(from decoder: any Decoder) throws {
    guard decoder.codingPath.count <= SettingPlaces.deepest else {
      throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "nested too deeply"))
    }
    if try decoder.singleValueContainer().decodeNil() {
      self.init(.null)
    } else if let members = try Self.unless({ try decoder.container(keyedBy: Key.self) }) {
      self.init(
        .object(
          try members.allKeys.map { key in
            ConfigurationMember(key: key.stringValue, value: try members.decode(ConfigurationValue.self, forKey: key))
          }))
    } else if var items = try Self.unless({ try decoder.unkeyedContainer() }) {
      var values: [ConfigurationValue] = []
      while !items.isAtEnd { values.append(try items.decode(ConfigurationValue.self)) }
      self.init(.list(values))
    } else {
      self.init(try Self.scalar(try decoder.singleValueContainer()))
    }
  }

  private static func scalar(_ container: any SingleValueDecodingContainer) throws -> Content {
    if let text = try unless({ try container.decode(String.self) }) { return .string(text) }
    if let bool = try unless({ try container.decode(Bool.self) }) { return .bool(bool) }
    // What is no whole number, or too large for one, may still be a number.
    if let integer = try? container.decode(Int64.self) { return .integer(integer) }
    return .number(try container.decode(Double.self))
  }

  /// `nil` where the value is of another kind; what is broken is an error.
  private static func unless<Value>(_ decode: () throws -> Value) throws -> Value? {
    do {
      return try decode()
    } catch DecodingError.typeMismatch {
      return nil
    }
  }
}
