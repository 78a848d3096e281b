/// Where APNs is reached (Apple, "Sending notification requests to APNs").
package struct APNsEndpoint: Hashable, Sendable {
  /// Apple's two worlds; a device token belongs to one of them.
  package enum Environment: String, CaseIterable, Sendable {
    case production
    /// Apple calls it "development" too.
    case sandbox
  }

  /// A DNS name or an address, without brackets.
  package var host: String
  package var port: UInt16

  /// The usual port.
  package static let defaultPort: UInt16 = 443

  package init(host: String, port: UInt16 = APNsEndpoint.defaultPort) {
    self.host = host
    self.port = port
  }

  /// Apple's own server for an environment.
  package init(_ environment: Environment, port: UInt16 = APNsEndpoint.defaultPort) {
    switch environment {
    case .production: self.init(host: "api.push.apple.com", port: port)
    case .sandbox: self.init(host: "api.sandbox.push.apple.com", port: port)
    }
  }

  /// Where the channels of broadcasts are managed (Apple, "Sending channel management requests to APNs").
  package static func channels(_ environment: Environment) -> APNsEndpoint {
    switch environment {
    case .production: APNsEndpoint(host: "api-manage-broadcast.push.apple.com", port: 2196)
    case .sandbox: APNsEndpoint(host: "api-manage-broadcast.sandbox.push.apple.com", port: 2195)
    }
  }

  /// The value of `:authority`: the port is named unless it is that of HTTPS (RFC 9113, section 8.3.1), and an IPv6
  /// address stands in brackets.
  package var authority: String {
    let name = host.utf8.contains(0x3a) ? "[\(host)]" : host
    return port == 443 ? name : "\(name):\(port)"
  }
}
