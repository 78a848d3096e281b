/// What decoding and routing must know of an app. Credentials and hosts are not among it.
package struct AppRules: Sendable {
  package enum Environment: String, CaseIterable, Sendable { case production, sandbox }

  package var name: String
  package var bundleID: String
  package var environment: Environment
  /// Added to the record's time for requests that name no expiration; `nil`: none.
  package var defaultExpiration: Duration?

  package init(name: String, bundleID: String, environment: Environment, defaultExpiration: Duration? = nil) {
    self.name = name
    self.bundleID = bundleID
    self.environment = environment
    self.defaultExpiration = defaultExpiration
  }
}
