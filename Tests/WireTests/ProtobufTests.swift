import TestSupport
import Testing
import Wire

@Suite struct ProtobufTests {
  private struct Field: Equatable {
    var number: UInt32
    var type: ProtobufReader.WireType
    var content: [UInt8]
  }

  /// Reads a whole message.
  private static func read(_ message: [UInt8]) throws(ProtobufError) -> [Field] {
    var reader = ProtobufReader(message.span, base: 100)
    var fields: [Field] = []
    while let tag = try reader.nextTag() {
      let start = reader.offset
      try reader.skip(tag.wireType)
      fields.append(Field(number: tag.field, type: tag.wireType, content: Array(message[start..<reader.offset])))
    }
    return fields
  }

  @Test func `what is written is read`() throws {
    var writer = ProtobufWriter()
    writer.string(1, "testing")
    writer.integer(2, 150)
    writer.integer(3, -1)
    writer.boolean(536_870_911, true)
    let start = writer.beginMessage(4)
    writer.string(1, String(repeating: "x", count: 200))
    writer.endMessage(from: start)
    // "testing" and 150 are the examples of the format's own documentation.
    #expect(writer.bytes.starts(with: [0x0a, 0x07] + Array("testing".utf8) + [0x10, 0x96, 0x01]))
    let fields = try Self.read(writer.bytes)
    #expect(fields.map(\.number) == [1, 2, 3, 536_870_911, 4])
    #expect(fields[2].content == [UInt8](repeating: 0xff, count: 9) + [1])
    #expect(fields[4].content.count == 2 + 1 + 2 + 200)
    #expect(fields[4].content.prefix(5) == [0xcb, 1, 0x0a, 0xc8, 1])
  }

  @Test func `varints of every length are read`() throws {
    for bits in 0..<64 {
      for value in [UInt64(1) << UInt64(bits), UInt64.max >> UInt64(bits), (UInt64(1) << UInt64(bits)) - 1] {
        var writer = ProtobufWriter()
        writer.integer(1, Int64(bitPattern: value))
        var reader = ProtobufReader(writer.bytes.span)
        let tag = try reader.nextTag()
        #expect(tag?.wireType == .varint)
        #expect(try reader.varint() == value)
        #expect(try reader.nextTag() == nil)
      }
    }
  }

  @Test func `ranges are those of the buffer around the message`() throws {
    var reader = ProtobufReader([0x0a, 2, 0x61, 0x62].span, base: 100)
    _ = try reader.nextTag()
    #expect(try reader.delimited() == ByteRange(102, 104))
  }

  @Test func `text is UTF-8 whatever it is given`() throws {
    var writer = ProtobufWriter()
    writer.string(1, [0x61, 0xff].span)
    #expect(writer.bytes == [0x0a, 4, 0x61, 0xef, 0xbf, 0xbd])
  }

  @Test(arguments: [
    ([0x08], ProtobufError.Kind.unexpectedEnd), ([0x08, 0x80], .unexpectedEnd), ([0x0a], .unexpectedEnd),
    ([0x0a, 2, 0x61], .unexpectedEnd), ([0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], .unexpectedEnd),
    ([0x0d, 1, 2, 3], .unexpectedEnd), ([0x09, 1, 2, 3, 4, 5, 6, 7], .unexpectedEnd), ([0x80], .unexpectedEnd),
    ([0x08, 0x80, 0x00], .overlongVarint), ([0x88, 0x00, 1], .overlongVarint),
    ([0x0a, 0x81, 0x00, 0], .overlongVarint),
    ([0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], .overlongVarint),
    ([0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0x00], .overlongVarint),
    ([0x00, 1], .badFieldNumber), ([0x80, 0x80, 0x80, 0x80, 0x10, 1], .badFieldNumber), ([0x0b], .badWireType(3)),
    ([0x0c], .badWireType(4)), ([0x0e], .badWireType(6)), ([0x0f], .badWireType(7)),
  ])
  func `what breaks the format is refused`(_ message: [UInt8], _ kind: ProtobufError.Kind) {
    let error = #expect(throws: ProtobufError.self) { try Self.read(message) }
    #expect(error?.kind == kind)
  }

  @Test(arguments: [1, 2])
  func `no bytes trap`(_ seed: UInt64) {
    var random = SeededRandom(seed: seed)
    for _ in 0..<20_000 {
      let message = (0..<random.uniform(below: 24)).map { _ in UInt8(random.uniform(below: 256)) }
      do {
        let read = try Self.read(message)
        #expect(read.count <= message.count)
      } catch {
        #expect(!error.description.isEmpty)
      }
    }
  }
}
