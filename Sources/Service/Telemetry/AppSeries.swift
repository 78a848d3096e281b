package import APNs
package import Delivery

/// One number that is kept for each app. The place of each is fixed, so that counting needs no search.
package struct AppSeries: Hashable, Sendable {
  /// Its place in the app's row.
  package var index: Int

  @inlinable init(_ index: Int) { self.index = index }

  /// Numbers in a row, room for growth among them.
  package static let rowLength = 256

  package static let attempts = AppSeries(0)
  /// A notification that may reach APNs a second time: the first attempt's fate is not known.
  package static let resent = AppSeries(1)
  /// A gauge: add when a notification is taken up, subtract when it is settled.
  package static let inFlight = AppSeries(2)
  package static let connectionsOpened = AppSeries(3)
  package static let goAways = AppSeries(4)
  package static let deferred = AppSeries(5)
  /// Parked requests that were taken up again.
  package static let undeferred = AppSeries(6)
  /// A gauge: 1 while most of the app's tokens are called bad.
  package static let suspect = AppSeries(7)

  /// A gauge: requests on connections that have no answer yet.
  package static let openStreams = AppSeries(8)

  /// Notifications that ended, by push type and status.
  package static func notifications(_ status: Ending.Status, _ type: PushType) -> AppSeries {
    AppSeries(128 + Int(type.rawValue) * 5 + status.ordinal)
  }

  /// Notifications that go out again, by cause.
  package static func retries(_ cause: RetryPolicy.Cause) -> AppSeries { AppSeries(16 + cause.ordinal) }
  /// Notifications that ended as failed, by what the last one came to.
  package static func failures(_ cause: RetryPolicy.Cause) -> AppSeries { AppSeries(24 + cause.ordinal) }
  /// A gauge.
  package static func connections(_ state: ConnectionPhase) -> AppSeries { AppSeries(32 + Int(state.rawValue)) }
  /// Connections that ended, by cause.
  package static func connectionsClosed(_ cause: CloseCause) -> AppSeries { AppSeries(40 + Int(cause.rawValue)) }
  /// Device tokens that APNs called dead, by reason.
  package static func invalidTokens(_ reason: TokenEventReason) -> AppSeries { AppSeries(48 + Int(reason.rawValue)) }
  /// Notifications that APNs refused for good, by reason.
  package static func rejections(_ reason: Reason) -> AppSeries { AppSeries(64 + Int(reason.rawValue)) }

  /// The buckets of a histogram begin here; its sum follows them.
  static func histogram(_ latency: AppLatency) -> AppSeries { AppSeries(192 + Int(latency.rawValue) * 32) }
}

/// The spans of time that are measured for each app.
package enum AppLatency: UInt8, CaseIterable, Sendable {
  /// From a request being handed to a connection to APNs' answer.
  case sendToAnswer
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
  /// Another one took its place: it was old, gave errors in a row or no streams, or carried former credentials.
  case replaced

  package var label: String {
    switch self {
    case .unreachable: "unreachable"
    case .tls: "tls"
    case .goAway: "goaway"
    case .lost: "lost"
    case .unresponsive: "unresponsive"
    case .idle: "idle"
    case .shutdown: "shutdown"
    case .replaced: "replaced"
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

extension Ending.Status {
  /// Its place among all.
  var ordinal: Int {
    switch self {
    case .delivered: 0
    case .rejected: 1
    case .expired: 2
    case .failed: 3
    case .invalid: 4
    }
  }
}

extension RetryPolicy.Cause {
  /// Its place among all causes. They are few and cold.
  var ordinal: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
