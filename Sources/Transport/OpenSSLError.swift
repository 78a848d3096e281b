import COpenSSL

/// What OpenSSL left in this thread's error queue.
struct OpenSSLError {
  /// The packed code of the first error, the one nearest to the cause; 0 if there was none.
  var code: UInt
  var library: Int32
  var reason: Int32
  /// The cause in OpenSSL's words.
  var text: String

  /// Takes the first error and empties the queue; a leftover would be blamed on the thread's next call.
  static func take() -> OpenSSLError {
    let code = ERR_get_error()
    ERR_clear_error()
    var text = "unknown error"
    if let words = unsafe ERR_reason_error_string(code) {
      text = unsafe String(cString: words)
    } else if code != 0 {
      text = "error \(String(code, radix: 16))"
    }
    return OpenSSLError(code: code, library: ERR_GET_LIB(code), reason: ERR_GET_REASON(code), text: text)
  }

  /// The error as one of ours.
  static func take(_ kind: TransportError.Kind, _ subject: String, _ doing: String) -> TransportError {
    let error = take()
    return TransportError(kind, subject, "\(doing): \(error.text)", code: error.code)
  }
}

/// A memory BIO: bytes that OpenSSL reads from or writes to.
@safe
struct MemoryBIO: ~Copyable {
  let handle: OpaquePointer

  /// An empty one, to write to.
  init() throws(TransportError) {
    guard let handle = unsafe BIO_new(BIO_s_mem()) else { throw OpenSSLError.take(.system, "", "BIO_new") }
    unsafe self.handle = handle
  }

  /// A copy of `bytes`, to read from.
  init(_ bytes: [UInt8]) throws(TransportError) {
    guard let handle = unsafe BIO_new(BIO_s_mem()) else { throw OpenSSLError.take(.system, "", "BIO_new") }
    let written = unsafe bytes.withUnsafeBytes { unsafe BIO_write(handle, $0.baseAddress, Int32(clamping: $0.count)) }
    guard written == bytes.count || bytes.isEmpty else {
      unsafe BIO_free(handle)
      throw OpenSSLError.take(.system, "", "BIO_write")
    }
    unsafe self.handle = handle
  }

  deinit { unsafe BIO_free(handle) }

  /// What was written to it.
  var bytes: [UInt8] {
    var data: UnsafeMutablePointer<CChar>?
    let count = unsafe martlet_BIO_get_mem_data(handle, &data)
    guard let data = unsafe data, count > 0 else { return [] }
    return unsafe Array(UnsafeRawBufferPointer(start: data, count: count))
  }
}
