import Glibc

/// A file that the command line names cannot be read or written.
struct LocalFileError: Error, CustomStringConvertible {
  var path: String
  var number: Int32

  var description: String { unsafe "\(path): \(String(cString: strerror(number)))" }
}

/// Small files that commands read and write.
enum LocalFile {
  /// The whole file.
  static func read(_ path: String) throws(LocalFileError) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw LocalFileError(path: path, number: errno) }
    defer { close(descriptor) }
    return try readAll(descriptor, named: path)
  }

  /// The whole file, or all of standard input where the path is `-`.
  static func readInput(_ path: String) throws(LocalFileError) -> [UInt8] {
    path == "-" ? try readAll(STDIN_FILENO, named: "standard input") : try read(path)
  }

  private static func readAll(_ descriptor: Int32, named path: String) throws(LocalFileError) -> [UInt8] {
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let count = unsafe Glibc.read(descriptor, &chunk, 64 * 1024)
      if count > 0 { content += chunk[..<count] }
      if count == 0 { return content }
      guard count > 0 || errno == EINTR else { throw LocalFileError(path: path, number: errno) }
    }
  }

  /// Replaces the file. `isSecret`: nobody but the owner may read it.
  static func write(_ content: [UInt8], to path: String, isSecret: Bool = false) throws(LocalFileError) {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, isSecret ? 0o600 : 0o644)
    guard descriptor >= 0 else { throw LocalFileError(path: path, number: errno) }
    defer { close(descriptor) }
    var sent = 0
    while sent < content.count {
      let count = unsafe content[sent...].withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 { sent += count }
      guard count > 0 || errno == EINTR else { throw LocalFileError(path: path, number: errno) }
    }
  }

  /// Makes the directory unless it is there.
  static func makeDirectory(_ path: String) throws(LocalFileError) {
    guard unsafe mkdir(path, 0o755) == 0 || errno == EEXIST else { throw LocalFileError(path: path, number: errno) }
  }

  /// A new directory for temporary files, for the owner alone: where `TMPDIR` says, else in `/tmp`, else in memory, which
  /// containers have too whose root cannot be written to.
  ///
  /// - Throws: what keeps it from being made in the first of these places.
  static func makeTemporaryDirectory(
    in places: [String] = unsafe getenv("TMPDIR").map { unsafe [String(cString: $0)] } ?? ["/tmp", "/dev/shm"]
  ) throws(LocalFileError) -> String {
    var fault: LocalFileError?
    for place in places {
      var template = Array("\(place)/martlet-XXXXXX".utf8CString)
      if unsafe mkdtemp(&template) != nil {
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
      }
      fault = fault ?? LocalFileError(path: place, number: errno)
    }
    throw fault ?? LocalFileError(path: "/tmp", number: ENOENT)
  }

  /// Removes a file, and then an empty directory, as far as they are there.
  static func remove(file: String, directory: String) {
    unsafe unlink(file)
    unsafe rmdir(directory)
  }
}

extension Console {
  /// To standard output at once, with a line end: for lines that another program waits for.
  static func announce(_ line: [UInt8]) {
    out(String(decoding: line, as: UTF8.self))
    fflush(nil)
  }
}
