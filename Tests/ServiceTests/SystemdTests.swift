import Glibc
import TestSupport
import Testing
import Wire

@testable import Service

/// What systemd would hear, on a socket like its own.
struct SystemdTests {
  @Test
  func theManagerHearsOfStartReloadAndEndInItsOwnWords() throws {
    let listener = try Listener()
    let manager = try #require(
      Systemd(environment: { $0 == "NOTIFY_SOCKET" ? listener.path : nil }, processID: 7))
    manager.ready("All is well")
    manager.reloading(at: Moment(instant: Instant(nanoseconds: 5_000_000_999), time: UnixTime(seconds: 1)))
    manager.stopping(within: .milliseconds(35_500))
    manager.beat()
    #expect(listener.receive() == "READY=1\nSTATUS=All is well")
    #expect(
      listener.receive() == "RELOADING=1\nMONOTONIC_USEC=5000000\nSTATUS=Reading the configuration again")
    #expect(
      listener.receive() == "STOPPING=1\nEXTEND_TIMEOUT_USEC=35500000\nSTATUS=Finishing what is in flight")
    #expect(listener.receive() == "WATCHDOG=1")
    #expect(listener.receive() == nil)
  }

  @Test
  func anAbstractAddressWorksToo() throws {
    let listener = try Listener(isAbstract: true)
    let manager = try #require(Systemd(environment: { $0 == "NOTIFY_SOCKET" ? listener.path : nil }))
    manager.beat()
    #expect(listener.receive() == "WATCHDOG=1")
  }

  @Test
  func withoutASocketNobodyIsTold() {
    let tooLong = "/" + String(repeating: "x", count: 107)
    for address in [nil, "", "relative/path", "vsock:2:1", tooLong] {
      #expect(Systemd(environment: { $0 == "NOTIFY_SOCKET" ? address : nil }) == nil)
    }
  }

  @Test
  func aManagerThatIsGoneDoesNoHarm() throws {
    let manager = try #require(
      Systemd(environment: { $0 == "NOTIFY_SOCKET" ? "/nonexistent/notify" : nil }))
    manager.ready("Nobody hears this")
  }

  @Test(arguments: [
    ("30000000", nil, Duration.seconds(15)),
    ("30000000", "7", .seconds(15)),
    ("30000000", "8", nil),
    ("0", nil, nil),
    ("soon", nil, nil),
    (nil, nil, nil),
  ])
  func itBeatsTwiceInTheWatchdogsTimeIfTheWatchdogIsForIt(
    microseconds: String?, process: String?, expected: Duration?
  ) throws {
    let variables = ["NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": microseconds, "WATCHDOG_PID": process]
    let manager = try #require(Systemd(environment: { variables[$0] ?? nil }, processID: 7))
    #expect(manager.heartbeat == expected)
  }
}

/// A datagram socket that keeps what it is sent.
private final class Listener {
  /// As `NOTIFY_SOCKET` has it.
  let path: String
  private let directory: TemporaryFiles
  private let file: Int32

  init(isAbstract: Bool = false) throws {
    directory = try TemporaryFiles()
    path = (isAbstract ? "@" : "") + directory.path + "/socket"
    file = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    var name = Array(path.utf8)
    if isAbstract { name[0] = 0 }
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: name) }
    let length = 2 + name.count
    let bound = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe bind(file, $0, socklen_t(length)) }
    }
    try #require(bound == 0)
  }

  deinit { close(file) }

  /// The next datagram; `nil`: there is none. What is sent to a Unix socket is there at once.
  func receive() -> String? {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = unsafe recv(file, &buffer, buffer.count, 0)
    return count < 0 ? nil : String(decoding: buffer.prefix(count), as: UTF8.self)
  }
}
