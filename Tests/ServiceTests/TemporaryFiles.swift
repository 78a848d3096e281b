import Glibc

/// A directory of its own for one test; it goes with the value.
final class TemporaryFiles {
  let path: String

  init() throws {
    var template = Array("/tmp/martlet-test-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw Failure(code: errno) }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  struct Failure: Error {
    var code: Int32
  }

  /// Writes a file, whose directory must exist, and gives its path.
  @discardableResult
  func write(_ name: String, _ text: String) throws -> String {
    let file = "\(path)/\(name)"
    let descriptor = unsafe open(file, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    guard descriptor >= 0 else { throw Failure(code: errno) }
    defer { close(descriptor) }
    let bytes = Array(text.utf8)
    guard unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count else { throw Failure(code: errno) }
    return file
  }

  func makeDirectory(_ name: String) throws {
    guard unsafe mkdir("\(path)/\(name)", 0o700) == 0 else { throw Failure(code: errno) }
  }

  deinit { remove(path) }

  private func remove(_ path: String) {
    guard let directory = unsafe opendir(path) else { return }
    var names: [String] = []
    while let entry = unsafe readdir(directory) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    unsafe closedir(directory)
    for name in names where unsafe unlink("\(path)/\(name)") != 0 { remove("\(path)/\(name)") }
    _ = unsafe rmdir(path)
  }
}
