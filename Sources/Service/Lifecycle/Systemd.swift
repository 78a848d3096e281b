internal import Glibc
package import Wire

/// What systemd, or another service manager that speaks its protocol, is told about the service: sd_notify(3).
///
/// It says where with `NOTIFY_SOCKET`, the address of a datagram socket, and `WATCHDOG_USEC`, the time within which it
/// wants to hear from the service again. Without the first nobody asks, and nothing is sent. What cannot be sent is
/// dropped: the manager notices by itself that it hears nothing.
package struct Systemd: Sendable {
  /// The longest address that fits: `sun_path` of unix(7) without its final zero.
  private static let longestAddress = 107

  /// The datagram socket's address: a path, or `@` and an abstract name.
  private let address: String
  /// How often the manager must hear that the service is alive, halved so that one delay does no harm; `nil`: it does
  /// not ask.
  package let heartbeat: Duration?

  /// - Parameters:
  ///   - environment: the value of an environment variable.
  ///   - processID: the variables may be inherited; the watchdog's are for the process of this number.
  /// - Returns: `nil` where no manager asks.
  package init?(
    environment: (String) -> String? = SettingsLoader.processEnvironment, processID: Int32 = getpid()
  ) {
    guard let address = environment("NOTIFY_SOCKET"), address.hasPrefix("/") || address.hasPrefix("@"),
      address.utf8.count <= Self.longestAddress
    else { return nil }
    self.address = address
    let isMeant = environment("WATCHDOG_PID").map { $0 == String(processID) } ?? true
    let period = isMeant ? environment("WATCHDOG_USEC").flatMap(Int64.init) : nil
    heartbeat = period.flatMap { $0 > 0 ? .microseconds($0) / 2 : nil }
  }

  /// The service runs; a reload, if that is what came before, is over.
  package func ready(_ status: String) { send("READY=1\nSTATUS=\(status)") }

  /// The configuration is being read again; `ready` follows.
  ///
  /// - Parameter now: by the monotonic clock the manager tells this reload from an earlier one.
  package func reloading(at now: Moment) {
    send("RELOADING=1\nMONOTONIC_USEC=\(now.instant.nanoseconds / 1000)\nSTATUS=Reading the configuration again")
  }

  /// The service drains.
  ///
  /// - Parameter within: how long that may take, from now on, whatever patience the manager has.
  package func stopping(within: Duration) {
    send("STOPPING=1\nEXTEND_TIMEOUT_USEC=\(within.nanoseconds / 1000)\nSTATUS=Finishing what is in flight")
  }

  /// The service is alive.
  package func beat() { send("WATCHDOG=1") }

  /// Beats for as long as the service's loops turn, until it has ended; a loop that is stuck has the manager end it.
  package func watch(_ service: Service) async {
    guard let heartbeat else { return }
    for await _ in service.ticks(every: heartbeat) where service.isAlive { beat() }
  }

  private func send(_ text: String) {
    let file = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard file >= 0 else { return }
    defer { close(file) }
    var target = sockaddr_un()
    target.sun_family = sa_family_t(AF_UNIX)
    // An abstract name begins with a zero byte, which is not there in text.
    var name = Array(address.utf8)
    if name.first == UInt8(ascii: "@") { name[0] = 0 }
    unsafe withUnsafeMutableBytes(of: &target.sun_path) { path in unsafe path.copyBytes(from: name) }
    // The length tells how long an abstract name is.
    let length = MemoryLayout<sockaddr_un>.offset(of: \.sun_path).map { $0 + name.count } ?? 0
    let bytes = Array(text.utf8)
    _ = unsafe withUnsafePointer(to: &target) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        unsafe sendto(file, bytes, bytes.count, Int32(MSG_NOSIGNAL), address, socklen_t(length))
      }
    }
  }
}
