/// Where to connect or to listen: a host and a port, or the path of a Unix domain socket.
package struct Endpoint: Hashable, Sendable, CustomStringConvertible {
  /// A name, an IPv4 or an IPv6 address (without brackets); for a listener, empty means every IPv4
  /// interface, and `::` those of IPv6 as well.
  package var host: String
  /// 0 lets the kernel choose, for a listener.
  package var port: UInt16
  /// The path of a Unix domain socket; host and port then mean nothing.
  package var path: String?

  package init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }

  package init(unixPath path: String) {
    host = ""
    port = 0
    self.path = path
  }

  /// Reads `host:port`, `[v6]:port`, `:port` or `unix:/path`; nil if it is none of these.
  package init?(parsing text: String) {
    if text.hasPrefix("unix:") {
      let path = String(text.dropFirst(5))
      guard !path.isEmpty else { return nil }
      self.init(unixPath: path)
      return
    }
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
    var host = text[..<colon]
    if host.hasPrefix("[") {
      guard host.hasSuffix("]") else { return nil }
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      return nil
    }
    self.init(host: String(host), port: port)
  }

  package var description: String {
    if let path { return "unix:\(path)" }
    return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }
}
