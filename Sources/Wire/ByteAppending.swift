/// Appending to byte buffers without temporary strings or arrays.
extension Array where Element == UInt8 {
  /// Appends a copy of the bytes.
  package mutating func append(span: Span<UInt8>) {
    append(addingCapacity: span.count) { output in
      for index in span.indices { output.append(span[index]) }
    }
  }

  /// Appends the text's UTF-8.
  package mutating func append(text: String) {
    append(contentsOf: text.utf8)
  }

  /// Appends the scalar's UTF-8.
  package mutating func append(scalar: Unicode.Scalar) {
    if scalar.isASCII {
      append(UInt8(truncatingIfNeeded: scalar.value))
    } else {
      append(contentsOf: scalar.utf8)
    }
  }

  /// Appends the number in decimal digits, with "-" before it if it is negative.
  package mutating func append(decimal number: Int64) {
    if number < 0 { append(0x2d) }
    append(decimal: number.magnitude)
  }

  /// Appends the number in decimal digits.
  package mutating func append(decimal number: UInt64) {
    guard number > 9 else {
      append(0x30 + UInt8(truncatingIfNeeded: number))
      return
    }
    var digits = InlineArray<20, UInt8>(repeating: 0)
    var first = 20
    var left = number
    while left > 0 {
      let (quotient, remainder) = left.quotientAndRemainder(dividingBy: 10)
      first -= 1
      digits[first] = 0x30 + UInt8(truncatingIfNeeded: remainder)
      left = quotient
    }
    append(span: digits.span.extracting(first..<20))
  }

  /// Appends the number in decimal digits.
  package mutating func append(decimal number: Int) {
    append(decimal: Int64(number))
  }
}
