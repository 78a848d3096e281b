internal import Delivery

/// What people want to see of one app at a glance.
package struct AppFigures: Sendable {
  /// Notifications that ended, by status.
  package var delivered: Int
  package var rejected: Int
  package var expired: Int
  package var failed: Int
  /// Attempts after the first, for all causes.
  package var retries: Int
  package var inFlight: Int
  package var openConnections: Int
}

extension MetricSnapshot {
  /// - Parameter index: the app's place in the configuration.
  package func figures(ofApp index: Int) -> AppFigures {
    let app = AppIndex(Int32(index))
    return AppFigures(
      delivered: ended(.delivered, app: app), rejected: ended(.rejected, app: app),
      expired: ended(.expired, app: app), failed: ended(.failed, app: app),
      retries: RetryPolicy.Cause.allCases.reduce(0) { $0 + value(.retries($1), app: app) },
      inFlight: value(.inFlight, app: app), openConnections: value(.connections(.open), app: app))
  }
}
