import APNs
import Wire

/// What an app with a certificate cannot send: APNs would refuse it (Apple, "Sending notification requests to APNs",
/// `apns-push-type`).
extension RequestFields {
  func checkCertificate(
    in bytes: Span<UInt8>, _ apps: borrowing AppTable, _ checked: CheckedFields
  ) throws(Violation) {
    guard apps.hasCertificate(checked.app) else { return }
    guard !checked.pushType.needsTokenAuthentication else {
      throw Violation(
        .badPushType,
        "\(name(of: .pushType)): \(checked.pushType.name) needs an app with a provider token; "
          + "found an app with a certificate")
    }
    // The bundle id, which a broadcast has in its path, is looked for when the certificate is loaded.
    guard checked.channel.isEmpty else { return }
    guard checked.topic.isEmpty else {
      guard apps.certificateCovers(bytes.extracting(checked.topic.indices), of: checked.app) else {
        throw violation(.topic, "must be in the app's certificate, which has \(shownTopics(apps, checked))", in: bytes)
      }
      return
    }
    let topic =
      checked.pushType == .other
      ? apps.topic(for: checked.app, typeNamed: bytes.extracting(checked.pushTypeName.indices)) ?? []
      : apps.topic(for: checked.app, checked.pushType)
    guard apps.certificateCovers(topic.span, of: checked.app) else {
      throw Violation(
        .badPushType,
        "\(name(of: .pushType)): must have a topic that is in the app's certificate, which has "
          + "\(shownTopics(apps, checked)); found \(String(decoding: topic, as: UTF8.self))")
    }
  }

  private func shownTopics(_ apps: borrowing AppTable, _ checked: CheckedFields) -> String {
    let topics = apps[checked.app].certificate?.topics ?? []
    return topics.prefix(8).joined(separator: ", ") + (topics.count > 8 ? ", …" : "")
  }
}
