package import APNs

/// How a notification ended: what its result says. Every notification ends exactly once.
package enum Ending: Sendable {
  /// APNs answered 200.
  case delivered(Response)
  /// APNs refused it for good.
  case rejected(Response)
  /// Its expiration passed before APNs took it.
  case expired
  /// Attempts ran out; the last thing that happened to it.
  case failed(SendResult)
  /// It broke the contract and was never sent.
  case invalid(InvalidRule, message: String)

  /// The result's `status`: the bounded set that records and metrics use.
  package enum Status: String, CaseIterable, Sendable {
    case delivered, rejected, expired, failed, invalid
  }

  package var status: Status {
    switch self {
    case .delivered: .delivered
    case .rejected: .rejected
    case .expired: .expired
    case .failed: .failed
    case .invalid: .invalid
    }
  }

  /// What APNs answered last, where it answered.
  package var response: Response? {
    switch self {
    case .delivered(let response), .rejected(let response), .failed(.answered(let response)): response
    case .expired, .failed, .invalid: nil
    }
  }
}
