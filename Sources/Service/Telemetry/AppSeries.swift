package import APNs
package import Delivery

/// One number that is kept for each app. The place of each is fixed, so that counting needs no search.
package struct AppSeries: Hashable, Sendable {
  /// Its place in the app's row.
  package var index: Int

  @inlinable init(_ index: Int) { self.index = index }

  /// Numbers in a row, room for growth among them.
  package static let rowLength = 128

  package static let attempts = AppSeries(0)
  /// A notification that may reach APNs a second time: the first attempt's fate is not known.
  package static let resent = AppSeries(1)
  /// A gauge: add when a notification is taken up, subtract when it is settled.
  package static let inFlight = AppSeries(2)
  package static let connectionsOpened = AppSeries(3)
  package static let goAways = AppSeries(4)
  package static let providerTokens = AppSeries(5)
  package static let deferred = AppSeries(6)

  package static func notifications(_ status: Ending.Status) -> AppSeries {
    switch status {
    case .delivered: AppSeries(8)
    case .rejected: AppSeries(9)
    case .expired: AppSeries(10)
    case .failed: AppSeries(11)
    case .invalid: AppSeries(12)
    }
  }

  package static func retries(_ cause: RetryCause) -> AppSeries { AppSeries(16 + Int(cause.rawValue)) }
  /// A gauge.
  package static func connections(_ state: ConnectionPhase) -> AppSeries { AppSeries(32 + Int(state.rawValue)) }
  package static func connectionsClosed(_ cause: CloseCause) -> AppSeries { AppSeries(40 + Int(cause.rawValue)) }
  package static func invalidTokens(_ reason: TokenEventReason) -> AppSeries { AppSeries(48 + Int(reason.rawValue)) }
  package static func rejections(_ reason: Reason) -> AppSeries { AppSeries(64 + Int(reason.rawValue)) }
}

/// Why a notification is tried again.
package enum RetryCause: UInt8, CaseIterable, Sendable {
  /// No connection, or the stream never reached APNs.
  case notSent
  /// The connection was lost after the request was sent.
  case connectionLost
  case timedOut
  /// 429 for this device.
  case throttled
  /// A 5xx answer.
  case serverError
  /// The provider token was too old.
  case expiredProviderToken
  case other

  package var label: String {
    switch self {
    case .notSent: "not_sent"
    case .connectionLost: "connection_lost"
    case .timedOut: "timed_out"
    case .throttled: "throttled"
    case .serverError: "server_error"
    case .expiredProviderToken: "expired_provider_token"
    case .other: "other"
    }
  }
}

/// Where in its life a connection to APNs is.
package enum ConnectionPhase: UInt8, CaseIterable, Sendable {
  case connecting, open, draining

  package var label: String {
    switch self {
    case .connecting: "connecting"
    case .open: "open"
    case .draining: "draining"
    }
  }
}

/// Why a connection to APNs ended.
package enum CloseCause: UInt8, CaseIterable, Sendable {
  /// No connection could be made.
  case unreachable
  case tls
  /// APNs said GOAWAY and the last streams ended.
  case goAway
  /// It broke.
  case lost
  /// It answered no PING.
  case unresponsive
  /// The service had no more use for it.
  case idle
  /// The service stops, or the app was removed or changed.
  case shutdown

  package var label: String {
    switch self {
    case .unreachable: "unreachable"
    case .tls: "tls"
    case .goAway: "goaway"
    case .lost: "lost"
    case .unresponsive: "unresponsive"
    case .idle: "idle"
    case .shutdown: "shutdown"
    }
  }
}

/// The reasons of invalid-token events.
package enum TokenEventReason: UInt8, CaseIterable, Sendable {
  case unregistered, expiredToken, badDeviceToken, deviceTokenNotForTopic

  package var label: String {
    switch self {
    case .unregistered: "Unregistered"
    case .expiredToken: "ExpiredToken"
    case .badDeviceToken: "BadDeviceToken"
    case .deviceTokenNotForTopic: "DeviceTokenNotForTopic"
    }
  }
}
