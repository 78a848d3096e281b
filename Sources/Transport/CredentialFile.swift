import Glibc

/// Reads the small files that hold keys and certificates.
enum CredentialFile {
  /// No key or certificate file comes near this; a wrong path (a log, a device) does.
  private static let limit = 1024 * 1024

  /// - Throws: a `file` error that names the path.
  static func read(_ path: String) throws(TransportError) -> [UInt8] {
    let descriptor: Int32
    switch Syscalls.outcome({ unsafe open(path, O_RDONLY | O_CLOEXEC) }) {
    case .value(let opened): descriptor = opened
    case .failed(let number): throw TransportError(.file, path, "open", errno: number)
    }
    defer { Syscalls.close(descriptor) }
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16 * 1024)
    while true {
      let capacity = chunk.count
      switch Syscalls.outcome({ Int32(clamping: unsafe Glibc.read(descriptor, &chunk, capacity)) }) {
      case .value(0): return content
      case .value(let count): content += chunk[..<Int(count)]
      case .failed(let number): throw TransportError(.file, path, "read", errno: number)
      }
      guard content.count <= limit else { throw TransportError(.file, path, "read: larger than 1 MiB") }
    }
  }
}
