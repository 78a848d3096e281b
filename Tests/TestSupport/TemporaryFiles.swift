import Glibc

/// A directory of its own for one test; it goes, with all in it, when the value does.
package final class TemporaryFiles: Sendable {
  package let path: String

  package init() throws(SystemFailure) {
    var template = Array("/tmp/martlet-test-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw SystemFailure(code: errno) }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { Self.remove(path) }

  package func path(of name: String) -> String { "\(path)/\(name)" }

  /// Writes a file, whose directory must exist, and gives its path.
  @discardableResult
  package func write(_ name: String, _ text: String) throws(SystemFailure) -> String {
    let file = path(of: name)
    let descriptor = unsafe open(file, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    guard descriptor >= 0 else { throw SystemFailure(code: errno) }
    defer { close(descriptor) }
    let bytes = Array(text.utf8)
    guard unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count else { throw SystemFailure(code: errno) }
    return file
  }

  /// Writes beside the file and moves it over, so that nobody reads half of it.
  @discardableResult
  package func replace(_ name: String, _ text: String) throws(SystemFailure) -> String {
    let new = try write("new", text)
    guard unsafe rename(new, path(of: name)) == 0 else { throw SystemFailure(code: errno) }
    return path(of: name)
  }

  package func makeDirectory(_ name: String) throws(SystemFailure) {
    guard unsafe mkdir(path(of: name), 0o700) == 0 else { throw SystemFailure(code: errno) }
  }

  package func remove(_ name: String) { _ = unsafe unlink(path(of: name)) }

  private static func remove(_ path: String) {
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

/// What the system would not do for a test.
package struct SystemFailure: Error {
  /// An `errno`, or an exit status.
  package var code: Int32

  package init(code: Int32) { self.code = code }
}
