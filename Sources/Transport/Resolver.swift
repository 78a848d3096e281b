import Glibc
import Synchronization

/// Looks up host names with the system's resolver, on threads of its own because `getaddrinfo` blocks.
///
/// Each call asks anew (Apple wants fresh addresses); only callers that wait for the same name at the same time share one
/// lookup, which also bounds the threads by the number of names.
enum Resolver {
  typealias Answer = Result<[SocketAddress], TransportError>

  private struct Waiter {
    var loop: EventLoop
    var deliver: @Sendable (Answer) -> Void
  }

  private struct Question: Hashable {
    var host: String
    var port: UInt16
  }

  private struct State {
    var waiting: [Question: [Waiter]] = [:]
    /// Where the next caller starts in the addresses of a host.
    var offsets: [String: Int] = [:]
  }

  private static let state = Mutex(State())
  /// Hosts whose offset is remembered; they are few (the configuration names them), so forgetting all is fine.
  private static let rememberedHosts = 1024

  /// Looks `host` up and delivers the addresses, in the order to try them, on `loop`. Numbers need no thread; they too
  /// are delivered later, never inside this call.
  /// - Parameter system: the blocking call, made on a thread of its own.
  static func resolve(
    _ host: String, port: UInt16, on loop: EventLoop,
    asking system: @escaping @Sendable (_ host: String, _ port: UInt16) -> Answer = { lookUp($0, $1, flags: 0) },
    _ deliver: @escaping @Sendable (Answer) -> Void
  ) {
    if case .success(let addresses) = lookUp(host, port, flags: AI_NUMERICHOST) {
      loop.execute { deliver(.success(addresses)) }
      return
    }
    let question = Question(host: host, port: port)
    let first = state.withLock { state in
      state.waiting[question, default: []].append(Waiter(loop: loop, deliver: deliver))
      return state.waiting[question]?.count == 1
    }
    guard first else { return }
    do {
      try NativeThread.start("resolver") { answer(question, system(host, port)) }.detach()
    } catch {
      answer(question, .failure(error))
    }
  }

  private static func answer(_ question: Question, _ answer: Answer) {
    let waiters = state.withLock { $0.waiting.removeValue(forKey: question) ?? [] }
    for waiter in waiters {
      let rotated = answer.map { interleaved($0, startingAt: nextOffset(of: question.host)) }
      waiter.loop.execute { waiter.deliver(rotated) }
    }
  }

  private static func nextOffset(of host: String) -> Int {
    state.withLock { state in
      if state.offsets.count >= rememberedHosts { state.offsets.removeAll() }
      let offset = state.offsets[host, default: 0]
      state.offsets[host] = offset &+ 1
      return offset
    }
  }

  /// The blocking call.
  static func lookUp(_ host: String, _ port: UInt16, flags: Int32) -> Answer {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    unsafe hints.ai_flags = flags | AI_NUMERICSERV
    var list: UnsafeMutablePointer<addrinfo>?
    let status = unsafe getaddrinfo(host, String(port), &hints, &list)
    defer { if let list = unsafe list { unsafe freeaddrinfo(list) } }
    guard status == 0 else {
      let cause = unsafe status == EAI_SYSTEM ? Syscalls.describe(errno) : String(cString: gai_strerror(status))
      return .failure(TransportError(.resolve, host, "look-up: \(cause)", code: UInt(status.magnitude)))
    }
    var addresses: [SocketAddress] = []
    var entry = unsafe list
    while let current = unsafe entry {
      if let address = unsafe current.pointee.ai_addr {
        unsafe addresses.append(SocketAddress(copying: address, length: current.pointee.ai_addrlen))
      }
      unsafe entry = current.pointee.ai_next
    }
    guard !addresses.isEmpty else { return .failure(TransportError(.resolve, host, "look-up: no addresses")) }
    return .success(addresses)
  }

  /// Addresses to listen at; blocks if `host` is a name. An empty host means every IPv4 interface; `::` means those of
  /// IPv6 as well.
  static func passiveAddresses(of host: String, port: UInt16) throws(TransportError) -> [SocketAddress] {
    try lookUp(host.isEmpty ? "0.0.0.0" : host, port, flags: AI_PASSIVE).get()
  }

  /// The order of RFC 8305, section 4, in simple form: each family rotated so that the connections of one host spread
  /// over its addresses, then the families in turn, beginning with the one the system prefers.
  static func interleaved(_ addresses: [SocketAddress], startingAt offset: Int) -> [SocketAddress] {
    guard let preferred = addresses.first?.family else { return [] }
    let first = rotated(addresses.filter { $0.family == preferred }, by: offset)
    let second = rotated(addresses.filter { $0.family != preferred }, by: offset)
    var ordered: [SocketAddress] = []
    for index in 0..<max(first.count, second.count) {
      if index < first.count { ordered.append(first[index]) }
      if index < second.count { ordered.append(second[index]) }
    }
    return ordered
  }

  private static func rotated(_ addresses: [SocketAddress], by offset: Int) -> [SocketAddress] {
    guard !addresses.isEmpty else { return [] }
    let start = Int(UInt(bitPattern: offset) % UInt(addresses.count))
    return Array(addresses[start...] + addresses[..<start])
  }
}
