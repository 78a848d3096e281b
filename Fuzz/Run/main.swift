import CLibFuzzer
import FuzzTargets
import Glibc

// `MARTLET_FUZZ_TARGET=json fuzz [what libFuzzer takes]`; made and called by scripts/fuzz. The target is no argument, since
// libFuzzer starts the program again by its own arguments, to merge corpora.

/// One line for whoever looks on, not held back in any buffer: the process may end at once.
private func tell(_ line: String) {
  let bytes = Array("\(line)\n".utf8)
  _ = unsafe write(STDERR_FILENO, bytes, bytes.count)
}

private let target: FuzzTarget = {
  let name = unsafe getenv("MARTLET_FUZZ_TARGET").map { unsafe String(cString: $0) } ?? ""
  guard let target = FuzzTarget(rawValue: name) else {
    tell("MARTLET_FUZZ_TARGET must be one of \(FuzzTarget.allCases.map(\.rawValue).joined(separator: ", "))")
    _exit(64)
  }
  return target
}()

/// Called for each input, on one thread. A trap is libFuzzer's to report, and so is what does not hold. The library's own
/// `main`, which is linked and not used, wants it by this name.
@_cdecl("LLVMFuzzerTestOneInput")
func input(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  let bytes = unsafe Array(UnsafeBufferPointer(start: data, count: size))
  do {
    try target.check(bytes)
  } catch {
    tell("\(target.rawValue): \(error)")
    abort()
  }
  return 0
}

_ = target
var count = CommandLine.argc
var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = unsafe CommandLine.unsafeArgv
exit(unsafe LLVMFuzzerRunDriver(&count, &arguments, input))
