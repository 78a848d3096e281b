internal import Glibc
package import Wire

/// What the operating system says of this process at one moment.
package struct ProcessSample: Sendable {
  /// User and system time together.
  package var cpuNanoseconds: Int64
  package var residentBytes: Int
  package var openDescriptors: Int
  package var mostDescriptors: Int
  package var threads: Int
  package var startTime: UnixTime

  package init(
    cpuNanoseconds: Int64, residentBytes: Int, openDescriptors: Int, mostDescriptors: Int, threads: Int,
    startTime: UnixTime
  ) {
    self.cpuNanoseconds = cpuNanoseconds
    self.residentBytes = residentBytes
    self.openDescriptors = openDescriptors
    self.mostDescriptors = mostDescriptors
    self.threads = threads
    self.startTime = startTime
  }

  /// Reads `/proc/self` and the process clock; what cannot be read is 0.
  package static func now(startTime: UnixTime) -> ProcessSample {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return ProcessSample(
      cpuNanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec), residentBytes: residentBytes(),
      openDescriptors: openDescriptors(), mostDescriptors: mostDescriptors(), threads: threads(), startTime: startTime)
  }

  /// The second number of `/proc/self/statm` counts pages.
  private static func residentBytes() -> Int {
    guard let bytes = try? FileProbe.read("/proc/self/statm", atMost: 4096) else { return 0 }
    let fields = bytes.split(separator: UInt8(ascii: " "))
    guard fields.count > 1, let pages = Int(String(decoding: fields[1], as: UTF8.self)) else { return 0 }
    return pages * sysconf(Int32(_SC_PAGESIZE))
  }

  private static func threads() -> Int { (try? FileProbe.list(directory: "/proc/self/task"))?.count ?? 0 }

  private static func mostDescriptors() -> Int {
    var limit = rlimit()
    return unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
      ? Int(clamping: limit.rlim_cur) : 0
  }

  private static func openDescriptors() -> Int {
    guard let names = try? FileProbe.list(directory: "/proc/self/fd") else { return 0 }
    // The listing itself holds one.
    return max(0, names.count - 1)
  }
}
