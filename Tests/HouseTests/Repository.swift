import Glibc

/// The files of this repository, found from where this one stands.
enum Repository {
  /// The directory that holds `Package.swift`.
  static let root = ancestor(of: #filePath, levels: 3)

  /// All Swift files of the program and its tests, read and cut into tokens once.
  static let swiftFiles: [SwiftFile] = ["Sources", "Tests", "Fuzz"].flatMap { files(under: $0) }
    .filter { $0.hasSuffix(".swift") }
    .map { SwiftFile(path: $0, text: read($0)) }

  /// Those of the program.
  static var sources: [SwiftFile] { swiftFiles.filter { $0.isSource } }

  /// Everything that people edit; build products and hidden directories but `.ci` are left out.
  static let allFiles: [String] = entries(of: "").flatMap { name in
    if name.hasPrefix(".") && name != ".ci" { return [String]() }
    return isDirectory(name) ? files(under: name) : [name]
  }

  /// - Returns: paths from the root on, in the order of their names.
  static func files(under directory: String) -> [String] {
    entries(of: directory).flatMap { name in
      let path = "\(directory)/\(name)"
      if isDirectory(path) { return name.hasPrefix(".") || name == "__pycache__" ? [String]() : files(under: path) }
      return [path]
    }
  }

  /// The whole file; empty if it cannot be read, which the rules then notice by its absence.
  static func read(_ path: String) -> [UInt8] {
    let descriptor = unsafe open("\(root)/\(path)", O_RDONLY)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe Glibc.read(descriptor, &chunk, chunk.count)
      guard count > 0 else { return content }
      content += chunk[..<count]
    }
  }

  static func isExecutable(_ path: String) -> Bool { unsafe access("\(root)/\(path)", X_OK) == 0 }

  static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return unsafe stat("\(root)/\(path)", &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  private static func entries(of directory: String) -> [String] {
    guard let stream = unsafe opendir("\(root)/\(directory)") else { return [] }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while let entry = unsafe readdir(stream) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  private static func ancestor(of path: String, levels: Int) -> String {
    path.split(separator: "/").dropLast(levels).reduce(into: "") { $0 += "/\($1)" }
  }
}

/// A place where a rule is broken, and what to do instead.
struct Finding: Equatable, CustomStringConvertible {
  var path: String
  var line: Int
  var text: String

  var description: String { "\(path):\(line): \(text)" }
}

extension [Finding] {
  /// One a line, for the message of a test that fails.
  var list: String { map(\.description).joined(separator: "\n") }
}
