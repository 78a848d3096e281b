import APNs
import Delivery
import Synchronization
import Transport
package import Wire

/// Why a command cannot speak for an app: a key, a certificate or a proxy's secret that is of no use.
package struct DirectFault: Error, Sendable {
  package var message: String
}

/// What became of one push that a command sent straight to APNs; the words are those of the service's results.
package struct DirectResult: Sendable {
  /// The word of a result; what breaks the contract is never sent, and has none.
  package enum Status: String, Sendable {
    case delivered, rejected, expired, failed
  }

  /// The device token in hex, or a broadcast's channel.
  package var recipient: String
  package var isBroadcast: Bool
  package var status: Status
  package var httpStatus: UInt16?
  /// Apple's word; where there was no answer, what happened.
  package var reason: String?
  package var apnsID: String
  package var uniqueID: String?
  /// With 410: since when the token is not good any more.
  package var unregisteredAt: UnixTime?
  package var topic: String
  package var pushType: String
  /// How often it was sent, or may have been.
  package var attempts: Int
  /// What was not done, and why; for people.
  package var hint: String?
  /// Whether the app's credentials or topic are at fault, not this push.
  package var isCredentialFault = false
}

/// Sends pushes straight to APNs over one connection, for commands: the service's own rules, headers and judgements,
/// without Kafka.
///
/// Each push is tried again as in the service, but no wait is longer than `longestWait`, and where no connection can be
/// made, that counts as an attempt.
package final class DirectPush: Sendable {
  /// Longer waits are not waited for: the push ends as failed, and `hint` says what APNs asks for.
  package static let longestWait: Duration = .seconds(30)
  /// Pushes that are on their way at one time.
  private static let mostAtOnce = 100

  private let app: AppSettings
  private let runtime: AppRuntime
  private let connection: DirectConnection
  private let policy: RetryPolicy
  private let trace: DirectTrace
  private let sentNames = Mutex(SentNames())

  /// - Parameters:
  ///   - app: whose credentials and server are used.
  ///   - delivery: the times of requests, connections and retries.
  ///   - attempts: the most for each push.
  ///   - trace: hears what happens on the connection.
  package init(
    _ app: AppSettings, delivery: DeliverySettings, attempts: Int, trace: @escaping DirectTrace
  ) throws(DirectFault) {
    self.app = app
    self.trace = trace
    runtime = try AppRuntime.direct(app, delivery)
    do { connection = try DirectConnection(of: runtime, trace: trace) } catch {
      throw DirectFault(message: error.description)
    }
    var policy = RetryPolicy()
    policy.attempts = attempts
    policy.longestWait = Self.longestWait
    self.policy = policy
  }

  /// What is wrong with a request in its JSON form, what the app's certificate does not allow included; `nil`: nothing.
  package func fault(of value: [UInt8]) -> String? {
    var judge = RequestJudge(app, runtime)
    return judge.fault(of: value)
  }

  /// Sends every push of a request in its JSON form.
  ///
  /// - Parameters:
  ///   - value: the request, as the value of a record would be.
  ///   - each: hears of each push's end, as it comes, one call at a time.
  /// - Precondition: `fault(of:)` has found nothing in it.
  package func send(_ value: [UInt8], each: (DirectResult) -> Void) async {
    var judge = RequestJudge(app, runtime)
    guard case .request(let request) = judge.decode(RecordBody(key: nil, value: value), now: ServiceClock.now()) else {
      return
    }
    let pushes = request.tokens.isEmpty ? [request.notification] : request.tokens.indices.map { request.item($0) }
    await withTaskGroup(of: DirectResult.self) { group in
      for (index, push) in pushes.enumerated() {
        if index >= Self.mostAtOnce, let result = await group.next() { each(result) }
        group.addTask { await self.deliver(push) }
      }
      for await result in group { each(result) }
    }
  }

  /// Ends the connection in good order.
  package func close() async { await connection.close() }

  // MARK: One push

  /// One attempt and how it ended.
  private struct Attempt {
    var result: SendResult
    /// For people.
    var text: String
    /// Another one cannot fare better.
    var isFinal = false

    var response: Response? { if case .answered(let response) = result { response } else { nil } }
  }

  private func deliver(_ push: Notification) async -> DirectResult {
    var facts = RetryPolicy.Facts(
      attempts: 0, unsent: 0, expiration: push.expiration, takenUpAt: ServiceClock.now().time)
    var random = SystemRandomNumberGenerator()
    while !RetryPolicy.isExpired(push.expiration, now: ServiceClock.now().time) {
      let attempt = await attempt(push)
      if case .notSent = attempt.result { facts.unsent += 1 } else { facts.attempts += 1 }
      let isUsedUp = attempt.isFinal || facts.unsent + facts.attempts >= policy.attempts
      switch policy.decide(attempt.result, facts, now: ServiceClock.now().time, using: &random) {
      case .end(let ending): return end(push, DirectResult.Status(ending.status), facts, attempt)
      case .again where isUsedUp, .park where isUsedUp: return end(push, .failed, facts, attempt)
      case .again(let delay):
        trace(.again(after: delay, cause: attempt.text))
        await connection.wait(for: delay)
      case .park(let delay):
        var result = end(push, .failed, facts, attempt)
        result.hint = "not tried again, because the next attempt should wait for \(delay.components.seconds) s"
        return result
      }
    }
    return end(push, .expired, facts, nil)
  }

  private func attempt(_ push: Notification) async -> Attempt {
    guard let request = request(of: push) else {
      return Attempt(result: .notSent(.credentials), text: "no provider token could be signed", isFinal: true)
    }
    switch await connection.send(request) {
    case .answered(let answer):
      let response = Response(answer)
      if response.verdict == .refreshToken || response.verdict == .replaceConnection { connection.replace() }
      return Attempt(result: .answered(response), text: response.words)
    case .unreachable(let error):
      return Attempt(
        result: .notSent(SendFailure(ConnectionFailure(error))), text: error.description,
        isFinal: error.grade == .configuration)
    case .refused(let cause): return Attempt(result: .notSent(.streamRefused), text: cause)
    case .lost(let cause): return Attempt(result: .lost(.connectionClosed), text: cause)
    case .timedOut: return Attempt(result: .timedOut, text: "APNs did not answer in time; it may have taken it")
    }
  }

  /// - Returns: `nil` if there is no provider token that may be sent.
  private func request(of push: Notification) -> DirectConnection.Request? {
    guard let authorization = runtime.authorization(at: ServiceClock.now()) else { return nil }
    let shared = SharedHeaders(
      of: push, bundleID: runtime.bundleID, authority: runtime.authority, authorization: authorization)
    var first = HeaderWriter()
    RequestHeaders.addPseudoHeaders(shared, to: &first)
    RequestHeaders.addShared(shared, to: &first)
    var own = HeaderWriter()
    RequestHeaders.addPath(push, to: &own)
    sentNames.withLock { RequestHeaders.addOwn(push, sentNames: &$0, to: &own) }
    return DirectConnection.Request(
      shared: first.list, own: own.list, body: Bytes(push.storage, push.payload))
  }

  private func end(
    _ push: Notification, _ status: DirectResult.Status, _ facts: RetryPolicy.Facts, _ last: Attempt?
  ) -> DirectResult {
    func text(_ range: ByteRange) -> String { String(decoding: push.storage[range.indices], as: UTF8.self) }
    let response = last?.response
    var result = DirectResult(
      recipient: text(push.isBroadcast ? push.channel : push.token), isBroadcast: push.isBroadcast, status: status,
      httpStatus: response?.status, apnsID: push.apnsID.description, uniqueID: response?.uniqueID,
      unregisteredAt: response?.timestamp,
      topic: push.topic.isEmpty ? push.pushType.topic(bundleID: runtime.bundleID) : text(push.topic),
      pushType: push.pushType == .other ? text(push.pushTypeName) : push.pushType.name, attempts: facts.attempts)
    result.reason = response == nil ? last?.text : response?.reasonText
    result.isCredentialFault = response?.verdict == .credentialFault || response?.verdict == .refreshToken
    if response?.verdict == .refreshToken {
      result.hint = "the provider token was signed just now: is the clock of this machine right?"
    }
    return result
  }
}

extension DirectResult.Status {
  /// What was never sent because it breaks the contract does not come this far.
  init(_ status: Ending.Status) {
    switch status {
    case .delivered: self = .delivered
    case .rejected: self = .rejected
    case .expired: self = .expired
    case .failed, .invalid: self = .failed
    }
  }
}

extension Request {
  /// One item of a batch as a push of its own.
  fileprivate func item(_ index: Int) -> Notification {
    var push = notification
    push.token = tokens[index]
    push.apnsID = apnsID(item: index)
    return push
  }
}

extension AppRuntime {
  /// What an app's connections need, outside of a running service.
  static func direct(_ app: AppSettings, _ delivery: DeliverySettings) throws(DirectFault) -> AppRuntime {
    var loader = AppLoader(delivery: delivery, laneCount: 1)
    switch loader.load(app, [:]) {
    case .success(let runtime): return runtime
    case .failure(let fault): throw DirectFault(message: fault.text)
    }
  }

  /// The value of `authorization`, empty where a certificate takes its place; `nil` if no token could be signed.
  func authorization(at now: Moment) -> [UInt8]? {
    guard case .token(let source) = credentials else { return [] }
    return source.current(at: now)?.authorization
  }
}

extension Response {
  /// The status and Apple's word.
  var words: String { "\(status)\(reasonText.map { " \($0)" } ?? "")" }
}
