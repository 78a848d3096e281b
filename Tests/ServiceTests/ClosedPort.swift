import Glibc
import TestSupport

/// A port of 127.0.0.1 that belongs to the test: connections are refused, or stay without an answer.
final class ClosedPort {
  let number: UInt16
  private let descriptor: Int32

  /// - Parameter listening: the kernel takes connections, and nobody ever reads from them.
  init(listening: Bool = false) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = descriptor
    let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        unsafe bind(descriptor, pointer, length) == 0 && getsockname(descriptor, pointer, &length) == 0
      }
    }
    number = UInt16(bigEndian: address.sin_port)
    guard isBound, !listening || listen(descriptor, 8) == 0 else { throw SystemFailure(code: errno) }
  }

  deinit { close(descriptor) }
}
