package import APNs
package import Wire

/// What a result, an event, a dead letter or a parked request is about: one notification, and the record it came from.
package struct ResultSubject: Sendable {
  /// `nil` for a record that broke the contract.
  package var app: AppIndex?
  /// The app's name as the record has it; only read where there is no `app`.
  package var appName: ByteRange?
  /// With the item's own token and `apns-id`. Of an invalid record, only the buffer and the token are read.
  package var notification: Notification
  package var id: ByteRange?
  package var key: ByteRange?
  /// The record's value as it stands.
  package var value: ByteRange?
  package var headers: [RecordBody.Header]
  package var source: Source
  /// The name of the source's topic where it is none of those that are read.
  package var sourceTopic: ByteRange?
  /// How often it reached APNs, or may have.
  package var attempts: Int
  /// The record's timestamp, or when it was polled if it has none.
  package var requestedAt: UnixTime
  /// When the request was first taken up; written to what is parked, and nowhere else.
  package var takenUpAt: UnixTime?

  package init(
    app: AppIndex?, appName: ByteRange? = nil, notification: Notification, id: ByteRange?, key: ByteRange?,
    value: ByteRange?, headers: [RecordBody.Header], source: Source, attempts: Int, requestedAt: UnixTime
  ) {
    self.app = app
    self.appName = appName
    self.notification = notification
    self.id = id
    self.key = key
    self.value = value
    self.headers = headers
    self.source = source
    self.attempts = attempts
    self.requestedAt = requestedAt
  }

  /// An item of a request; of a request that is no batch, the request itself.
  package init(_ request: Request, source: Source, attempts: Int, requestedAt: UnixTime) {
    self.init(
      app: request.app, notification: request.notification, id: request.id, key: request.key, value: request.value,
      headers: request.headers, source: source, attempts: attempts, requestedAt: requestedAt)
    sourceTopic = request.deferral?.sourceTopic
    guard request.tokens.indices.contains(Int(source.item)) else { return }
    notification.token = request.tokens[Int(source.item)]
    notification.apnsID = request.apnsID(item: Int(source.item))
  }

  /// The trace that the request belongs to.
  var trace: UUID? { TraceContext.traceID(of: headers, in: notification.storage.span) }

  /// The same without the headers that are no fields of the request's header form.
  func withFieldsOnly() -> ResultSubject {
    var subject = self
    subject.headers = headers.filter { RequestFields.isField($0.name, in: notification.storage.span) }
    return subject
  }

  /// A record that broke the contract.
  package init(_ invalid: InvalidRequest, source: Source, requestedAt: UnixTime) {
    self.init(
      app: nil, appName: invalid.app,
      notification: Notification(
        storage: invalid.body.storage, token: invalid.token ?? .empty, payload: .empty,
        channel: invalid.channel ?? .empty, apnsID: invalid.apnsID),
      id: invalid.id, key: invalid.body.key, value: invalid.body.value, headers: invalid.body.headers,
      source: source, attempts: invalid.deferral?.attempts ?? 0, requestedAt: requestedAt)
    sourceTopic = invalid.deferral?.sourceTopic
  }
}
