import APNs
import Delivery
package import Wire

/// Judges requests by the rules of the service without Kafka or APNs: for commands that make requests themselves.
///
/// It is the service's own decoder, so that what it takes, the service takes. A value, for one thread.
package struct RequestJudge: Sendable {
  private var decoder = RequestDecoder(topics: [""], deferredTopic: nil)
  private let apps: AppTable
  private let names: [String]

  /// - Parameter apps: the apps that requests may name.
  package init(apps: [AppSettings]) {
    self.apps = AppTable(apps.map { AppRules($0) })
    names = apps.map(\.name)
  }

  /// The same for an app whose credentials are loaded, and are looked at too.
  init(_ app: AppSettings, _ runtime: AppRuntime) {
    apps = AppTable([AppRules(app, runtime)])
    names = [app.name]
  }

  /// What is wrong with a request that the service would refuse, or in a batch with its first malformed item: the
  /// field, the rule and what was found. `nil`: it would be taken, every item of it.
  package mutating func fault(of body: RecordBody) -> String? {
    switch decode(body, now: ServiceClock.now()) {
    case .request(let request): request.invalidItems.first?.violation.message
    case .invalid(let invalid): withNearest(invalid.message)
    case .tombstone: "the value: is null, where a request must be"
    }
  }

  /// The same for a request in its JSON form.
  package mutating func fault(of value: [UInt8]) -> String? {
    fault(of: RecordBody(key: nil, value: value))
  }

  /// What a record would be to the service.
  package enum Judgement: Sendable {
    /// It would be taken. `key` is the token, or the channel of a broadcast; `nil` for several tokens. The ranges are
    /// of `storage`.
    case good(storage: [UInt8], value: ByteRange, key: ByteRange?, unknownFields: Int)
    /// The field, the rule and what was found.
    case refused(String)
  }

  /// The same as `fault`, with what is needed to publish it.
  package mutating func judge(_ body: RecordBody) -> Judgement {
    switch decode(body, now: ServiceClock.now()) {
    case .request(let request):
      if let item = request.invalidItems.first { return .refused(item.violation.message) }
      let push = request.notification
      let key = push.channel.isEmpty ? push.token : push.channel
      return .good(
        storage: push.storage, value: request.value, key: request.tokens.isEmpty ? key : nil,
        unknownFields: request.unknownFields)
    case .invalid(let invalid): return .refused(withNearest(invalid.message))
    case .tombstone: return .refused("the value: is null, where a request must be")
    }
  }

  /// Adds the name that was probably meant. The service itself does not look for one: a flood of wrong names must not
  /// cost it more than right ones.
  private func withNearest(_ message: String) -> String {
    let known: [String]
    switch message.prefix(while: { $0 != ":" }) {
    case "app": known = names
    case "push_type": known = PushType.allCases.filter { $0 != .other }.map(\.name)
    default: return message
    }
    let parts = message.split(separator: "; found \"", maxSplits: 1)
    guard parts.count == 2, parts[1].hasSuffix("\""),
      let nearest = NearestName.find(String(parts[1].dropLast()), in: known)
    else { return message }
    return "\(message), did you mean \(nearest)?"
  }

  mutating func decode(_ body: RecordBody, now: Moment) -> Decoded {
    let record = Record(
      source: PartitionID(topic: 0, partition: 0), offset: 0, timestamp: now.time, body: body)
    return decoder.decode(record, apps: apps, now: now)
  }
}
