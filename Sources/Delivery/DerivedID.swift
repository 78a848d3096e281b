import APNs
package import Wire

/// The `apns-id` of each notification: the same for every attempt and every replay, so that duplicates can be told.
///
/// - An id that is a UUID is taken as it is (APNs is sent the lower-case form).
/// - From any other id, version 5 in `ids` over the id's bytes.
/// - Without an id, version 5 in `sources` over "topic/partition/offset", the numbers in decimal digits.
/// - That is the id of a single request and of a batch's first item. A later item has version 5 over its index in
///   decimal digits, with the first item's id as the namespace.
///
/// None of this may ever change: a replay would carry other ids.
package enum DerivedID {
  /// 055f73ac-fedb-4a3f-b165-5c5c28805568
  package static let ids = UUID(high: 0x055f_73ac_fedb_4a3f, low: 0xb165_5c5c_2880_5568)
  /// 7cc80b77-1554-4eab-85db-48ef1962c23e
  package static let sources = UUID(high: 0x7cc8_0b77_1554_4eab, low: 0x85db_48ef_1962_c23e)

  static func make(
    id: ByteRange?, in bytes: Span<UInt8>, topicName: borrowing [UInt8], partition: Int32, offset: Int64
  ) -> UUID {
    if let id {
      let text = bytes.extracting(id.indices)
      return UUID(text) ?? UUID.derived(from: text, in: ids)
    }
    var hasher = UUID.NameHasher(namespace: sources)
    hasher.append(topicName.span)
    hasher.append(text: "/")
    append(Int64(partition), to: &hasher)
    hasher.append(text: "/")
    append(offset, to: &hasher)
    return hasher.finish()
  }

  /// The id of a batch's item, made from that of the first one.
  package static func make(item: Int, after first: UUID) -> UUID {
    guard item > 0 else { return first }
    var hasher = UUID.NameHasher(namespace: first)
    append(Int64(item), to: &hasher)
    return hasher.finish()
  }

  /// Appends decimal digits without a buffer of its own.
  private static func append(_ number: Int64, to hasher: inout UUID.NameHasher) {
    if number < 0 { hasher.append(text: "-") }
    let magnitude = number.magnitude
    var divisor: UInt64 = 1
    while magnitude / divisor >= 10 { divisor *= 10 }
    while divisor > 0 {
      let digit: InlineArray<1, UInt8> = [0x30 + UInt8(truncatingIfNeeded: magnitude / divisor % 10)]
      hasher.append(digit.span)
      divisor /= 10
    }
  }
}

extension Request {
  /// The `apns-id` of a batch's item; item 0 has that of `notification`.
  package func apnsID(item: Int) -> UUID { DerivedID.make(item: item, after: notification.apnsID) }
}
