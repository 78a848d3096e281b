import FuzzTargets
import Glibc
import Testing

/// What the fuzzer found interesting, or wrong once, is played in every run of the tests.
struct CorpusTests {
  private static let root = #filePath.split(separator: "/").dropLast(3).reduce(into: "") { $0 += "/\($1)" }

  /// The inputs of a target, by the names of their files.
  private static func corpus(of target: FuzzTarget) -> [(name: String, bytes: [UInt8])] {
    let directory = "\(root)/Fuzz/Corpus/\(target.rawValue)"
    guard let stream = unsafe opendir(directory) else { return [] }
    defer { unsafe closedir(stream) }
    var files: [(name: String, bytes: [UInt8])] = []
    while let entry = unsafe readdir(stream) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
      }
      if !name.hasPrefix(".") { files.append((name, read("\(directory)/\(name)"))) }
    }
    return files
  }

  private static func read(_ path: String) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 1 << 17)
    let count = unsafe Glibc.read(descriptor, &bytes, bytes.count)
    return Array(bytes.prefix(max(count, 0)))
  }

  @Test(arguments: FuzzTarget.allCases)
  func whatTheFuzzerKeptStillHolds(target: FuzzTarget) {
    let corpus = Self.corpus(of: target)
    #expect(corpus.count >= 10, "Fuzz/Corpus/\(target.rawValue) has \(corpus.count) files")
    for (name, bytes) in corpus {
      #expect(throws: Never.self, "Fuzz/Corpus/\(target.rawValue)/\(name)") { try target.check(bytes) }
    }
  }

  @Test(arguments: FuzzTarget.allCases)
  func noInputIsAnInputToo(target: FuzzTarget) {
    #expect(throws: Never.self) { try target.check([]) }
  }
}
