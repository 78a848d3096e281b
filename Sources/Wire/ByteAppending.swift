/// Appending to byte buffers without temporary strings or arrays.
extension Array where Element == UInt8 {
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
    append(addingCapacity: 32) { output in
      let group: UInt64 = 100_000_000
      guard number >= group else { return output.append(leading: UInt32(number)) }
      let high = number / group
      if high < group {
        output.append(leading: UInt32(high))
      } else {
        output.append(leading: UInt32(high / group))
        output.append(word: Words.decimalDigits(UInt32(high % group)))
      }
      output.append(word: Words.decimalDigits(UInt32(number % group)))
    }
  }

  /// Appends the number in decimal digits.
  package mutating func append(decimal number: Int) {
    append(decimal: Int64(number))
  }
}

extension OutputSpan where Element == UInt8 {
  /// Appends a number above 0 and below 100,000,000 in decimal digits.
  @inline(__always)
  fileprivate mutating func append(leading number: UInt32) {
    let digits = Words.decimalDigits(number)
    let zeros = Words.first(digits ^ 0x3030_3030_3030_3030)
    append(word: digits >> UInt64(zeros * 8), length: 8 - zeros)
  }
}
