internal import Glibc

/// How much of the machine this process may use.
enum Processors {
  /// Cores that are online (glibc counts those of the affinity mask), within the container's CPU quota (cgroup v2, `cpu.max`), rounded up; at least 1.
  static var usable: Int {
    var count = sysconf(Int32(_SC_NPROCESSORS_ONLN))
    if let text = try? FileProbe.read("/sys/fs/cgroup/cpu.max", atMost: 256), let quota = quota(text) {
      count = min(count, quota)
    }
    return max(count, 1)
  }

  /// `max 100000` is no quota; `150000 100000` is one and a half cores.
  static func quota(_ text: [UInt8]) -> Int? {
    let words = text.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\n") }
    guard words.count == 2, let allowed = Int(String(decoding: words[0], as: UTF8.self)),
      let period = Int(String(decoding: words[1], as: UTF8.self)), allowed > 0, period > 0
    else { return nil }
    return (allowed + period - 1) / period
  }
}
