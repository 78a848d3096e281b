/// A UUID (RFC 9562) as two words, big-endian: comparable, hashable and without an allocation.
package struct UUID: Hashable, Sendable {
  package var high: UInt64
  package var low: UInt64

  @inlinable
  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }
}
