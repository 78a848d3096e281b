internal import Glibc

/// Looks at files that the configuration names, without reading secrets.
package enum FileProbe {
  /// A path that does not depend on the working directory of whoever reads the configuration.
  static func resolve(_ path: String, from directory: String) -> String {
    path.hasPrefix("/") || directory == "." ? path : "\(directory)/\(path)"
  }

  /// Why a file cannot be read; `nil` where it can.
  package static func faultOfReading(file path: String) -> String? {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return fault(errno) }
    guard status.st_mode & S_IFMT != S_IFDIR else { return "a directory, not a file" }
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return fault(errno) }
    close(descriptor)
    return status.st_size == 0 && status.st_mode & S_IFMT == S_IFREG ? "an empty file" : nil
  }

  /// Whether there is a directory of that path, or a link to one.
  package static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// A failure of a system call on a file, in words.
  struct Failure: Error {
    var message: String
  }

  /// A whole file; at most `limit` bytes.
  static func read(_ path: String, atMost limit: Int) throws(Failure) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure(message: fault(errno)) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw Failure(message: fault(errno)) }
      if count == 0 { return bytes }
      bytes.append(contentsOf: chunk.prefix(count))
      guard bytes.count <= limit else { throw Failure(message: "longer than \(Quantity.text(bytes: limit))") }
    }
  }

  /// The content of a small text file without its line end: a password, say. Errors name the file.
  static func line(_ path: String) throws -> String {
    do {
      var text = String(decoding: try read(path, atMost: 65_536), as: UTF8.self)
      while let last = text.last, last.isNewline { text.removeLast() }
      return text
    } catch {
      throw ServiceError(description: "\(path): \(error.message)")
    }
  }

  /// The names in a directory, sorted; hidden ones are left out (Kubernetes keeps its own there).
  static func list(directory path: String) throws(Failure) -> [String] {
    guard let directory = unsafe opendir(path) else { throw Failure(message: fault(errno)) }
    defer { unsafe closedir(directory) }
    var names: [String] = []
    while let entry = unsafe readdir(directory) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names.sorted()
  }

  private static func fault(_ code: Int32) -> String {
    switch code {
    case ENOENT: "no such file"
    case ENOTDIR: "a part of the path is no directory"
    case EACCES, EPERM: "no permission to read it"
    case EISDIR: "a directory, not a file"
    default: "cannot be read (error \(code))"
    }
  }
}
