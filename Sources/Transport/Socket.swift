import Glibc

/// One address the kernel understands: IPv4, IPv6 or a Unix path.
struct SocketAddress: Sendable {
  private var storage = sockaddr_storage()
  private var length = socklen_t(MemoryLayout<sockaddr_storage>.size)

  var family: Int32 { Int32(storage.ss_family) }

  /// Copies an address as the C library gives it.
  @unsafe init(copying address: UnsafePointer<sockaddr>, length: socklen_t) {
    let count = min(Int(length), MemoryLayout<sockaddr_storage>.size)
    unsafe withUnsafeMutableBytes(of: &storage) { storage in
      unsafe storage.copyMemory(from: UnsafeRawBufferPointer(start: address, count: count))
    }
    self.length = socklen_t(count)
  }

  /// A Unix path; nil if it is longer than the kernel allows (107 bytes).
  init?(path: String) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    let room = MemoryLayout.size(ofValue: address.sun_path)
    guard bytes.count < room else { return nil }
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
    unsafe withUnsafeBytes(of: &address) { bytes in
      unsafe withUnsafeMutableBytes(of: &storage) { unsafe $0.copyMemory(from: bytes) }
    }
    length = socklen_t(MemoryLayout<sockaddr_un>.size)
  }

  /// Fills itself by a call such as `getsockname`; nil if the call fails.
  init?(
    filling fill: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32, _ socket: Int32
  ) {
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let status = unsafe withUnsafeMutableBytes(of: &storage) { bytes in
      guard let base = bytes.baseAddress else { return Int32(-1) }
      return unsafe fill(socket, base.assumingMemoryBound(to: sockaddr.self), &length)
    }
    guard status == 0 else { return nil }
    self.length = length
  }

  @unsafe func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    var copy = self.storage
    return unsafe withUnsafeMutableBytes(of: &copy) { bytes in
      // A sockaddr_storage is never empty, so its base address exists.
      guard let base = bytes.baseAddress else { preconditionFailure("a storage of no bytes") }
      return unsafe body(UnsafePointer(base.assumingMemoryBound(to: sockaddr.self)), length)
    }
  }

  /// The address as numbers: host and port; nil for a Unix path.
  var endpoint: Endpoint? {
    var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
    var service = [CChar](repeating: 0, count: 32)
    let status = unsafe withPointer { address, length in
      unsafe getnameinfo(
        address, length, &host, socklen_t(host.count), &service, socklen_t(service.count),
        NI_NUMERICHOST | NI_NUMERICSERV)
    }
    guard status == 0, family != AF_UNIX, let port = UInt16(Self.text(service)) else { return nil }
    return Endpoint(host: Self.text(host), port: port)
  }

  var description: String { endpoint?.description ?? "a local socket" }

  private static func text(_ characters: [CChar]) -> String {
    String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// Calls on non-blocking stream sockets.
enum Socket {
  /// A new socket of an address's family, non-blocking and not inherited by child processes.
  static func make(family: Int32) -> Syscalls.Outcome {
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    return Syscalls.outcome { socket(family, type, 0) }
  }

  /// Begins to connect; `EINPROGRESS` means that the socket will become writable once it is decided.
  static func connect(_ descriptor: Int32, to address: SocketAddress) -> Syscalls.Outcome {
    unsafe address.withPointer { address, length in
      // Not repeated when interrupted: the attempt then goes on by itself, and a second call would fail.
      if unsafe Glibc.connect(descriptor, address, length) == 0 { return .value(0) }
      return .failed(errno == EINTR ? EINPROGRESS : errno)
    }
  }

  /// How a connection attempt ended; 0 is success. Fetching it clears it.
  static func pendingError(_ descriptor: Int32) -> Int32 {
    var number: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &number, &length) == 0 ? number : errno
  }

  static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
    var value = value
    // Options are wishes: a Unix socket refuses those of TCP, and works without.
    _ = unsafe setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  /// What every connection gets: no delay by Nagle's algorithm (whole turns are sent at once), and the kernel's probes,
  /// which free a connection whose peer vanished (the protocols above have faster means of their own).
  static func prepare(_ descriptor: Int32) {
    set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1)
    set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPIDLE, 60)
    set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPINTVL, 15)
    set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPCNT, 4)
  }

  /// Makes `close` reset the connection instead of sending what is left.
  static func resetOnClose(_ descriptor: Int32) {
    var option = linger(l_onoff: 1, l_linger: 0)
    _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
  }

  static func shutdownWriting(_ descriptor: Int32) {
    _ = shutdown(descriptor, Int32(SHUT_WR))
  }

  static func localAddress(_ descriptor: Int32) -> SocketAddress? {
    unsafe SocketAddress(filling: { unsafe getsockname($0, $1, $2) }, descriptor)
  }

  static func peerAddress(_ descriptor: Int32) -> SocketAddress? {
    unsafe SocketAddress(filling: { unsafe getpeername($0, $1, $2) }, descriptor)
  }
}
