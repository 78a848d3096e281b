import Wire

/// Something that a command was given to read and that is wrong: the program ends with 65.
struct InputError: Error, Equatable {
  /// Names what it was read from, and where, what was found and what is allowed.
  var message: String

  init(message: String) { self.message = message }

  /// JSON that is none, with the line and column (both from 1, the column in bytes).
  init(_ error: JSONError, in bytes: [UInt8], of name: String) {
    let before = bytes.prefix(error.offset)
    let line = 1 + before.count { $0 == 0x0a }
    let column = error.offset - (before.lastIndex(of: 0x0a) ?? -1)
    self.init(message: "\(name):\(line):\(column): is not JSON, \(error)")
  }
}
