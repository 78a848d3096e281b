/// A stretch of some buffer: two 32-bit offsets, so that a value can carry many of them cheaply.
///
/// It does not know its buffer; whoever pairs the two is in charge of that. Buffers are under 4 GiB.
package struct ByteRange: Hashable, Sendable {
  package var start: UInt32
  package var end: UInt32

  package static let empty = ByteRange(start: 0, end: 0)

  @inlinable
  package init(start: UInt32, end: UInt32) {
    self.start = start
    self.end = end
  }

  @inlinable
  package init(_ start: Int, _ end: Int) {
    self.start = UInt32(start)
    self.end = UInt32(end)
  }

  @inlinable package var count: Int { Int(end) - Int(start) }
  @inlinable package var isEmpty: Bool { start == end }
  @inlinable package var indices: Range<Int> { Int(start)..<Int(end) }
}

/// Bytes that are owned together with the buffer they lie in: what is handed from stage to stage without a copy.
package struct Bytes: Sendable {
  package var storage: [UInt8]
  package var range: ByteRange

  package init(_ storage: [UInt8]) {
    self.storage = storage
    self.range = ByteRange(0, storage.count)
  }

  package init(_ text: some StringProtocol) {
    self.init(Array(text.utf8))
  }

  /// - Precondition: `range` lies within `storage`.
  package init(_ storage: [UInt8], _ range: ByteRange) {
    precondition(Int(range.end) <= storage.count && range.start <= range.end)
    self.storage = storage
    self.range = range
  }

  package var count: Int { range.count }
  package var isEmpty: Bool { range.isEmpty }

  /// The bytes, borrowed; no copy.
  package var span: Span<UInt8> {
    @_lifetime(borrow self)
    borrowing get { storage.span.extracting(range.indices) }
  }

  /// The bytes as a buffer of their own.
  package var array: [UInt8] { Array(storage[range.indices]) }

  /// The bytes read as UTF-8, with invalid sequences replaced; for people and messages, never for the wire.
  package var text: String { String(decoding: storage[range.indices], as: UTF8.self) }
}
