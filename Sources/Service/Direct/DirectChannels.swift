package import APNs
import Transport
import Wire

/// Manages the broadcast channels of an app, for commands: over a connection to the host that Apple has for it.
package final class DirectChannels: Sendable {
  /// A call that did not do what it was for.
  package struct Failure: Error, Sendable {
    /// What APNs answered, or what came instead of an answer; for people.
    package var message: String
    /// `nil`: there was no answer.
    package var status: UInt16?
    /// The app's credentials or its bundle id are at fault.
    package var isCredentialFault = false
  }

  private let app: AppSettings
  private let runtime: AppRuntime
  private let authority: String
  private let connection: DirectConnection

  /// An app that has a server of its own is asked there, and Apple's are left alone.
  package init(_ app: AppSettings, delivery: DeliverySettings, trace: @escaping DirectTrace) throws(DirectFault) {
    self.app = app
    let apple = APNsEndpoint(app.isSandbox ? .sandbox : .production)
    var server = APNsEndpoint.channels(app.isSandbox ? .sandbox : .production)
    if let own = app.server, own.host != apple.host {
      server = APNsEndpoint(host: own.host, port: UInt16(clamping: own.port))
    }
    authority = server.authority
    runtime = try AppRuntime.direct(app, delivery)
    do {
      connection = try DirectConnection(
        to: Endpoint(host: server.host, port: server.port), of: runtime, trace: trace)
    } catch {
      throw DirectFault(message: error.description)
    }
  }

  /// Makes a channel.
  /// - Returns: its id.
  package func create(storesMessages: Bool) async throws(Failure) -> String {
    let answer = try await perform(.create(storesMessages: storesMessages))
    guard let channel = answer.text(of: "apns-channel-id"), !channel.isEmpty else {
      throw Failure(message: "\(answer.status), but no apns-channel-id", status: answer.status)
    }
    return channel
  }

  /// What is set for a channel.
  package func show(_ channel: String) async throws(Failure) -> ChannelSettings {
    let answer = try await perform(.show(channel))
    do { return try ChannelSettings(answer: answer.body.span) } catch { throw Self.unreadable(answer, error) }
  }

  /// The ids of all channels of the app in its environment.
  package func list() async throws(Failure) -> [String] {
    let answer = try await perform(.list)
    do { return try ChannelSettings.list(answer: answer.body.span) } catch { throw Self.unreadable(answer, error) }
  }

  /// Deletes a channel for good.
  package func delete(_ channel: String) async throws(Failure) { _ = try await perform(.delete(channel)) }

  /// Ends the connection in good order.
  package func close() async { await connection.close() }

  // MARK: A call

  private func perform(_ call: ChannelRequest.Call) async throws(Failure) -> HTTP2Response {
    let request = ChannelRequest(call, bundleID: runtime.bundleID)
    guard let fields = fields(request) else { throw Failure(message: "no provider token could be signed") }
    // What APNs surely did not look at is said once more; anything else might be done twice.
    for isLast in [false, true] {
      switch await connection.send(DirectConnection.Request(shared: fields, body: Bytes(request.body))) {
      case .answered(let answer):
        guard answer.status == request.successStatus else { throw Self.failure(Response(answer)) }
        return answer
      case .refused where !isLast: continue
      case .refused(let cause): throw Failure(message: cause)
      case .unreachable(let error): throw Failure(message: error.description)
      case .lost(let cause): throw Failure(message: cause + Self.afterthought(call))
      case .timedOut: throw Failure(message: "APNs did not answer in time" + Self.afterthought(call))
      }
    }
    throw Failure(message: "APNs did not process the call")
  }

  private static func afterthought(_ call: ChannelRequest.Call) -> String {
    switch call {
    case .create: "; the channel may have been made: look at the list before another try"
    case .delete: "; the channel may be gone"
    case .show, .list: ""
    }
  }

  private static func failure(_ response: Response) -> Failure {
    let isCredentialFault = response.verdict == .credentialFault || response.verdict == .refreshToken
    return Failure(message: response.words, status: response.status, isCredentialFault: isCredentialFault)
  }

  private static func unreadable(_ answer: HTTP2Response, _ error: JSONError) -> Failure {
    Failure(message: "\(answer.status), but its body is not what Apple describes: \(error)", status: answer.status)
  }

  private func fields(_ request: ChannelRequest) -> HeaderList? {
    guard let authorization = runtime.authorization(at: ServiceClock.now()) else { return nil }
    var fields = HeaderList()
    fields.append(name: ":method", value: request.method)
    fields.append(name: ":scheme", value: "https")
    fields.append(name: ":authority", value: authority)
    fields.append(name: ":path", value: request.path)
    if !authorization.isEmpty { fields.append(name: "authorization", value: authorization.span, indexing: .never) }
    var random = SystemRandomNumberGenerator()
    fields.append(name: "apns-request-id", value: UUID.random(using: &random).description)
    if let channel = request.channel { fields.append(name: "apns-channel-id", value: channel) }
    if !request.body.isEmpty { fields.append(name: "content-type", value: "application/json") }
    return fields
  }
}
