import APNs
import Wire

// Device tokens that APNs throttles: what else is for them waits.
extension DeliveryMachine {
  /// What the answer says of the token, and not of the app.
  mutating func noteToken(
    _ result: SendResult, _ decision: RetryPolicy.Decision, _ slot: PushSlot, _ app: AppIndex, at moment: Moment
  ) {
    guard case .answered(let response) = result, !pushes[slot].subject.notification.isBroadcast else { return }
    switch response.verdict {
    case .throttled:
      let delay: Duration =
        switch decision {
        case .again(let delay), .park(let delay): delay
        case .end: retryPolicy.backoff(pushes[slot].subject.attempts, &random)
        }
      tokenPauses.pause(tokenKey(of: slot, app), until: moment.instant + delay, now: moment.instant)
    case .delivered, .rejected, .invalidToken:
      if !tokenPauses.isEmpty { tokenPauses.end(tokenKey(of: slot, app)) }
    // They say nothing of the token.
    case .retry, .refreshToken, .replaceConnection, .credentialFault: break
    }
  }

  /// Lets a push wait if its token is left alone: in memory, or for longer waits on the deferred topic. One with an
  /// expiration of 0 is tried at once or never, and one that has waited for
  /// `giveUpAfter` goes out to hear for itself.
  ///
  /// - Returns: whether it waits.
  mutating func awaitToken(_ slot: PushSlot, isDue: Bool, at moment: Moment) -> Bool {
    let notification = pushes[slot].subject.notification
    guard let app = pushes[slot].subject.app, !notification.isBroadcast, notification.expiration != 0,
      !retryPolicy.isGivenUp(takenUpAt: pushes[slot].subject.takenUpAt ?? moment.time, now: moment.time),
      let turn = tokenPauses.wait(tokenKey(of: slot, app), isDue: isDue, now: moment.instant)
    else { return false }
    var wait = turn - moment.instant
    if let expiration = notification.expiration {
      wait = min(wait, .milliseconds(max(0, expiration * 1000 - moment.time.milliseconds)))
    }
    if wait > retryPolicy.longestWait || (wait > .seconds(1) && isCrowded(slot)) {
      becomeBusy(slot)
      park(slot, after: wait, at: moment)
    } else {
      pushes[slot].state = .waiting
      waits.insert(slot, due: moment.instant + wait)
    }
    return true
  }

  private func tokenKey(of slot: PushSlot, _ app: AppIndex) -> UInt64 {
    let notification = pushes[slot].subject.notification
    return TokenPauses.key(app, notification.storage.span.extracting(notification.token.indices))
  }
}
